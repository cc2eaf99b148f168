"""See what is hot by the product's code, and let reshardings take the time that the mover's steps take.

The sketch, its windows and bounds, how many shards are asked for, the rest between two reshardings, the waits, the rate
of moves: all are the product's. Simulated are the clock, the layout, and that each process hears of a layout as late as
it may.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from portal.streams.batch import Record
from proofs.hot_spots.partition_buckets import PartitionBuckets
from proofs.hot_spots.simulated_desk import SimulatedDesk
from tenants.tenancy.shard_layout import CONTEXT_SECONDS
from tickets.jobs.job_follower import LOOK_SECONDS
from tickets.sharding import hot_partitions, hot_tenants, mover
from tickets.sharding.hot_partitions import HeatWatch


class SimulatedFollower:
    """Do what a stream worker does about heat, one tick of a simulated clock after the other.

    `begun` and `ended` are the moments of reshardings by tenant, with the shards that were asked for.
    """

    def __init__(self, desks: Sequence[SimulatedDesk], buckets: PartitionBuckets, *, hot: float) -> None:
        self._desks = {desk.tenant_id: desk for desk in desks}
        self._buckets, self._hot = buckets, hot
        self._watch = HeatWatch(hot=hot)
        self._looks_at = 0.0
        self._running: dict[str, Iterator[None]] = {}
        self._now = 0.0
        self.begun: dict[str, list[tuple[float, int]]] = {}
        self.ended: dict[str, list[tuple[float, int]]] = {}

    def tick(self, at: float, records: Sequence[Record]) -> None:
        """Take in the records of a tick, and do what is to be done at its end."""
        self._now = at
        self._watch.add(records)
        if at >= self._looks_at:
            self._looks_at = at + LOOK_SECONDS
            self._look()
        for tenant_id, steps in list(self._running.items()):
            if next(steps, "ended") == "ended":
                del self._running[tenant_id]
                self.ended.setdefault(tenant_id, []).append((at, self._desks[tenant_id].writers))

    def _look(self) -> None:
        heats = hot_partitions.lasting([self._watch.news()], hot=self._hot)
        worst = {heat.tenant_id: heat for heat in reversed(heats)}
        for tenant_id, heat in worst.items():
            desk = self._desks[tenant_id]
            to = hot_tenants.wanted_shards(desk.writers, heat.units, self._hot)
            if to > desk.readers and tenant_id not in self._running and self._has_cooled(tenant_id):
                self.begun.setdefault(tenant_id, []).append((self._now, to))
                self._running[tenant_id] = self._reshard(desk, to)

    def _has_cooled(self, tenant_id: str) -> bool:
        last = self.ended.get(tenant_id)
        return last is None or last[-1][0] + hot_tenants.COOL_DOWN.total_seconds() < self._now

    def _reshard(self, desk: SimulatedDesk, to: int) -> Iterator[None]:
        """Go through the steps of `mover.py`: widen, switch, move, narrow. Each layout is heard of CONTEXT_SECONDS
        later."""

        def widen() -> None:
            desk.readers = to

        yield from self._settle(widen)
        yield from self._settle(lambda: desk.write_to(to))
        began, done = self._now, 0
        left = desk.misplaced()
        while left:
            due = int((self._now - began) * mover.RATE) - done
            for ticket in left[:due]:
                # One that is throttled comes again with the next look.
                desk.move(self._buckets, self._now, ticket)
            done += min(due, len(left))
            left = left[due:] or desk.misplaced()
            yield
        yield from self._settle(lambda: None)

    def _settle(self, heard: Callable[[], None]) -> Iterator[None]:
        began, known = self._now, False
        while self._now < began + mover.SETTLE_SECONDS:
            if not known and self._now >= began + CONTEXT_SECONDS:
                known = True
                heard()
            yield
