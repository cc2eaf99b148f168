"""The real poller on a stream that delivers too much: batches come again, in parts, and overlapping earlier ones.

A poller of this kind may also be told to die between two of its requests (SIGUSR1), its clock jumps, one tenant is
throttled now and then, and a zombie applies what it reads while another poller follows the stream. All goes through
`stream_handler.handle`, and none of it may change a number.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import cycle
from typing import Any, Final

from portal import clock
from portal.dynamo import client
from portal.dynamo.client import SharedConnection
from portal.dynamo.store import Store
from portal.errors import PortalError, Throttled
from portal.isolation import guard
from portal.streams import positions, shards
from portal.streams.batch import Batch, BatchResult, Record
from portal.streams.poller import Poller
from proofs.forked import Journal, asked_to_stop
from proofs.harness import LEASE_SECONDS
from tickets.counting import stream_handler
from tickets.ticket.stored import TICKETS
from tickets.verification import rebuild, verify

ZOMBIE_SECONDS: Final = 3.0
_REPAIR_PATIENCE: Final = 60.0  # seconds that hostile pollers may make no progress
OWNER: Final = "!torture-"  # begins the names of our pollers: before all others, so they follow the stream meanwhile
_THROTTLED: Final = 0.5  # of the calls with changes of the tenant that is throttled: one of its requests is refused
_JUMPS: Final = (-1, 0, 0, 1)  # hours that a process's clock is off, drawn anew now and then
_JUMP_EVERY: Final = 3.0  # seconds
Records = Sequence[Record]
Handle = Callable[[Batch], BatchResult]


def _dispatch(operation: str, request: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = SharedConnection.dispatch(client.connection("worker"), operation, request)
    return answer


class Hostile:
    """Stands in place of `stream_handler.handle`, and of what sends its requests."""

    def __init__(
        self,
        rng: random.Random,
        redeliver: float,
        journal: Journal,
        *,
        zombie: bool = False,
        throttled: str = "",
        handle: Handle = stream_handler.handle,
    ) -> None:
        self._rng, self._redeliver, self._journal, self._zombie = rng, redeliver, journal, zombie
        self._throttled, self._handle = throttled, handle
        # By shard: a record is delivered again in its own shard, and in no other.
        self._earlier: defaultdict[str, deque[Records]] = defaultdict(lambda: deque(maxlen=3))
        self._requests_to_live = self._requests_to_refusal = -1

    def arm(self, *_: Any) -> None:
        """Die behind one of the next requests."""
        self._requests_to_live = self._rng.randint(1, 6)

    def dispatch(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request of the worker; those for a tenant's aggregates may fail, or be the last one."""
        if not guard.acted_for():
            return _dispatch(operation, request)
        if guard.acted_for() == self._throttled:
            self._requests_to_refusal -= 1
            if self._requests_to_refusal == 0:
                raise Throttled("The torture refuses this.")
        answer = _dispatch(operation, request)
        self._requests_to_live -= 1
        if self._requests_to_live == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    def handle(self, batch: Batch) -> BatchResult:
        """Apply the batch, and something of it or before it once more."""
        records = batch.records
        if self._rng.random() < self._redeliver / 4:
            self._once(batch, records[: self._rng.randint(1, len(records))], "ahead")
        result = self._once(batch, records, "zombie" if self._zombie else "first")
        if result.deferred:
            return result  # what is applied behind deferred records would leave them out
        self._earlier[batch.shard_id].append(records)
        if self._rng.random() < self._redeliver:
            way, again = self._again(batch.shard_id, records)
            self._once(batch, again, way)
        return result

    def _again(self, shard_id: str, records: Records) -> tuple[str, Records]:
        way = self._rng.choice(["same", "slice", "overlap"])
        earlier = list(self._earlier[shard_id])
        if way == "overlap" and len(earlier) > 1:
            before = [record for batch in earlier[:-1] for record in batch]
            start, end = self._rng.randrange(len(before)), self._rng.randint(1, len(records))
            return way, [*before[start:], *records[:end]]
        if way == "slice":
            start = self._rng.randrange(len(records))
            return way, records[start : self._rng.randint(start + 1, len(records))]
        return "same", records

    def _once(self, batch: Batch, records: Records, way: str) -> BatchResult:
        # Not each request by itself: a call of many requests would hardly ever come to its end.
        self._requests_to_refusal = self._rng.randint(1, 8) if self._rng.random() < _THROTTLED else -1
        result = self._handle(Batch(batch.stream_arn, batch.shard_id, tuple(records)))
        counts = {name: result.counts[name] for name in ("events", "dead")}
        self._journal.write(way=way, **counts)
        return result


class JumpingClock:
    """Jumps by an hour, to and fro."""

    def __init__(self, rng: random.Random) -> None:
        self._rng, self._real, self._hours, self._until = rng, clock.now, 0, 0.0

    def now(self) -> datetime:
        if time.monotonic() > self._until:
            self._hours, self._until = self._rng.choice(_JUMPS), time.monotonic() + _JUMP_EVERY
        return self._real() + timedelta(hours=self._hours)


def poll(told: Journal, seed: int, *, redeliver: float, throttled: str = "") -> None:
    """Run a poller process, until it is killed or asked to stop."""
    hostile = _hostile(told, seed, redeliver, throttled)
    poller, stopped = Poller(TICKETS, hostile.handle, lease_seconds=LEASE_SECONDS, threads=1), asked_to_stop()
    poller.me = f"{OWNER}{poller.me}"
    signal.signal(signal.SIGUSR1, hostile.arm)
    told.write(me=poller.me)
    poller.run(lambda: not stopped)


def _hostile(told: Journal, seed: int, redeliver: float, throttled: str, *, zombie: bool = False) -> Hostile:
    """Put what is hostile in place in this process."""
    rng = random.Random(seed)  # noqa: S311  # it has to be repeatable
    hostile = Hostile(rng, redeliver, told, zombie=zombie, throttled=throttled)
    client.connection("worker").dispatch = hostile.dispatch  # type: ignore[method-assign, assignment]
    clock.now = JumpingClock(rng).now
    return hostile


def haunt(told: Journal, seed: int, *, redeliver: float, throttled: str) -> None:
    """Apply what the stream holds from the stored positions on, while a poller follows the stream."""
    hostile = _hostile(told, seed, redeliver, throttled, zombie=True)
    arn = shards.arn(TICKETS)
    iterators = {one.shard: shards.iterator(arn, one.shard, after=one.checkpoint) for one in positions.unfinished(arn)}
    end = time.monotonic() + ZOMBIE_SECONDS
    while iterators and time.monotonic() < end:
        for shard, iterator in list(iterators.items()):
            answer = shards.read(iterator)
            if answer.records and hostile.handle(Batch(arn, shard, answer.records)).deferred:
                return  # it would have to bring them again before it goes on
            if answer.next is None:
                del iterators[shard]
            else:
                iterators[shard] = answer.next
        time.sleep(0.05)


def repair(told: Journal, seed: int, *, tenants: list[str]) -> None:
    """Rebuild and verify healthy tenants until it is asked to stop: nothing may be found wrong or taken away."""
    clock.now = JumpingClock(random.Random(seed)).now  # noqa: S311  # it has to be repeatable
    stopped = asked_to_stop()
    for tenant_id in cycle(tenants):
        if stopped:
            return
        repository = Store("tenant", tenant_id)
        try:
            done = rebuild.rebuild(repository, timeout=_REPAIR_PATIENCE)
            told.write(removed=[asdict(one) for one in done.removed], moved=done.tickets)
            verdict = verify.verify(repository, settle=_REPAIR_PATIENCE)
            told.write(state=verdict.state, differences=[asdict(one) for one in verdict.differences])
        except PortalError as error:
            told.write(failed=error.message)
