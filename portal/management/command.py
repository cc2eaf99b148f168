"""Share what all commands do: an error is one sentence, Ctrl-C is a normal end, long work has a bar on a terminal.

Exit status of every command: 0 done; 1 refused or failed; 2 wrong usage, from argparse; 130 stopped by Ctrl-C or
SIGTERM. A command that has more says so in its help. Parsers of options raise ArgumentTypeError with what is wanted.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand, CommandError

from portal import plain_text
from portal.dynamo import library_errors
from portal.dynamo.placement import Placement
from portal.errors import PortalError, Throttled, Unavailable
from portal.schema.access_patterns import Cost


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """Return a parser of whole numbers within these bounds, in ASCII digits."""

    def parse(text: str) -> int:
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            raise ArgumentTypeError(f"must be a whole number: {text!r}")
        if int(text) < least:
            raise ArgumentTypeError(f"must be {least} or more")
        if most is not None and int(text) > most:
            raise ArgumentTypeError(f"must be {most:,} or less")
        return int(text)

    return parse


def number(least: float, most: float, what: str) -> Callable[[str], float]:
    """Return a parser of decimal numbers within these bounds. `what` names them: "a number of seconds"."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise ArgumentTypeError(f"must be {what}")
        return value

    return parse


seconds = number(0, 86_400, "a number of seconds, up to a day")


def placement(text: str) -> Placement:
    """Read where a tenant's content shall lie."""
    try:
        return Placement.parse(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from error


if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

REPORT_SECONDS = 15  # between two lines about how far long work is, where there is no bar that shows it
WRONG_USAGE = 2
INTERRUPTED = 130  # 128 + SIGINT, as a shell counts it


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class Stopped(CommandError):
    """Ctrl-C or SIGTERM. Django prints the name of the class before the sentence."""


class PortalCommand(BaseCommand):
    """A command whose `work` may raise PortalError, and may be interrupted anywhere."""

    # They are about serving pages. A command that repairs must also run where the portal would not.
    requires_system_checks: tuple[str, ...] = ()
    # What to do after Ctrl-C or a database that went away.
    again = "Run it again; what is done already is left as it is."
    # Where to look if the database or a queue does not answer.
    unavailable = "Check DYNAMODB_ENDPOINT_URL, and that create_tables has run."
    # The access patterns that one run may use; None is a proof's, which does whatever people do. A command without a
    # declaration does not start.
    costs: Cost | None
    # Options that count only beside one of these others, all by their names in `options`.
    goes_with: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    counted = 0  # how many there were of what the declaration is for each, as far as a Progress is told
    _is_interrupted = False

    def handle(self, *args: Any, **options: Any) -> None:
        for fault in ["it declares none"] if not hasattr(self, "costs") else self.costs.faults() if self.costs else []:
            raise CommandError(f"The access patterns of this command are not declared: {fault}.")
        for name, value in options.items():
            if isinstance(value, str | os.PathLike) and plain_text.has_halves(os.fspath(value)):
                raise CommandError(f"The value of {name} is not UTF-8.")
        for name, others in self.goes_with.items():
            if options[name] and not any(options[other] for other in others):
                raise CommandError(
                    f"{_flag(name)} goes with {' or '.join(map(_flag, others))}.", returncode=WRONG_USAGE
                )
        if getattr(self, "_called_from_command_line", False):
            # A service manager's way to stop long work, which ends with the same sentence as Ctrl-C.
            signal.signal(signal.SIGTERM, self._interrupt)
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                signal.signal(signal.SIGINT, self._interrupt)
        try:
            with self._noting_costs():
                self.work(options)
        except KeyboardInterrupt:
            if getattr(self, "_called_from_command_line", False):
                # A second Ctrl-C would only interrupt the sentence.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            raise Stopped(self.again, returncode=INTERRUPTED) from None
        except Throttled as error:
            raise CommandError(f"{error.message} {self.again}") from error
        except Unavailable as error:
            raise CommandError(f"{error.message} {self.unavailable} {self.again}") from error
        except PortalError as error:
            raise CommandError(error.message) from error
        except library_errors.LIBRARY_ERRORS as error:
            raise CommandError(f"The database refused: {error}") from error

    def work(self, options: dict[str, Any]) -> None:
        raise NotImplementedError

    def _noting_costs(self) -> AbstractContextManager[None]:
        """Have what it spends written down. Workers report by themselves, as their role; proofs break what they use."""
        from portal.load import reporting  # commands without items need none of it

        is_noted = self.costs is not None and not getattr(self, "noise", None)
        return reporting.costs_of_command() if is_noted else nullcontext()

    def heed(self) -> None:
        """Raise KeyboardInterrupt where one that came before got lost: some code in C drops whatever is raised while it
        looks something up, and so does Python while it writes a traceback. Long work calls it with each step."""
        if self._is_interrupted:
            self._is_interrupted = False
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        self._is_interrupted = True
        raise KeyboardInterrupt


@lru_cache(maxsize=1)
def declared() -> dict[str, Cost | None]:
    """Return what each command of the project declares, by name; those that read no items are no PortalCommands."""
    ours = {name: str(app) for name, app in get_commands().items() if not str(app).startswith("django.")}
    loaded = {name: load_command_class(app, name) for name, app in sorted(ours.items())}
    return {name: command.costs for name, command in loaded.items() if isinstance(command, PortalCommand)}


class Progress:
    """A bar on stderr while `with` lasts, nothing at all where stderr is no terminal.

    `say` writes a line, above the bar where there is one.
    """

    def __init__(self, command: PortalCommand, label: str, total: int | None) -> None:
        self._command, self._label, self._total = command, label, total
        self._bar: RichProgress | None = None
        self._has_waited = False
        self._said_at = time.monotonic()

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            # Loaded here because it takes 60 ms, and most runs have no terminal.
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._label, total=self._total)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar:
            self._bar.stop()

    def advance(self, steps: int = 1) -> None:
        self._command.heed()
        self._command.counted += steps
        if self._bar:
            self._bar.advance(self._task, steps)

    def label(self, text: str) -> None:
        if self._bar:
            self._bar.update(self._task, description=text)

    def step(self, label: str) -> None:
        """Label the bar with the next step of long work; where there is none, say it in a line."""
        self.label(label)
        if not self._bar:
            self.say(label)

    def report(self, label: str) -> None:
        """Label the bar with how far it is; where there is none, say it in a line every REPORT_SECONDS."""
        self.label(label)
        if not self._bar and time.monotonic() - self._said_at >= REPORT_SECONDS:
            self.say(label)

    def wait(self, label: str) -> None:
        """Label the bar with what is waited for; where there is none, say the first such thing in a line."""
        self.label(label)
        if not self._bar and not self._has_waited:
            self.say(label)
        self._has_waited = True

    def say(self, line: str) -> None:
        self._said_at = time.monotonic()
        if self._bar:
            self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            self._command.stderr.write(line)
