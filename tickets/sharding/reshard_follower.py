"""Carry out, beside the stream, what operators and heat have asked for: one resharding at a time in each process."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Final

from portal import clock
from portal.streams import beside
from portal.streams.batch import Batch, BatchResult, Handler
from tickets.jobs.job_follower import LOOK_SECONDS, Again, JobFollower
from tickets.sharding import hot_tenants, mover, reshard_notes
from tickets.sharding.hot_partitions import HeatWatch
from tickets.sharding.items import ReshardItem
from tickets.sharding.mover import Mover
from tickets.sharding.stray_rows import StrayWatch

log = logging.getLogger("pooldesk.stream")

_KEPT: Final = timedelta(days=1)  # as long as a record can come late; the history is kept for good


class ReshardFollower:
    """Works in a thread of its own, or `turn` is called now and then. `hot` is in write units a second; 0: no heat."""

    def __init__(self, *, hot: float, settle_seconds: float | None = None, rate: float = mover.RATE) -> None:
        self._hot = hot
        self._heat = HeatWatch(hot=hot) if hot else None
        self._strays = StrayWatch()
        self._settle_seconds, self._rate = settle_seconds, rate
        self._jobs = JobFollower(self._job, unfinished=reshard_notes.UNFINISHED, name="resharding")

    def watching(self, handler: Handler) -> Handler:
        """Return the handler, with a look at each batch that it has applied. Its own trouble is not the handler's."""

        def handle(batch: Batch) -> BatchResult:
            result = handler(batch)
            try:
                self._strays.look(batch.records)
                if self._heat:
                    self._heat.add(batch.records)
            except Exception:
                log.exception("A batch could not be looked at for where its tickets stand.")
            return result

        return handle

    def running(self) -> AbstractContextManager[None]:
        """Work while the context lasts."""
        return beside.working(self.turn, pause=lambda: LOOK_SECONDS, name="resharding", log=log)

    def turn(self, again: Again = lambda: True) -> int:
        """Look once what there is to do, and do it while `again` says so. Return how many reshardings have ended.

        Raises Unavailable.
        """
        last = reshard_notes.RESHARDINGS.all_last()
        self._strays.learn(last)
        self._strays.put_right()
        if self._heat and (heats := self._heat.hot()) and hot_tenants.ask(heats, last, hot=self._hot):
            last = reshard_notes.RESHARDINGS.all_last()
        for item in last:
            if item.ended_at and clock.parse(item.ended_at) + _KEPT < clock.now():
                reshard_notes.forget(item)
        return self._jobs.turn(last, again)

    def _job(self, item: ReshardItem, again: Again) -> Mover:
        return Mover(item, again=again, settle_seconds=self._settle_seconds, rate=self._rate)
