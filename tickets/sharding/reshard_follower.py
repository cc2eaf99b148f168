"""Carry out, beside the stream, what operators and heat have asked for: one resharding at a time in each process."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial
from typing import Final

from portal import clock
from portal.streams.batch import Batch
from tickets.jobs.job_follower import JobFollower
from tickets.sharding import hot_partitions, reshard_job, reshard_requests
from tickets.sharding.hot_partitions import HeatWatch
from tickets.sharding.reshard_job import Mover
from tickets.sharding.shard_rows import StrayWatch
from tickets.sharding.stored import ReshardItem

log = logging.getLogger("pooldesk.stream")

_KEPT: Final = timedelta(days=1)  # as long as a record can come late; the history is kept for good


class ReshardFollower(JobFollower[ReshardItem]):
    """Works in a thread of its own, or `turn` is called now and then. `hot` is in write units a second; 0: no heat."""

    def __init__(self, *, hot: float, settle_seconds: float | None = None, rate: float = reshard_job.RATE) -> None:
        self._hot = hot
        self._heat = HeatWatch(hot=hot) if hot else None
        self._strays = StrayWatch()
        job = partial(Mover, settle_seconds=settle_seconds, rate=rate)
        super().__init__(reshard_requests.RESHARDINGS, job, look=self._all_last)

    def look(self, batch: Batch) -> None:
        """Look at a batch that has been applied, for where its tickets stand. Its trouble is nobody else's."""
        try:
            self._strays.look(batch.records)
            if self._heat:
                self._heat.add(batch.records)
        except Exception:
            log.exception("A batch could not be looked at for where its tickets stand.")

    def _all_last(self) -> list[ReshardItem]:
        """Return the last resharding of each tenant; those that heat has just asked for are among them."""
        last = reshard_requests.RESHARDINGS.all_last()
        self._strays.learn(last)
        self._strays.put_right()
        if self._heat and (heats := self._heat.hot()) and hot_partitions.ask(heats, last, hot=self._hot):
            last = reshard_requests.RESHARDINGS.all_last()
        for item in last:
            if item.ended_at and clock.parse(item.ended_at) + _KEPT < clock.now():
                reshard_requests.forget(item)
        return last
