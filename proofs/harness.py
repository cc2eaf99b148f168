"""Run a torture: start processes, kill them at chosen moments, start them again, wait until all is calm, and judge.

A scenario says what its processes do and which figures must be empty; everything else is here, its command included.
"""

from __future__ import annotations

import inspect
import os
import random
import tempfile
import time
import uuid
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar
from unittest.mock import patch

from django.core.management.base import CommandError, CommandParser

from portal.dynamo.client import fan_out
from portal.dynamo.retry import retrying
from portal.dynamo.store import Store
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
from tickets.desk import creating

CANNOT_TELL: Final = 3  # exit status
STEP: Final = 0.05  # seconds between two looks
LOOK: Final = 0.3  # the same, at what many items tell
LEASE_SECONDS: Final = 1.5  # of what processes hold that are killed
DRAIN_SECONDS: Final = 240.0  # until a worker has applied everything, or nothing is done any more
JOB_SECONDS: Final = 3600.0  # until a move or a resharding is over
# What the processes find there: nothing holds back what they do but kills.
_UNBOUNDED = dict.fromkeys(("DELIVERY_IN_FLIGHT", "DELIVERY_PER_SECOND", "DELIVERY_BURST"), "100000")
ENVIRON: Final = {"TENANT_RATES": "off", "LOG_LEVEL": "ERROR", **_UNBOUNDED}
_T = TypeVar("_T")
Option = dict[str, Any]  # as `add_argument` takes it
Say = Callable[[str], object]


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


def signalled(process: Process, number: int) -> bool:
    """Send a process a signal; False where it has ended."""
    with suppress(ProcessLookupError):
        os.kill(process.pid, number)
        return True
    return False


class Torture:
    """A running torture: its plan, tenants and processes by role, and how many of each were killed.

    `must_be_empty` names the figures that are wrong unless they are empty or 0, `must_be` those with one right value.
    `follower` is the role of the process that applies the stream. The docstring of its module is the command's help.
    """

    options: ClassVar[Mapping[str, Option]]
    must_be_empty: ClassVar[Sequence[str]] = ()
    must_be: ClassVar[Mapping[str, Any]] = {}
    kept: ClassVar[str]  # the sentence for the end where nothing is wrong
    follower: ClassVar[str] = ""
    loads: ClassVar[Sequence[str]] = ()
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

    @classmethod
    def broken(cls, found: Mapping[str, Any]) -> list[str]:
        """Return the names of the figures that say that something is wrong."""
        wrong = [name for name in cls.must_be_empty if found[name]]
        return wrong + [name for name, right in cls.must_be.items() if found[name] != right]

    # --- tenants ---

    @property
    def ids(self) -> list[str]:
        return [tenant.tenant_id for tenant in self.tenants]

    @property
    def tenant_id(self) -> str:
        """The first tenant, or "" before there is one."""
        return self.ids[0] if self.tenants else ""

    def make_tenants(self, many: int = 1) -> None:
        name = uuid.uuid4().hex[:8]
        for n in range(many):
            slug = f"torture-{name}-{n}"
            self.tenants.append(tenant_lifecycle.create(name=f"Torture {n}", slug=slug, shards=1, by=SYSTEM))

    def open_tickets(self, many: int, at_once: int = 8) -> None:
        tenant = context.for_system(self.tenants[0])
        with self.stage("Opening tickets", many) as progress:
            for start in range(0, many, at_once):
                numbers = range(start, min(start + at_once, many))
                fan_out([partial(creating.create, tenant, title=f"Quiet {number}") for number in numbers])
                progress.advance(len(numbers))

    def repository(self, tenant_id: str = "") -> Store:
        return context.for_system(tenant_directory.get(tenant_id or self.tenant_id)).repository

    # --- processes ---

    def rng(self) -> random.Random:
        self._drawn += 1
        return random.Random(f"{self.plan.seed} {self._drawn}")  # noqa: S311  # it has to be repeatable

    def start(self, role: str, work: Work, **how: Any) -> Process:
        """Start a process that gets a journal, a seed and what is named."""
        self._started += 1
        path = self.folder / f"{role}-{self._started:05}.jsonl"
        process = Process(role, work, path, self.rng().randrange(10**9), how, loads=self.loads)
        self.running.setdefault(role, []).append(process)
        return process

    def start_all(self, **works: tuple[int, Work, dict[str, Any]]) -> None:
        for role, (many, work, how) in works.items():
            for _ in range(many):
                self.start(role, work, **how)

    def replace(self, process: Process) -> Process:
        process.kill()
        self.running[process.role].remove(process)
        return self.start(process.role, process.work, **process.how)

    def replace_dead(self, *roles: str) -> None:
        """Start a process for each one of these roles that has ended."""
        for process in [one for role in roles for one in self.running.get(role, ()) if one.poll() is not None]:
            self.replace(process)

    def kill(self, process: Process) -> None:
        self.kills[process.role] += 1
        self.replace(process)

    def kill_one(self, role: str) -> None:
        """Kill a process of a role; where all have ended, one that has just begun."""
        living = [one for one in self.running[role] if one.poll() is None]
        self.kill(self.rng().choice(living or [self.replace(self.running[role][0])]))

    def kills_in_turn(self, roles: Sequence[str]) -> list[Callable[[], object]]:
        """Return as many faults as kills are planned: one of each role in turn."""
        return [partial(self.kill_one, roles[number % len(roles)]) for number in range(self.plan.kills)]

    def refuse_dead(self, *roles: str) -> None:
        """Raise TortureFailed where a process of one of these roles has ended by itself."""
        for role in roles:
            if any(process.poll() is not None for process in self.running.get(role, ())):
                raise TortureFailed(f"A {role} has ended: {self.printed(role)}")

    def end(self, *roles: str, seconds: float = 0) -> None:
        """End the processes of these roles at once, or let them finish for so many seconds."""
        for process in [one for role in roles for one in self.running.pop(role, [])]:
            process.stop(seconds=seconds) if seconds else process.kill()

    def told(self, *roles: str) -> list[dict[str, Any]]:
        """Return what the processes of these roles have told, in the order of their starts."""
        paths = [path for role in roles for path in sorted(self.folder.glob(f"{role}-*.jsonl"))]
        return [line for path in paths for line in lines(path)]

    def last_told(self, role: str, name: str) -> int:
        """Add up the last value of a figure that each process of a role has told."""
        journals = [list(lines(path)) for path in self.folder.glob(f"{role}-*.jsonl")]
        return sum(journal[-1].get(name, 0) for journal in journals if journal)

    def printed(self, *roles: str) -> str:
        """Return the end of what the processes of these roles have printed."""
        paths = [path for role in roles for path in sorted(self.folder.glob(f"{role}-*.log"))]
        texts = [path.read_text(errors="replace").strip() for path in paths]
        return " / ".join(text[-800:] for text in texts if text)[-2400:] or "it printed nothing"

    # --- faults and jobs ---

    def inject(
        self,
        faults: Sequence[Callable[[], object]],
        writer: str,
        events: int,
        advance: Callable[[int], object],
        *,
        replace: Sequence[str] = (),
        go_on: Callable[[int], bool] = lambda written: False,
    ) -> None:
        """Inject each fault at a random number of written events, until all writers have ended.

        Dead processes of the roles `replace` are started again. Called at each look, `go_on` may start writers again,
        and then returns True.
        """  # fmt: skip
        rng, seen = self.rng(), 0
        todo = sorted(((rng.randint(events // 20, events), fault) for fault in faults), key=lambda planned: planned[0])
        while True:
            time.sleep(rng.uniform(0, 2 * STEP))
            ended = all(process.poll() is not None for process in self.running[writer])
            written = self.last_told(writer, "events")
            advance(written - seen)
            seen = written
            while todo and (written >= min(todo[0][0], events) or ended):
                todo.pop(0)[1]()
            self.replace_dead(*replace)
            if ended and not todo and not go_on(written):
                return

    def carry_out(
        self,
        work: Work,
        order: Sequence[str],
        points: Sequence[str],
        *,
        is_over: Callable[[], bool],
        alive: Sequence[str],
        say: Say,
    ) -> list[str]:
        """Let one worker after the other do a job, and kill it some time after it has told of a phase that is due.

        `points` are the phases of the kills, and all phases come in this `order`. A kill comes within half of the time
        that the copies take, so that much is done and much is not. Returns the phases in which a worker was killed.
        Raises TortureFailed.
        """
        rng, killed, until = self.rng(), list[str](), time.monotonic() + JOB_SECONDS
        todo, most = sorted(points, key=order.index), self.plan.tickets / self.plan.rate / 2
        while time.monotonic() < until:
            before = len(self.told("mover"))
            worker = self.start("mover", work, tenant_id=self.tenant_id, rate=self.plan.rate)
            while worker.poll() is None:
                phases = [line["phase"] for line in self.told("mover")[before:]]
                say(phases[-1] if phases else "beginning")
                if todo and todo[0] in phases:
                    time.sleep(rng.uniform(0, most))
                    if worker.poll() is None:
                        worker.kill()
                        killed.append(todo[0])
                    todo.pop(0)
                    break
                time.sleep(STEP)
                self.refuse_dead(*alive)
            self.end("mover")
            if patiently(is_over):
                return killed
        raise TortureFailed("The job came to no end.")

    # --- until all is calm ---

    def wait_until(self, done: Callable[[], bool], *alive: str, seconds: float = DRAIN_SECONDS) -> None:
        """Wait, and raise TortureFailed when it lasts too long or a process of one of these roles has ended."""
        until = time.monotonic() + seconds
        while not done():
            self.refuse_dead(*alive)
            if time.monotonic() > until:
                raise TortureFailed(f"The processes came to nothing. {self.printed(*self.running)}")
            time.sleep(STEP)

    def wait_while_it_moves(
        self, look: Callable[[], tuple[bool, object]], say: Say, *replace: str, seconds: float
    ) -> None:
        """Wait until a look says that all is done; end, too, when what it sees has stayed the same for so long.

        Dead processes of the roles `replace` are started again.
        """
        moved, before = time.monotonic(), None
        while time.monotonic() - moved < seconds:
            done, seen = look()
            if done:
                return
            say(str(seen))
            if seen != before:
                before, moved = seen, time.monotonic()
            self.replace_dead(*replace)
            time.sleep(LOOK)

    def wait_for_more(self, role: str, many: int, *alive: str) -> None:
        """Wait until the processes of a role have told so many lines more than now."""
        wanted = len(self.told(role)) + many
        self.wait_until(lambda: len(self.told(role)) >= wanted, *alive)

    def drain(self, say: Say = lambda _: None) -> None:
        """Wait until everything written so far is counted. Raises TortureFailed."""
        for tenant_id in self.ids:
            try:
                stream_barrier.wait_until_applied(self.repository(tenant_id), timeout=DRAIN_SECONDS, say=say)
            except WorkerAway as away:
                raise TortureFailed(f"The {self.follower} came to no end: {self.printed(self.follower)}") from away

    def remove(self) -> None:
        """End everybody, and delete the tenants with what they have; the follower ends last, because it writes too."""
        self.end(*set(self.running) - {self.follower})
        for tenant_id in self.ids if self.follower else ():
            patiently(partial(cleanup.delete_content, tenant_id))
            with suppress(WorkerAway):
                pool = Store("tenant", tenant_id)
                stream_barrier.wait_until_applied(pool, timeout=DRAIN_SECONDS, say=lambda _: None)
        self.end(self.follower, seconds=30)
        for tenant_id in self.ids:
            patiently(partial(cleanup.delete_tenant, tenant_id))


class TortureCommand(PortalCommand):
    """`manage.py torture_...`: carries a scenario out, and fails where its figures are wrong."""

    costs = None  # it does whatever people do
    again = "What it has made may be left behind, in tenants whose names begin with torture."
    scenario: ClassVar[type[Torture]]

    @classmethod
    def of(cls, scenario: type[Torture]) -> type[TortureCommand]:
        """Return the command of a scenario, with the docstring of its module for help."""
        module = inspect.getmodule(scenario)
        needs = "Needs DEBUG=1 and a local engine. Tenants are removed in the end. " if scenario.needs_engine else ""
        status = "Exit status: 0 nothing is wrong; 1 something is, or it failed; 3 it could not be told."
        text = " ".join((module.__doc__ or "").split()) if module else ""
        return type("Command", (cls,), {"scenario": scenario, "help": f"{text} {needs}{status}"})

    def add_arguments(self, parser: CommandParser) -> None:
        for name, option in self.scenario.options.items():
            parser.add_argument(f"--{name}", **option)
        parser.add_argument("--seed", type=int, metavar="S", help="printed, and a new one each time")
        proof_report.add_options(parser, html=False)

    def work(self, options: dict[str, Any]) -> None:
        if self.scenario.needs_engine:
            cleanup.refuse_in_production()
        plan = Namespace(**{name: options[name] for name in self.scenario.options})
        plan.seed = proof_report.seed(options, self.stdout)
        with patch.dict(os.environ, ENVIRON), tempfile.TemporaryDirectory(prefix="torture-") as folder:
            run, began = self.scenario(plan, Path(folder), partial(Progress, self)), time.monotonic()
            try:
                run.work()
                found = {"plan": {name: _plain(value) for name, value in vars(plan).items()}, **run.figures()}
            finally:
                run.remove()
        found["seconds"] = round(time.monotonic() - began, 1)
        proof_report.write(options, found)
        for line in proof_report.figures(found):
            self.stdout.write(line)
        if wrong := run.broken(found):
            raise CommandError(f"Something is wrong: {', '.join(wrong)}. Keep the seed.")
        if untold := found.get("cannot_be_told"):
            raise CommandError(f"It could not be told: {untold}", returncode=CANNOT_TELL)
        self.stdout.write(run.kept)


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else [str(one) for one in value]
