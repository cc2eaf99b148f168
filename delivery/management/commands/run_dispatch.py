"""`manage.py run_dispatch`: sends what the outbox holds, one of any number of dispatchers."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, ClassVar

from delivery.outbox.stored import OUTBOX
from delivery.queues.dispatcher import IF_LOST, Dispatcher
from delivery.queues.periodic_work import PeriodicWork
from delivery.queues.queue_transport import QueueTransport
from delivery.queues.sender import Sender
from portal.management.worker_command import FollowCommand
from portal.schema.access_patterns import cost
from portal.schema.registry import Role
from portal.streams.poller import Poller


class Command(FollowCommand):
    costs = cost(
        get="finished shard",
        query="finished shard, hold of deliveries, outbox rows by status, placed tenant, poller, watermark",
        write="outbox row, poller, shard, watermark",
        per="event",
    )
    help = (
        "Follow the outbox's stream and send what is new to the queues, until Ctrl-C or SIGTERM; and send what is due "
        "again, or was missed, as the index of pending rows has it. Tenants with an outbox of their own are served "
        "too. Any number of these may run, on any machines: one follows, and another one takes over where it died. "
        "While the queues or the database cannot be reached, events wait in the outbox. A line of JSON on stdout says "
        "every ten seconds, and at the end, what the stream brought since the start: records read, messages sent, "
        "those that waited here or were left to the index because their tenant had enough on its way, answers seen, "
        "batches, the shards held, errors of reading and writing, and lag_ms. "
        "Exit status: 0 stopped as asked; 1 refused or failed."
    )
    noise: ClassVar[tuple[str, Role] | None] = ("dispatcher", "worker")
    table = OUTBOX
    counts: ClassVar[dict[str, float]] = {"sent": 0, "waiting": 0, "left": 0, "answers": 0}

    @cached_property
    def _transport(self) -> QueueTransport:
        return QueueTransport()

    @cached_property
    def _sender(self) -> Sender:
        return Sender(self._transport)

    @cached_property
    def _dispatcher(self) -> Dispatcher:
        return Dispatcher(self._sender)

    @cached_property
    def _periodic_work(self) -> PeriodicWork:
        return PeriodicWork(self._dispatcher, self._sender, self._transport, sweeps=lambda: self._poller.leads)

    def poller(self, *, lease_seconds: float, **size: Any) -> Poller:
        handle = self._dispatcher.handle
        return Poller(OUTBOX, handle, if_lost=IF_LOST, lease_seconds=lease_seconds, **size)

    def background_work(self) -> AbstractContextManager[None]:
        return self._periodic_work.running()

    def is_done(self) -> bool:
        return self._periodic_work.exhaust()
