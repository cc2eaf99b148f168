"""A torture: writers, hostile pollers, kills and thefts, then the question whether every number is right."""

from __future__ import annotations

import json
import os
import random
import signal
import tempfile
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.repository import TenantRepository
from portal.errors import PortalError
from portal.streams import leases, shards
from proofs import cleanup
from proofs.counting import child as child_process
from proofs.counting import journal, resharding
from proofs.counting.resharding import SplitStream
from proofs.forked_child import ForkedChild
from tenants.audit_trail.recording import SYSTEM
from tenants.provisioning import tenant_lifecycle
from tickets.counting import barrier
from tickets.counting.barrier import WorkerAway
from tickets.ticket.tables import TICKETS
from tickets.verification import verify
from tickets.verification.verify import Verdict

LEASE_SECONDS: Final = 1.5
DRAIN_SECONDS: Final = 180.0  # without any progress
REPAIR_SECONDS: Final = 120.0  # to end the rebuild that is going on
STEP: Final = 0.1  # seconds


class TortureFailed(PortalError):
    """It could not be carried out: nothing is said about the aggregates."""


@dataclass(frozen=True)
class TortureOptions:
    events: int
    redeliver: float
    kills: int
    tenants: int
    writers: int
    pollers: int
    cuts: int
    seed: int


@dataclass
class LoadedTenant:
    slug: str
    tenant_id: str


@dataclass
class Torture:
    """A running torture: its processes, and what has happened so far."""

    plan: TortureOptions
    folder: Path
    tenants: list[LoadedTenant] = field(default_factory=list)
    writers: list[ForkedChild] = field(default_factory=list)
    pollers: dict[Path, ForkedChild] = field(default_factory=dict)  # by journal
    zombies: list[ForkedChild] = field(default_factory=list)
    repairs: list[ForkedChild] = field(default_factory=list)
    kills: int = 0
    killed_between_writes: int = 0
    thefts: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    left: dict[str, Verdict] = field(default_factory=dict)  # drift after everything was deleted
    stream: SplitStream | None = None  # None where its shards are left as they are,
    uncut: str = ""  # and why
    applied: str = ""  # a record up to which everything is applied
    counter: int = 0

    @property
    def rng(self) -> random.Random:
        self.counter += 1
        return random.Random(f"{self.plan.seed} parent {self.counter}")  # noqa: S311  # it has to be repeatable

    def child(self, role: str, **specification: Any) -> tuple[Path, ForkedChild]:
        self.counter += 1
        path = self.folder / f"{role}-{self.counter}.jsonl"
        specification |= {"seed": self.plan.seed, "number": self.counter, "journal": str(path)}
        specification["presented"] = self.stream and {"path": str(self.stream.path), "root": self.stream.root}
        text, log = json.dumps(specification), path.with_suffix(".log")
        return path, ForkedChild(role, child_process.main, role, text, output=log)

    @property
    def throttled(self) -> str:
        """The tenant that is throttled now and then: the last one, so that others can be seen to go on."""
        return self.tenants[-1].tenant_id if self.tenants else ""

    def start_poller(self) -> None:
        path, child = self.child(
            "poller", redeliver=self.plan.redeliver, lease_seconds=LEASE_SECONDS, throttled=self.throttled
        )
        self.pollers[path] = child

    def replace_dead(self) -> None:
        for path, child in list(self.pollers.items()):
            if child.poll() is not None:
                child.kill()
                del self.pollers[path]
                self.start_poller()

    def written(self) -> int:
        return sum(_last(path).get("events", 0) for path in self.folder.glob("writer-*.jsonl"))

    def batches(self) -> Iterator[dict[str, Any]]:
        """Read what the pollers and zombies have written of their batches."""
        for path in self.folder.glob("*.jsonl"):
            if not path.name.startswith(("writer-", "repairs-")):
                yield from (line for line in journal.lines(path) if "way" in line)

    def repaired(self) -> list[dict[str, Any]]:
        """Read what the processes that rebuild and verify have written."""
        return [line for path in self.folder.glob("repairs-*.jsonl") for line in journal.lines(path)]

    def holder(self) -> Path | None:
        """Return the journal of the poller of ours that holds a shard now."""
        owners = {lease.owner for lease in leases.stored(shards.arn(TICKETS))}
        for path, child in self.pollers.items():
            first = next(journal.lines(path), {})
            if first.get("me") in owners and child.poll() is None:
                return path
        return None


def _last(path: Path) -> dict[str, Any]:
    return next(iter(deque(journal.lines(path), maxlen=1)), {})


Say = Callable[[str], object]
Schedule = list[tuple[int, Callable[[Torture], None]]]  # at how many events what is to happen


@contextmanager
def torture(plan: TortureOptions) -> Iterator[Torture]:
    """Give a torture whose processes end with it. Raises Forbidden without DEBUG and with a real DynamoDB."""
    cleanup.refuse_in_production()
    with tempfile.TemporaryDirectory(prefix="torture-") as folder, ExitStack() as stack:
        run = Torture(plan, Path(folder))
        if plan.cuts:
            run.stream, run.uncut = resharding.present(run.folder / "cuts.jsonl")
        if run.stream:
            stack.callback(run.stream.install())
        stack.callback(_end, run)
        yield run


def stop_writers(run: Torture) -> None:
    for child in [*run.writers, *run.zombies, *run.repairs]:
        child.kill()


def stop_pollers(run: Torture) -> None:
    for child in run.pollers.values():
        child.stop(seconds=30)


def _end(run: Torture) -> None:
    stop_writers(run)
    stop_pollers(run)
    if run.stream:
        run.stream.give_back(run.applied)


def make_tenants(run: Torture) -> None:
    name = uuid.uuid4().hex[:8]
    for n in range(run.plan.tenants):
        item = tenant_lifecycle.create(name=f"Torture {n}", slug=f"torture-{name}-{n}", shards=1, by=SYSTEM)
        run.tenants.append(LoadedTenant(item.slug, item.tenant_id))


def write(run: Torture, todo: Schedule, advance: Callable[[int], object]) -> None:
    """Let the writers write and the pollers follow, and inject the faults that are due, until all is written."""
    plan, started, seen = run.plan, time.monotonic(), 0
    ids = [tenant.tenant_id for tenant in run.tenants]
    for n in range(plan.writers):
        events = plan.events // plan.writers + (n < plan.events % plan.writers)
        run.writers.append(run.child("writer", tenants=ids, events=events)[1])
    for _ in range(plan.pollers):
        run.start_poller()
    run.repairs.append(run.child("repairs", tenants=ids)[1])
    while any(child.poll() is None for child in run.writers) or todo:
        time.sleep(STEP)
        written = run.written()
        advance(written - seen)
        seen = written
        ended = all(child.poll() is not None for child in run.writers)
        while todo and (ended or written >= todo[0][0]):
            todo.pop(0)[1](run)
        run.replace_dead()
    run.seconds["writing"] = time.monotonic() - started
    _end_repairs(run)
    failed = [child for child in run.writers if child.poll()]
    if failed or run.written() < plan.events:
        raise TortureFailed(f"A writer failed: {_logs(run.folder, 'writer')}")


def _end_repairs(run: Torture) -> None:
    """Let the rebuild end that is going on; it needs pollers for that."""
    until = time.monotonic() + REPAIR_SECONDS
    for child in run.repairs:
        os.kill(child.pid, signal.SIGTERM)
        while child.poll() is None and time.monotonic() < until:
            run.replace_dead()
            time.sleep(STEP)
        child.kill()


def drain(run: Torture, say: Say) -> None:
    """Wait until everything written so far is counted."""
    started = time.monotonic()

    def waiting(sentence: str) -> None:
        say(sentence)
        run.replace_dead()

    for tenant in run.tenants:
        repository = TenantRepository(tenant.tenant_id)
        try:
            barrier.wait_until_applied(repository, timeout=DRAIN_SECONDS, say=waiting)
        except WorkerAway as away:
            raise TortureFailed(f"The pollers came to no end: {_logs(run.folder, 'poller')}") from away
    for child in run.zombies:
        child.stop(seconds=30)
    if run.stream:
        run.applied = run.stream.mark_now(run.tenants[0].tenant_id)[1]
    run.seconds["draining"] = run.seconds.get("draining", 0) + time.monotonic() - started


def check(run: Torture, advance: Callable[[int], object]) -> dict[str, Verdict]:
    """Verify every tenant."""
    found = {}
    for tenant in run.tenants:
        found[tenant.slug] = verify.verify(TenantRepository(tenant.tenant_id))
        advance(1)
    return found


def remove(run: Torture, advance: Callable[[int], object]) -> int:
    """Delete the tickets and what they name; then no count may be left. Returns how many items were deleted."""

    def one(tenant: LoadedTenant) -> int:
        deleted = cleanup.delete_content(tenant.tenant_id)
        advance(1)
        return deleted

    return sum(fan_out([partial(one, tenant) for tenant in run.tenants]))


def forget_tenants(run: Torture) -> None:
    """Delete what is left of the tenants, once all is applied and nobody is there to answer a marker again."""
    stop_pollers(run)
    for tenant in run.tenants:
        cleanup.delete_tenant(tenant.tenant_id)


def _logs(folder: Path, role: str) -> str:
    """Return the end of what the processes of this role have printed."""
    texts = [path.read_text(errors="replace").strip() for path in sorted(folder.glob(f"{role}-*.log"))]
    return " / ".join(text[-600:] for text in texts if text)[-2000:] or "it printed nothing"
