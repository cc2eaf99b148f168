"""Let one tenant write 4,000 times a second beside nineteen others, by a simulated clock, and count what is throttled.

Nothing that is throttled is tried again here: the load is what it is, whatever becomes of it. The limits at the door
are left out, too: they would stop this tenant long before. No wall clock is read, and the same seed gives the same
figures.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from proofs.hot_spots.key_designs import KEY_DESIGNS
from proofs.hot_spots.partition_buckets import PartitionBuckets
from proofs.hot_spots.simulated_desk import SimulatedDesk
from proofs.hot_spots.simulated_resharding import SimulatedFollower
from tenants.tenancy.shard_layout import MOST_SHARDS
from tickets.sharding.hot_tenants import COOL_DOWN

NOISY: Final = f"{20:032x}"
QUIET: Final = [f"{n:032x}" for n in range(1, 20)]
WRITES: Final = 4000  # a second, of the noisy tenant
PAGES: Final = 20
QUIET_WRITES: Final = 20
QUIET_PAGES: Final = 1
TICKETS: Final = 5000  # open, of the noisy tenant
QUIET_TICKETS: Final = 200
TICK: Final = 0.1  # seconds
CALM_SECONDS: Final = 60  # for which it goes on once all is done
FIXED_SECONDS: Final = 60  # of a design that does not adapt
_LONGEST: Final = 3600.0
_SEED: Final = 13
_PATIENCE: Final = 90.0  # seconds in which what is hot is found


@dataclass(frozen=True)
class ThrottlePlan:
    """One trial. `hot` is in write units a second; `row_kb` makes tickets and writes fewer and larger."""

    design: str
    burst_seconds: float
    hot: float
    row_kb: int = 1


@dataclass
class ThrottleCount:
    """Requests, and those of them that were throttled, by second and by whether they were the noisy tenant's."""

    asked: Counter[tuple[bool, int]] = field(default_factory=Counter)
    refused: Counter[tuple[bool, int]] = field(default_factory=Counter)

    def note(self, at: float, *, noisy: bool, went: bool) -> None:
        self.asked[noisy, int(at)] += 1
        self.refused[noisy, int(at)] += not went

    def share(self, *, noisy: bool, since: float = 0, until: float = _LONGEST) -> float:
        """Return which share of the requests in these seconds was throttled, 0 where there was none."""
        seconds = [key for key in self.asked if key[0] == noisy and since <= key[1] < until]
        return sum(self.refused[key] for key in seconds) / max(1, sum(self.asked[key] for key in seconds))


class ThrottleTrial:
    """One design under load. `writes` and `reads` are what became of the requests so far, `seconds` how long it took.

    `begun` and `ended` are the noisy tenant's reshardings: when, and to how many shards.
    """

    def __init__(self, plan: ThrottlePlan) -> None:
        self.plan, self.seconds = plan, 0.0
        self.writes, self.reads = ThrottleCount(), ThrottleCount()
        self._rng = random.Random(_SEED)  # noqa: S311  # it has to be repeatable
        self._buckets = PartitionBuckets(burst_seconds=plan.burst_seconds)
        self._design = KEY_DESIGNS[plan.design]
        noisy = SimulatedDesk(NOISY, self._design, tickets=TICKETS // plan.row_kb, row_kb=plan.row_kb)
        quiet = [
            SimulatedDesk(tenant_id, self._design, tickets=QUIET_TICKETS, row_kb=plan.row_kb) for tenant_id in QUIET
        ]
        self._noisy = noisy
        self._load = [
            (noisy, Arrivals(self._rng, WRITES / plan.row_kb), Arrivals(self._rng, PAGES)),
            *(
                (desk, Arrivals(self._rng, QUIET_WRITES / plan.row_kb), Arrivals(self._rng, QUIET_PAGES))
                for desk in quiet
            ),
        ]
        self._follower = SimulatedFollower([noisy, *quiet], self._buckets, hot=plan.hot)

    @property
    def begun(self) -> list[tuple[float, int]]:
        return self._follower.begun.get(NOISY, [])

    @property
    def ended(self) -> list[tuple[float, int]]:
        return self._follower.ended.get(NOISY, [])

    def run(self) -> ThrottleTrial:
        """Go on until CALM_SECONDS after the last resharding that is to be expected. Returns this trial."""
        ticks = 0
        while not self._is_over():
            self._tick(ticks * TICK)
            ticks += 1
            self.seconds = ticks * TICK
        return self

    def _tick(self, at: float) -> None:
        """Carry out all that arrives within a tick as if it came at its beginning, in any order."""
        writers = [desk for desk, writes, _ in self._load for _ in range(writes.until(at + TICK))]
        self._rng.shuffle(writers)
        records = []
        for desk in writers:
            record = desk.change(self._buckets, at, self._rng.randrange(desk.tickets))
            self.writes.note(at, noisy=desk is self._noisy, went=record is not None)
            if record is not None:
                records.append(record)
        for desk, _, pages in self._load:
            for _ in range(pages.until(at + TICK)):
                self.reads.note(at, noisy=desk is self._noisy, went=desk.read_page(self._buckets, at))
        if self._design.adapts:
            self._follower.tick(at, records)

    def _is_over(self) -> bool:
        if not self._design.adapts:
            return self.seconds >= FIXED_SECONDS
        if len(self.begun) > len(self.ended):
            return self.seconds >= _LONGEST
        if not self.ended:
            return self.seconds >= _PATIENCE
        last, shards = self.ended[-1]
        more = 0.0 if shards >= MOST_SHARDS else COOL_DOWN.total_seconds() + _PATIENCE
        return self.seconds >= last + max(CALM_SECONDS, more)


class Arrivals:
    """Requests that arrive independently of each other, so many a second."""

    def __init__(self, rng: random.Random, rate: float) -> None:
        self._rng, self._rate = rng, rate
        self._next = rng.expovariate(rate)

    def until(self, at: float) -> int:
        """Return how many have arrived since this was last asked."""
        count = 0
        while self._next < at:
            self._next += self._rng.expovariate(self._rate)
            count += 1
        return count
