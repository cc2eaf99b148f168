"""Run a torture: start processes, kill them at chosen moments, start them again, wait until all is calm, and judge.

A scenario says what its processes do and which figures must be empty; everything else is here, its command included.
"""

from __future__ import annotations

import os
import random
import tempfile
import time
import uuid
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar
from unittest.mock import patch

from django.core.management.base import CommandError, CommandParser

from portal.dynamo.repository import TenantRepository
from portal.dynamo.retry import retrying
from portal.errors import PortalError, Unavailable
from portal.management.command import PortalCommand, Progress, number, whole_number
from proofs import cleanup, proof_report
from proofs.forked import Process, Work, lines
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.stored import TenantItem
from tickets.counting import stream_barrier
from tickets.counting.stream_barrier import WorkerAway

STEP: Final = 0.05  # seconds between two looks
DRAIN_SECONDS: Final = 240.0  # until a worker has applied everything
_T = TypeVar("_T")
Option = dict[str, Any]  # as `add_argument` takes it


class TortureFailed(PortalError):
    """The torture could not be carried out: nothing is said about what it tries to break."""


def count(default: int, metavar: str, text: str, least: int = 1) -> Option:
    """Declare an option that is a whole number."""
    return {"type": whole_number(least), "default": default, "metavar": metavar, "help": f"{text} (%(default)s)"}


def decimal(default: float, metavar: str, text: str, least: float, most: float) -> Option:
    """Declare an option that is a decimal number within bounds."""
    bounds = number(least, most, f"a number from {least:g} to {most:g}")
    return {"type": bounds, "default": default, "metavar": metavar, "help": f"{text} (%(default)g)"}


def patiently(call: Callable[[], _T]) -> _T:
    """Call until the engine answers, and return its result. It is busy with what a torture does to it."""
    return retrying(call, again=lambda error: isinstance(error, Unavailable), attempts=20, first=1.0, longest=10.0)


class Torture:
    """A running torture: its plan, tenants and processes by role, and how many of each were killed.

    `must_be_empty` names the figures that are wrong unless they are empty or 0, `must_be` those with one right value.
    `follower` is the role of the process that applies the stream.
    """

    help: ClassVar[str]
    options: ClassVar[Mapping[str, Option]]
    must_be_empty: ClassVar[Sequence[str]] = ()
    must_be: ClassVar[Mapping[str, Any]] = {}
    kept: ClassVar[str]  # the sentence for the end where nothing is wrong
    follower: ClassVar[str] = ""
    loads: ClassVar[Sequence[str]] = ()
    environ: ClassVar[Mapping[str, str]] = {}  # what the processes find there
    needs_engine: ClassVar[bool] = True

    def __init__(self, plan: Namespace, folder: Path, stage: Callable[[str, int | None], Progress]) -> None:
        self.plan, self.folder, self.stage = plan, folder, stage
        self.tenants: list[TenantItem] = []
        self.kills: Counter[str] = Counter()
        self.running: dict[str, list[Process]] = {}
        self._started = self._drawn = 0

    # --- what a scenario says ---

    def work(self) -> None:
        """Carry it out, to the moment at which everything is calm."""
        raise NotImplementedError

    def figures(self) -> dict[str, Any]:
        """Return what came of it, ready for JSON, with what is wrong by name."""
        raise NotImplementedError

    def sentences(self, found: Mapping[str, Any]) -> Iterable[str]:
        """Return the figures for people."""
        raise NotImplementedError

    @classmethod
    def broken(cls, found: Mapping[str, Any]) -> list[str]:
        """Return the names of the figures that say that something is wrong."""
        wrong = [name for name in cls.must_be_empty if found[name]]
        return wrong + [name for name, right in cls.must_be.items() if found[name] != right]

    # --- tenants ---

    @property
    def tenant_id(self) -> str:
        """The first tenant, or "" before there is one."""
        return self.tenants[0].tenant_id if self.tenants else ""

    def make_tenants(self, many: int = 1) -> None:
        name = uuid.uuid4().hex[:8]
        for n in range(many):
            slug = f"torture-{name}-{n}"
            self.tenants.append(tenant_lifecycle.create(name=f"Torture {n}", slug=slug, shards=1, by=SYSTEM))

    def repository(self) -> TenantRepository:
        """Return the first tenant's repository, wherever that lies now."""
        return context.for_system(tenant_directory.get(self.tenant_id)).repository

    # --- processes ---

    def rng(self) -> random.Random:
        self._drawn += 1
        return random.Random(f"{self.plan.seed} {self._drawn}")  # noqa: S311  # it has to be repeatable

    def start(self, role: str, work: Work, *, journal: Path | None = None, **how: Any) -> Process:
        """Start a process that gets a journal, its own or that of one before it, a seed and what is named."""
        self._started += 1
        path = journal or self.folder / f"{role}-{self._started:05}.jsonl"
        process = Process(role, work, path, self.rng().randrange(10**9), how, loads=self.loads)
        self.running.setdefault(role, []).append(process)
        return process

    def replace(self, process: Process) -> Process:
        """End a process, and start one that does the same in its place."""
        process.kill()
        self.running[process.role].remove(process)
        return self.start(process.role, process.work, **process.how)

    def replace_dead(self, *roles: str) -> None:
        """Start a process for each one of these roles that has ended."""
        for process in [one for role in roles for one in self.running.get(role, ()) if one.poll() is not None]:
            self.replace(process)

    def kill(self, process: Process) -> None:
        """Kill a process at this moment, and start one in its place."""
        self.kills[process.role] += 1
        self.replace(process)

    def refuse_dead(self, *roles: str) -> None:
        """Raise TortureFailed where a process of one of these roles has ended by itself."""
        for role in roles:
            if any(process.poll() is not None for process in self.running.get(role, ())):
                raise TortureFailed(f"A {role} has ended: {self.printed(role)}")

    def end(self, role: str, *, seconds: float = 0) -> None:
        """End the processes of a role at once, or let them finish for so many seconds."""
        for process in self.running.pop(role, []):
            if seconds:
                process.stop(seconds=seconds)
            else:
                process.kill()

    def journals(self, role: str) -> list[list[dict[str, Any]]]:
        """Return what each process of a role has told, in the order in which they were started."""
        return [list(lines(path)) for path in sorted(self.folder.glob(f"{role}-*.jsonl"))]

    def told(self, role: str) -> list[dict[str, Any]]:
        return [line for journal in self.journals(role) for line in journal]

    def last_told(self, role: str, name: str) -> int:
        """Add up the last value of a figure that each process of a role has told."""
        return sum(journal[-1].get(name, 0) for journal in self.journals(role) if journal)

    def printed(self, role: str) -> str:
        """Return the end of what the processes of this role have printed."""
        texts = [path.read_text(errors="replace").strip() for path in sorted(self.folder.glob(f"{role}-*.log"))]
        return " / ".join(text[-800:] for text in texts if text)[-2400:] or "it printed nothing"

    # --- until all is calm ---

    def wait_until(self, done: Callable[[], bool], *alive: str, seconds: float = DRAIN_SECONDS) -> None:
        """Wait, and raise TortureFailed when it lasts too long or a process of one of these roles has ended."""
        until = time.monotonic() + seconds
        while not done():
            self.refuse_dead(*alive)
            if time.monotonic() > until:
                raise TortureFailed("The processes came to nothing.")
            time.sleep(STEP)

    def drain(self, say: Callable[[str], object] = lambda _: None) -> None:
        """Wait until everything written so far is counted. Raises TortureFailed."""
        for tenant in self.tenants:
            repository = context.for_system(tenant_directory.get(tenant.tenant_id)).repository
            try:
                stream_barrier.wait_until_applied(repository, timeout=DRAIN_SECONDS, say=say)
            except WorkerAway as away:
                raise TortureFailed(f"The {self.follower} came to no end: {self.printed(self.follower)}") from away

    def remove(self) -> None:
        """End everybody, and delete the tenants with what they have; the follower ends last, because it writes too."""
        for role in set(self.running) - {self.follower}:
            self.end(role)
        if self.follower:
            for tenant in self.tenants:
                patiently(partial(cleanup.delete_content, tenant.tenant_id))
                with suppress(WorkerAway):
                    stream_barrier.wait_until_applied(
                        TenantRepository(tenant.tenant_id), timeout=DRAIN_SECONDS, say=lambda _: None
                    )
            self.end(self.follower, seconds=30)
        for tenant in self.tenants:
            patiently(partial(cleanup.delete_tenant, tenant.tenant_id))


class TortureCommand(PortalCommand):
    """`manage.py torture_...`: carries a scenario out, and fails where its figures are wrong."""

    scenario: ClassVar[type[Torture]]
    again = "What it has made may be left behind, in tenants whose names begin with torture."

    def add_arguments(self, parser: CommandParser) -> None:
        for name, option in self.scenario.options.items():
            parser.add_argument(f"--{name}", **option)
        parser.add_argument("--seed", type=int, metavar="S", help="printed, and a new one each time")
        proof_report.add_options(parser, html=False)

    def work(self, options: dict[str, Any]) -> None:
        if self.scenario.needs_engine:
            cleanup.refuse_in_production()
        plan = Namespace(**{name: options[name] for name in self.scenario.options})
        plan.seed = options["seed"] if options["seed"] is not None else random.SystemRandom().randrange(10**9)
        self.stdout.write(f"Seed {plan.seed}.")
        with patch.dict(os.environ, self.scenario.environ), tempfile.TemporaryDirectory(prefix="torture-") as folder:
            run, began = self.scenario(plan, Path(folder), partial(Progress, self)), time.monotonic()
            try:
                run.work()
                found = {"plan": {name: _plain(value) for name, value in vars(plan).items()}, **run.figures()}
            finally:
                run.remove()
        found["seconds"] = round(time.monotonic() - began, 1)
        self.conclude(run, found, options)

    def conclude(self, run: Torture, found: dict[str, Any], options: dict[str, Any]) -> None:
        proof_report.write(options, found)
        for sentence in run.sentences(found):
            self.stdout.write(sentence)
        wrong = run.broken(found)
        for name in wrong:
            self.stdout.write(f"{name}: {found[name]}")
        if wrong:
            raise CommandError(f"Something is wrong: {', '.join(wrong)}. Keep the seed.")
        self.stdout.write(run.kept)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else [str(one) for one in value]


def signalled(process: Process, number: int) -> bool:
    """Send a process a signal; False where it has ended."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, number)
        return True
    return False
