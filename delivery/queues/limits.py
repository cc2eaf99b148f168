"""Bound how much of one tenant is on its way at once: at a sender, at a worker, and by the queues of each worker.

At a sender (`Lending`) a cap protects the others when a tenant's messages hold their slots for long. A tenant whose
messages are soon answered takes nothing from anybody while slots are idle: while its last answers were all quick, it
borrows. One slow answer ends that. Deliveries that fail late hang; after as many in a row as the cap, one is tried at a
time until one succeeds or fails at once. So a hang is bounded by deliveries, not by seconds.

At a worker (`Schedule`) a cap on what runs at the same time holds a slow receiver, and a token bucket a flood. A unit
stays taken until the delivery has really ended, so one that hangs keeps its tenant's unit and no other's.

A message that was being worked on when a worker died is a suspect. Suspects run one at a time, so that those that only
ran at the same time as a message that kills its worker are delivered by the next one. A message that was met in two
deaths runs alone, so that an innocent message is not blamed when an undetected poison message runs beside it.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from django.conf import settings

from portal.errors import Invalid
from portal.quotas import RecentTenants, TokenBucket
from portal.schema import keys


@dataclass(frozen=True)
class DeliveryLimits:
    """Bound one tenant at one sender, and again at one worker.

    `in_flight` messages may be unanswered at a time, and `per_second` may begin, after a burst of `burst`.
    """

    in_flight: int
    per_second: float
    burst: int


LimitsOf = Callable[[str], DeliveryLimits]  # by tenant id


def of_all(tenant_id: str) -> DeliveryLimits:
    """Return the limits of every tenant that has none of its own, which so far is each."""
    return DeliveryLimits(settings.DELIVERY_IN_FLIGHT, settings.DELIVERY_PER_SECOND, settings.DELIVERY_BURST)


def buckets(limits_of: LimitsOf, clock: Callable[[], float]) -> RecentTenants[TokenBucket]:
    """Return token buckets by tenant, with the rates that `limits_of` gives."""

    def bucket(tenant_id: str) -> TokenBucket:
        own = limits_of(tenant_id)
        return TokenBucket(per_second=own.per_second, burst=own.burst, clock=clock)

    return RecentTenants(bucket)


# --- at a sender ---

QUICK_SECONDS: Final = 2.0  # from sending to the answer
HANG_SECONDS: Final = 5.0  # from sending until a delivery failed, from which on it hung
ANSWERS: Final = 12  # quick ones in a row before anything is lent
_SHARE_LENT: Final = 3  # one more unit for so many of the cap
_SHARE_IDLE: Final = 8  # one slot in so many stays idle


class Lending:
    """Remember how quickly the tenants that wait are answered. The caller holds a lock around each call.

    `slots` is the number of messages that all workers together can work on; 0 where nobody knows, and nothing is lent.
    """

    def __init__(self, slots: int) -> None:
        self._most_at_work = slots - -(-slots // _SHARE_IDLE)
        self._quick: dict[str, int] = {}  # by tenant that waits, its last quick answers in a row
        self._hung: dict[str, int] = {}  # by tenant, its last deliveries in a row that hung

    def ended(self, tenant_id: str, seconds: float, *, failed: bool, waits: bool) -> None:
        """Take note of the end of a delivery, of a tenant that waits for more or not."""
        if failed and seconds > HANG_SECONDS:
            self._hung[tenant_id] = self._hung.get(tenant_id, 0) + 1
        else:
            self._hung.pop(tenant_id, None)
        if waits:
            self._quick[tenant_id] = self._quick.get(tenant_id, 0) + 1 if seconds <= QUICK_SECONDS else 0

    def forget(self, tenant_id: str) -> None:
        self._quick.pop(tenant_id, None)

    def units(self, tenant_id: str, cap: int, *, at_work: float) -> int:
        """Return how many units a tenant may have while so many messages of all are on their way."""
        if self._hung.get(tenant_id, 0) >= cap:
            return 1
        is_lent = self._quick.get(tenant_id, 0) >= ANSWERS and at_work < self._most_at_work
        return cap + cap // _SHARE_LENT if is_lent else cap


# --- at a worker ---

OVER_CAP_SECONDS: Final = 1.0  # after which a message that is over the cap is tried again
ALONE_STRIKES: Final = 2  # from which on a message runs alone,
ALONE_SECONDS: Final = 5.0  # for which a worker makes room, and then begins nothing else
SUSPECT_SECONDS: Final = 5.0  # the same, of a suspect beside which another runs
# A delivery that runs longer hangs. Its message is left to other workers, and to the dead letters in the end; its unit
# of the tenant's cap stays taken.
HANGS_SECONDS: Final = 60.0


class Schedule:
    """Count what runs in one worker, by queue and by tenant. The caller holds a lock around each call.

    A tenant's cap is its number in flight, and never more than half of the slots, an odd one rounded up.
    """

    def __init__(
        self, slots: int, *, limits_of: LimitsOf = of_all, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._slots, self._limits_of, self._clock = slots, limits_of, clock
        self._of_queue: Counter[int] = Counter()
        self._of_tenant: Counter[str] = Counter()
        self._suspect_until = self._reserved_until = float("-inf")
        self._begun_at: dict[int, int] = {}  # by queue, the number of the begin that was its last
        self._begins = 0
        self._buckets = buckets(limits_of, clock)

    @property
    def running(self) -> int:
        return self._of_queue.total()

    @property
    def free(self) -> int:
        """The slots in which a message may begin: none while one has the worker for itself."""
        return 0 if self.is_reserved else self._slots - self.running

    @property
    def is_reserved(self) -> bool:
        return self._clock() < self._reserved_until

    def reserve(self) -> None:
        """Begin nothing for ALONE_SECONDS, but what the worker is reserved for."""
        self._reserved_until = self._clock() + ALONE_SECONDS

    def open(self) -> None:
        self._reserved_until = float("-inf")

    def cap(self, tenant_id: str) -> int:
        return min(self._limits_of(tenant_id).in_flight, (self._slots + 1) // 2)

    def has_room(self, tenant_id: str) -> bool:
        return self._of_tenant[tenant_id] < self.cap(tenant_id)

    def in_turn(self, queues: Iterable[int]) -> list[int]:
        """Return the queues in the order in which they may begin something: fewest running first, then longest ago."""
        return sorted(queues, key=lambda queue: (self._of_queue[queue], self._begun_at.get(queue, 0), queue))

    def begin(self, queue: int, tenant_id: str, *, is_suspect: bool = False) -> float:
        """Take a slot, a unit of the tenant's cap and a token, and return 0.0.

        Where there is no unit, no token, or another suspect runs, take nothing and return the seconds after which to
        try again. Raises RuntimeError where no slot is free.
        """
        if self.running >= self._slots:
            raise RuntimeError("no slot is free")
        if not self.has_room(tenant_id):
            return OVER_CAP_SECONDS
        if is_suspect and self._clock() < self._suspect_until:
            return SUSPECT_SECONDS
        bucket = self._buckets.of(tenant_id)
        if not bucket.take():
            return bucket.seconds_to_next()
        self._begins += 1
        self._begun_at[queue] = self._begins
        self._of_queue[queue] += 1
        self._of_tenant[tenant_id] += 1
        if is_suspect:
            self._suspect_until = self._clock() + HANGS_SECONDS
        return 0.0

    def end(self, queue: int, tenant_id: str, *, is_suspect: bool = False) -> None:
        """Give back what `begin` took, but for the token."""
        self._of_queue[queue] -= 1
        self._of_tenant[tenant_id] -= 1
        if not self._of_tenant[tenant_id]:
            del self._of_tenant[tenant_id]
        if is_suspect:
            self._suspect_until = float("-inf")


# --- queues of workers ---

_SPREAD: Final = 8  # a queue is served by an eighth of the workers, so that four queues reach half of them at most


# Static on purpose: a lease would hand the queue of a message that kills its worker to the next worker, until none is
# left.
def queues_of(worker: int, *, of: int, queues: int) -> tuple[int, ...]:
    """Return the queues, numbered from 0, that the worker of this number, from 1, serves among `of` workers.

    Every queue is served by an eighth of the workers, and by one at least; no two workers differ by more than one
    queue. Raises Invalid for a number that no worker has.
    """
    if not 1 <= worker <= of:
        raise Invalid(f"Workers are numbered from 1 to {of:,}; there is no worker {worker:,}.")
    return tuple(q for q, serving in enumerate(workers_of(of, queues)) if worker - 1 in serving)


@lru_cache(maxsize=8)
def workers_of(workers: int, queues: int) -> tuple[frozenset[int], ...]:
    """Return the workers of each queue, both numbered from 0: those that serve the fewest so far, shuffled by a
    digest."""
    load = [0] * workers
    serving: list[frozenset[int]] = []
    for queue in range(queues):
        shuffled = sorted((load[w], keys.digest(f"{queue}/{w}", size=4), w) for w in range(workers))
        chosen = frozenset(w for _, _, w in shuffled[: max(1, workers // _SPREAD)])
        for worker in chosen:
            load[worker] += 1
        serving.append(chosen)
    return tuple(serving)


def load_of_workers(loads: Sequence[float], workers: int) -> list[float]:
    """Return, by queue, how much each of its workers has to do, those of its other queues included, from the loads of
    all queues."""
    serving = workers_of(workers, len(loads))
    of_worker: dict[int, float] = defaultdict(float)
    for load, those in zip(loads, serving, strict=True):
        for worker in those:
            of_worker[worker] += load / len(those)
    return [sum(of_worker[worker] for worker in those) / len(those) for those in serving]
