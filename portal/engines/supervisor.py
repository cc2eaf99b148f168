"""Keep child processes alive: one that dies is started again after a pause that grows, until it dies too often."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from portal.engines.processes import Child

MOST_DEATHS = 5
WINDOW_SECONDS = 60.0
FIRST_PAUSE_SECONDS = 0.5  # doubled with each death within the window
STOP_SECONDS = 60.0
JOB_PAUSE_SECONDS = 30.0


class Supervised(Protocol):
    """Something that can be started again, with one process at a time."""

    @property
    def name(self) -> str: ...

    def start(self) -> object:
        """Start the process. Raises StartError."""

    def poll(self) -> int | None:
        """Return the exit status of a process that has ended by itself, else None."""

    def end(self) -> object:
        """Stop the process if it runs, and what it has left behind if it does not."""


class GaveUp(RuntimeError):
    """A child died too often. The message says which, and how it ended."""


class StartError(RuntimeError):
    """A start did not succeed, which counts as a death. The message says why."""


class Command:
    """A command line that runs as a child process. Its output goes to `log`, if given."""

    def __init__(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str], log: Path | None = None) -> None:
        self.name = name
        self._argv, self._env, self._log = argv, env, log
        self._child: Child | None = None

    def start(self) -> None:
        with self._log.open("ab") if self._log else nullcontext() as output:
            self._child = Child(self.name, self._argv, env=self._env, output=output)

    def poll(self) -> int | None:
        return self._child.poll() if self._child else None

    def end(self) -> None:
        if self._child:
            self._child.stop(seconds=STOP_SECONDS)
        self._child = None

    def kill(self) -> None:
        """End it at once; what it was doing has become pointless."""
        if self._child:
            self._child.kill()
        self._child = None


class Job(Command):
    """A command line that has to succeed once: after each failure it runs again, when `pause` seconds have passed."""

    pause = JOB_PAUSE_SECONDS
    _due: float | None = None

    def begin(self) -> None:
        """Run it, from its beginning where it runs already."""
        self.end()
        self.start()

    def tend(self) -> None:
        """Notice that it failed, and run it again when that is due."""
        if (status := self.poll()) is not None:
            self.end()
            self._due = time.monotonic() + self.pause if status else None
        if self._due is not None and time.monotonic() >= self._due:
            self.begin()

    def end(self) -> None:
        """Stop it, and do not run it again."""
        self._due = None
        super().end()


@dataclass
class _Entry:
    supervised: Supervised
    due: float | None = None  # when it is to be started again; None while it runs
    deaths: list[float] = field(default_factory=list)


class Supervisor:
    """Watches what runs. Times are those of ``clock``, in seconds; ``say`` gets a sentence for each death and start."""

    def __init__(self, say: Callable[[str], object], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._entries: list[_Entry] = []

    def watch(self, supervised: Supervised) -> None:
        """Begin to watch a process that runs."""
        self._entries.append(_Entry(supervised))

    def first_death(self) -> str | None:
        """Say which process has ended and how, without starting it again; None while all run."""
        for entry in self._entries:
            if (status := entry.supervised.poll()) is not None:
                return f"The {entry.supervised.name} ended unexpectedly, with {outcome(status)}."
        return None

    def tend(self) -> None:
        """Notice deaths and start what is due. Raises GaveUp at the fifth death of one process within a minute."""
        for entry in self._entries:
            if entry.due is not None:
                if self._clock() >= entry.due:
                    self._start(entry)
            elif (status := entry.supervised.poll()) is not None:
                entry.supervised.end()
                self._note_death(entry, f"died with {outcome(status)}")

    def _start(self, entry: _Entry) -> None:
        try:
            entry.supervised.start()
        except StartError as error:
            self._note_death(entry, f"could not start: {error}")
        else:
            entry.due = None
            self._say(f"The {entry.supervised.name} runs again.")

    def _note_death(self, entry: _Entry, sentence: str) -> None:
        now = self._clock()
        entry.deaths = [*(death for death in entry.deaths if now - death < WINDOW_SECONDS), now]
        if len(entry.deaths) >= MOST_DEATHS:
            raise GaveUp(f"The {entry.supervised.name} {sentence}, for the {MOST_DEATHS}th time within a minute.")
        pause = FIRST_PAUSE_SECONDS * 2 ** (len(entry.deaths) - 1)
        entry.due = now + pause
        self._say(f"The {entry.supervised.name} {sentence}; it is started again in {pause:g} s.")


def outcome(status: int) -> str:
    """Put an exit status in words."""
    return f"signal {-status}" if status < 0 else f"exit status {status}"
