"""`manage.py run_stream`: keeps the aggregates and the search indexes, one of any number of pollers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cached_property
from typing import Any, ClassVar

from django.conf import settings

from delivery.timers import due
from delivery.timers.due_worker import DueWorker
from portal.errors import Unavailable
from portal.load import reporting
from portal.management.worker_command import FollowCommand
from portal.schema.access_patterns import cost
from portal.schema.registry import Role
from portal.streams.batch import Batch, BatchResult
from portal.streams.poller import Poller
from portal.streams.worker import WORKER
from tickets.following import lifecycle_work, ticket_stream
from tickets.following.ticket_stream import IF_LOST, merges
from tickets.sharding.reshard_follower import ReshardFollower
from tickets.ticket.stored import TICKETS


class Command(FollowCommand):
    costs = cost(
        get="finished shard",
        query="bulk job, due rows by time, export, finished shard, move, placed tenant, poller, purge, rehearsal, "
        "resharding, search directory, watermark",
        write="aggregate, poller, search directory, shard, watermark",
        per="change",
    )
    help = (
        "Follow the tickets' stream, keep the aggregates and the search indexes, carry out what is to be resharded, "
        "and do what the due index has for this moment, such as waking snoozed tickets; where processes have no roles "
        "of their own also what run_lifecycle does. Until Ctrl-C or SIGTERM; then finish the batch, write how far it "
        "came, and release the shards. "
        "Tenants that have tables of their own are served too, each by a small poller beside the large one. "
        "Any number of these may run, on any machines: one follows, and another one takes over where it died. "
        "It waits while the database cannot be reached, and never ends for that. A line "
        "of JSON on stdout says every ten seconds, and at the end, what was done since the start: records read, events "
        "among them that concern tickets, changes applied and indexed, dead letters, batches, write units, the shards "
        "held, errors of reading and writing, and lag_ms, by how much aggregates and indexes are behind. "
        "Exit status: 0 stopped as asked; 1 refused or failed."
    )
    noise: ClassVar[tuple[str, Role] | None] = ("stream worker", "worker")
    table = TICKETS
    counts: ClassVar[dict[str, float]] = {
        "events": 0,
        "applied": 0,
        "dead": 0,
        "write_units": 0,
        "indexed": 0,
        "index_write_units": 0,
    }

    @cached_property
    def _follower(self) -> ReshardFollower:
        return ReshardFollower(hot=settings.HOT_PARTITION_UNITS)

    def poller(self, *, lease_seconds: float, **size: Any) -> Poller:
        return Poller(TICKETS, self._handle, if_lost=IF_LOST, lease_seconds=lease_seconds, **size)

    def _handle(self, batch: Batch) -> BatchResult:
        result = ticket_stream.handle(batch)
        self._follower.look(batch)
        return result

    def gauges(self) -> Mapping[str, float]:
        try:
            return {**super().gauges(), reporting.DUE_LAG: due.worst_lag(WORKER)}
        except Unavailable:  # the alarm about the stream rings where this lasts
            return super().gauges()

    def is_done(self) -> bool:
        return merges.is_idle

    @contextmanager
    def background_work(self) -> Iterator[None]:
        lifecycle = lifecycle_work.running() if lifecycle_work.is_done_by_workers() else nullcontext()
        timers = DueWorker(leads=lambda: self._poller.leads)
        with self._follower.running(), lifecycle, merges.running(), timers.running():
            yield
