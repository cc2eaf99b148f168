"""A torture of deliveries: writers, dispatchers and consumers that are killed anywhere, and a receiver that counts.

What must arrive follows from the tickets' timelines, which a transaction writes together with the outbox. Three things
are asked: has each event arrived; do those that arrived twice have the same id; is anything still pending.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from delivery.dispatching import outbox_reader
from delivery.outbox import keys
from delivery.outbox.progress import CERTAINLY_ANSWERED
from delivery.queues.queue_transport import QueueTransport
from portal import clock
from proofs import cleanup
from proofs.counting import journal
from proofs.counting.experiment import LoadedTenant, TortureFailed
from proofs.delivery import delivery_processes, told_events
from proofs.delivery.delivery_processes import SLOTS
from proofs.delivery.event_receiver import EventKey, EventReceiver, receiving
from proofs.forked_child import ForkedChild
from proofs.patience import patiently
from tenants.audit_trail.recording import SYSTEM
from tenants.provisioning import tenant_lifecycle

ROLES: Final = ("writer", "dispatcher", "consumer")
# Seconds without any progress, after which it is given up. What a message did not bring, its row brings again.
PATIENCE: Final = CERTAINLY_ANSWERED.total_seconds() + 120.0
_STEP: Final = 0.1
_PENDING_LOOK: Final = 1000  # keys of each shard of the index that are looked at
_UNLIMITED: Final = {"DELIVERY_IN_FLIGHT": "100000", "DELIVERY_PER_SECOND": "100000", "DELIVERY_BURST": "100000"}


@dataclass(frozen=True)
class DeliveryPlan:
    """Say how much is written, by whom, and how many processes are killed meanwhile."""

    events: int
    kills: int
    tenants: int
    writers: int
    dispatchers: int
    consumers: int
    seed: int


@dataclass
class DeliveryTorture:
    """A running torture: its processes, and what has happened so far."""

    plan: DeliveryPlan
    folder: Path
    receiver: EventReceiver
    address: str
    tenants: list[LoadedTenant] = field(default_factory=list)
    running: dict[str, list[ForkedChild]] = field(default_factory=lambda: {role: [] for role in ROLES})
    kills: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    expected: set[EventKey] = field(default_factory=set)
    pending: int = 0
    _number: int = 0

    def start(self, role: str) -> None:
        """Start one more process of a role."""
        self._number += 1
        path = self.folder / f"{role}-{self._number}.jsonl"
        own: dict[str, Any] = {"address": self.address}
        if role == "writer":
            left = self.plan.events - self.written()
            own = {"tenants": [t.tenant_id for t in self.tenants], "events": max(1, left // self.plan.writers)}
            own |= {"seed": self.plan.seed, "number": self._number, "journal": str(path)}
        log = path.with_suffix(".log")
        self.running[role].append(ForkedChild(role, delivery_processes.main, role, json.dumps(own), output=log))

    def written(self) -> int:
        """Return how many events the writers have told of; a killed one has written a few more."""
        files = self.folder.glob("writer-*.jsonl")
        return sum(next(iter(deque(journal.lines(path), maxlen=1)), {}).get("events", 0) for path in files)

    def replace_dead(self) -> None:
        """Start a process for each dispatcher and consumer that has ended by itself."""
        for role in ("dispatcher", "consumer"):
            for child in [child for child in self.running[role] if child.poll() is not None]:
                self.running[role].remove(child)
                self.start(role)

    def kill(self, role: str, rng: random.Random) -> None:
        """Kill a process of a role at this moment, and start another. Where all have ended, one that has just begun."""
        living = [child for child in self.running[role] if child.poll() is None]
        if not living:
            self.start(role)
            living = self.running[role][-1:]
        victim = rng.choice(living)
        self.running[role].remove(victim)
        victim.kill()
        self.kills[role] += 1
        self.start(role)

    @property
    def lost(self) -> set[EventKey]:
        return self.expected - self.receiver.ids.keys()

    @property
    def unexpected(self) -> set[EventKey]:
        """Return what arrived and never happened."""
        return self.receiver.ids.keys() - self.expected

    @property
    def unrecognisable(self) -> set[EventKey]:
        """Return what arrived under more than one id."""
        return {key for key, ids in self.receiver.ids.items() if len(ids) > 1}

    @property
    def doubles_allowed(self) -> int:
        """1 %; in a small torture what the killed consumers had in hand, and a batch of each dispatcher."""
        return max(len(self.expected) // 100, (self.kills["consumer"] + self.kills["dispatcher"]) * 10 * SLOTS)


@contextmanager
def torture(plan: DeliveryPlan) -> Iterator[DeliveryTorture]:
    """Give a torture whose processes end with it. Raises Forbidden without DEBUG and with a real DynamoDB."""
    cleanup.refuse_in_production()
    QueueTransport().create_all()
    with (
        patch.dict(os.environ, _UNLIMITED),  # which the processes find there
        tempfile.TemporaryDirectory(prefix="torture-") as folder,
        receiving() as (receiver, address),
    ):
        run = DeliveryTorture(plan, Path(folder), receiver, address)
        try:
            yield run
        finally:
            _end(run)


def _end(run: DeliveryTorture) -> None:
    for child in (child for role in ROLES for child in run.running[role]):
        child.kill()


def make_tenants(run: DeliveryTorture) -> None:
    name = uuid.uuid4().hex[:8]
    for n in range(run.plan.tenants):
        item = tenant_lifecycle.create(name=f"Torture {n}", slug=f"torture-{name}-{n}", shards=1, by=SYSTEM)
        run.tenants.append(LoadedTenant(item.slug, item.tenant_id))


def write(run: DeliveryTorture, advance: Callable[[int], object]) -> None:
    """Let all processes work, and kill them, until all is written."""
    plan, started, seen = run.plan, time.monotonic(), 0
    rng = random.Random(f"{plan.seed} kills")  # noqa: S311  # it has to be repeatable
    todo = sorted((rng.randrange(plan.events), ROLES[n % len(ROLES)]) for n in range(plan.kills))
    for role, count in zip(ROLES, (plan.writers, plan.dispatchers, plan.consumers), strict=True):
        for _ in range(count):
            run.start(role)
    while any(child.poll() is None for child in run.running["writer"]) or run.written() < plan.events:
        time.sleep(_STEP)
        written = run.written()
        advance(written - seen)
        seen = written
        while todo and written >= todo[0][0]:
            time.sleep(rng.uniform(0, _STEP))
            run.kill(todo.pop(0)[1], rng)
        if all(child.poll() is not None for child in run.running["writer"]):
            if any(child.poll() for child in run.running["writer"]):
                raise TortureFailed(f"A writer failed: {_log(run, 'writer')}")
            if written < plan.events:
                run.start("writer")
        run.replace_dead()
    for _, role in todo:
        run.kill(role, rng)
    for child in run.running["writer"]:
        child.kill()
    run.seconds["writing"] = time.monotonic() - started


def drain(run: DeliveryTorture, say: Callable[[str], object]) -> None:
    """Wait until nothing is pending, and look at what has arrived. Ends, too, when nothing moves any more."""
    started = moved = time.monotonic()
    before: tuple[int, int] | None = None
    while time.monotonic() - moved < PATIENCE:
        run.pending, arrived = patiently(lambda: _pending(run)), run.receiver.arrivals.total()
        if not run.pending:
            break
        say(f"{run.pending} rows are pending")
        if (run.pending, arrived) != before:
            before, moved = (run.pending, arrived), time.monotonic()
        run.replace_dead()
        time.sleep(10 * _STEP)
    told = (patiently(partial(told_events.expected, tenant.tenant_id)) for tenant in run.tenants)
    run.expected = {key for keys_of_one in told for key in keys_of_one}
    run.seconds["draining"] = time.monotonic() - started


def _pending(run: DeliveryTorture) -> int:
    ours = {tenant.tenant_id for tenant in run.tenants}
    far = clock.stamp(clock.now().replace(year=9999))
    found = [key for shard in range(keys.SHARDS) for key in outbox_reader.due(shard, until=far, limit=_PENDING_LOOK)]
    return sum(keys.row_parts(key.event_id)[0] in ours for key in found)


def remove(run: DeliveryTorture) -> None:
    """Delete tickets and tenants; rows of the outbox go by their TTL."""
    for tenant in run.tenants:
        patiently(partial(_remove, tenant))


def _remove(tenant: LoadedTenant) -> None:
    cleanup.delete_tenant(tenant.tenant_id)


def figures(run: DeliveryTorture) -> dict[str, Any]:
    """Return what came of it, JSON-ready."""
    return {
        "seed": run.plan.seed,
        "events": len(run.expected),
        "arrivals": run.receiver.arrivals.total(),
        "refused_by_the_receiver": run.receiver.refused,
        "doubles": run.receiver.doubles,
        "doubles_allowed": run.doubles_allowed,
        "lost": sorted(map(list, run.lost))[:100],
        "unexpected": sorted(map(list, run.unexpected))[:100],
        "under_two_ids": sorted(map(list, run.unrecognisable))[:100],
        "pending": run.pending,
        "kills": dict(run.kills),
        "seconds": {name: round(seconds, 1) for name, seconds in run.seconds.items()},
    }


def _log(run: DeliveryTorture, role: str) -> str:
    texts = [path.read_text(errors="replace").strip() for path in sorted(run.folder.glob(f"{role}-*.log"))]
    return " / ".join(text[-600:] for text in texts if text)[-2000:] or "it printed nothing"
