"""Decide which message a worker may begin now. Nothing in here waits, sends or reads a clock of its own.

A tenant's share of a worker is bounded twice: by a cap on what of it runs at the same time, which is what holds a slow
receiver, and by a token bucket, which holds a flood. A unit of the cap stays taken until the delivery has really ended,
however long that takes: a delivery that hangs keeps its unit, and no other tenant's.

A message that was being worked on when a worker died is a suspect. Suspects run one at a time, so that those that only
ran beside a message that kills its worker are delivered by the next one, and only the killer is met again and again.
One that hangs makes way for the next. What was met in two deaths runs alone: for a while nothing begins, and nothing
new begins beside it, so that no message is held for a killer because killers that nobody suspects yet begin beside it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from delivery.queues import limits
from delivery.queues.limits import LimitsOf
from portal.tenant_buckets import RecentTenants, TokenBucket

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
        self, slots: int, *, limits_of: LimitsOf = limits.of_all, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._slots, self._limits_of, self._clock = slots, limits_of, clock
        self._of_queue: Counter[int] = Counter()
        self._of_tenant: Counter[str] = Counter()
        self._suspect_until = self._reserved_until = float("-inf")
        self._begun_at: dict[int, int] = {}  # by queue, the number of the begin that was its last
        self._begins = 0
        self._buckets = RecentTenants(self._new_bucket)

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
        """Let everything begin again."""
        self._reserved_until = float("-inf")

    def cap(self, tenant_id: str) -> int:
        """Return how many deliveries of a tenant may run at the same time."""
        return min(self._limits_of(tenant_id).in_flight, (self._slots + 1) // 2)

    def has_room(self, tenant_id: str) -> bool:
        """Tell whether a unit of the tenant's cap is free."""
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

    def _new_bucket(self, tenant_id: str) -> TokenBucket:
        own = self._limits_of(tenant_id)
        return TokenBucket(per_second=own.per_second, burst=own.burst, clock=self._clock)
