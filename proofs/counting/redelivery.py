"""The real poller on a stream that delivers too much: batches come again, in parts, and overlapping earlier ones.

A poller of this kind may also be told to die between two of its writes (SIGUSR1), and a zombie applies what it reads
without holding any lease. All of it goes through `stream.process`, and none of it may change a number.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from portal import clock
from portal.streams import leases, shards
from portal.streams.poller import Poller
from proofs.counting.journal import Journal
from tickets.counting import aggregate_store, aggregates, stream_handler
from tickets.counting import fold as stream
from tickets.counting.fold import Outcome
from tickets.ticket.tables import TICKETS

OWNER: Final = "torture-"  # what the owners of our leases begin with
_TRIES: Final = 20  # to take a lease that its owner keeps writing
Records = Sequence[Mapping[str, Any]]

_process, _update = stream.process, aggregate_store.update


class Hostile:
    """Stands in place of `stream.process`, and of `worker.update` beneath it."""

    def __init__(self, rng: random.Random, redeliver: float, journal: Journal, *, zombie: bool = False) -> None:
        self._rng, self._redeliver, self._journal, self._zombie = rng, redeliver, journal, zombie
        self._earlier: deque[Records] = deque(maxlen=3)
        self._units: Counter[str] = Counter()  # of the call that is going on, in thousandths, by tenant
        self._updates_to_live = -1

    def arm(self, *_: Any) -> None:
        """Die behind one of the next writes."""
        self._updates_to_live = self._rng.randint(1, 6)

    def update(self, tenant_id: str, sort_key: str, **request: Any) -> tuple[dict[str, Any], float]:
        answer, units = _update(tenant_id, sort_key, **request)
        self._units[tenant_id] += round(units * 1000)
        self._updates_to_live -= 1
        if self._updates_to_live == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer, units

    def process(
        self, records: Records, *, shard: str, read_at: float, between: Callable[[], object] = lambda: None
    ) -> Outcome:
        """Apply the batch, and something of it or before it once more."""
        self._between = between
        if self._rng.random() < self._redeliver / 4:
            self._once(records[: self._rng.randint(1, len(records))], shard, read_at, "ahead")
        outcome = self._once(records, shard, read_at, "zombie" if self._zombie else "first")
        self._earlier.append(records)
        if self._rng.random() < self._redeliver:
            way, again = self._again(records)
            self._once(again, shard, read_at, way)
        return outcome

    def _again(self, records: Records) -> tuple[str, Records]:
        way = self._rng.choice(["same", "slice", "overlap"])
        if way == "overlap" and len(self._earlier) > 1:
            before = [record for batch in list(self._earlier)[:-1] for record in batch]
            start, end = self._rng.randrange(len(before)), self._rng.randint(1, len(records))
            return way, [*before[start:], *records[:end]]
        if way == "slice":
            start = self._rng.randrange(len(records))
            return way, records[start : self._rng.randint(start + 1, len(records))]
        return "same", records

    def _once(self, records: Records, shard: str, read_at: float, way: str) -> Outcome:
        self._units.clear()
        started = time.monotonic()
        outcome = _process(records, shard=shard, read_at=read_at, between=self._between)
        fold = aggregates.fold(records)
        events = {tenant: len(changes) for tenant, changes in fold.changes.items()}
        told: dict[str, Any] = {
            "way": way,
            "events": outcome.events,
            "applied": outcome.applied,
            "dead": outcome.dead,
            "units": round(outcome.write_units, 1),
            "seconds": round(time.monotonic() - started, 4),
            # Of the tenants with many changes in this batch: how many, and what they cost.
            "large": [[n, self._units[tenant] / 1000] for tenant, n in events.items() if n >= 100],
        }
        if way == "first":
            told["lags"] = _lags(records)
        self._journal.write(**told)
        return outcome


def _lags(records: Records) -> list[int]:
    """Milliseconds between each change of a ticket and now. A deletion says no time."""
    now = clock.now()
    at = [r["dynamodb"].get("NewImage", {}).get("updated_at", {}).get("S") for r in records]
    return [round((now - clock.parse(moment)).total_seconds() * 1000) for moment in at if moment]


def run(*, seed: int, number: int, redeliver: float, lease_seconds: float, journal: str) -> None:
    """A poller process, until it is killed or asked to stop."""
    told = Journal(journal)
    hostile = Hostile(random.Random(f"{seed} poller {number}"), redeliver, told)  # noqa: S311  # repeatable
    stream.process, aggregate_store.update = hostile.process, hostile.update
    poller, stopped = Poller(TICKETS, stream_handler.handle, lease_seconds=lease_seconds), []
    poller.me = f"{OWNER}{poller.me}"
    signal.signal(signal.SIGUSR1, hostile.arm)
    signal.signal(signal.SIGTERM, lambda *_: stopped.append(True))
    told.write(me=poller.me)
    _rob(poller.me)
    poller.run(lambda: not stopped)


def _rob(me: str) -> None:
    """Take the shards of pollers that are none of ours: they get them back when all of this is over."""
    for _ in range(_TRIES):
        strange = [
            lease for lease in leases.stored(shards.arn(TICKETS)) if lease.owner and not lease.owner.startswith(OWNER)
        ]
        if all(leases.take(lease, me=me) for lease in strange):
            return


def run_zombie(*, seed: int, number: int, redeliver: float, seconds: float, journal: str) -> None:
    """Apply what the stream holds from the stored checkpoints on, beside the poller that holds the leases."""
    hostile = Hostile(random.Random(f"{seed} zombie {number}"), redeliver, Journal(journal), zombie=True)  # noqa: S311
    arn = shards.arn(TICKETS)
    iterators = {
        lease.shard: shards.iterator(arn, lease.shard, after=lease.checkpoint or "") for lease in leases.stored(arn)
    }
    end = time.monotonic() + seconds
    while iterators and time.monotonic() < end:
        for shard, iterator in list(iterators.items()):
            read_at, batch = time.monotonic(), shards.read(iterator)
            if batch.records:
                hostile.process(
                    [record.raw for record in batch.records], shard=shards.name_of(arn, shard), read_at=read_at
                )
            if batch.next is None:
                del iterators[shard]
            else:
                iterators[shard] = batch.next
        time.sleep(0.05)
