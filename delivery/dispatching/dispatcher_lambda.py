"""The handlers that AWS Lambda calls in place of `run_dispatch`: one for the outbox's stream, one for the clock.

Both do with the functions of the poller's what the poller does. No invocation may rely on what an earlier one left in
the process, so no message waits here: `outbox_handler` leaves what is over a tenant's limits in the outbox at once, and
`sweep_handler`, which a rule of EventBridge calls each minute, finds it there with all else that is due, and works on
it for most of that minute. What the process still knows of the messages on their way only holds it to the tenants'
limits.

Sources: AWS, "Using AWS Lambda with Amazon DynamoDB" (the event), "Lambda execution environment lifecycle" (what a
process keeps, and for how long nobody says).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
if not apps.ready:
    django.setup()

from delivery.dispatching.dispatcher import Dispatcher
from delivery.dispatching.periodic_work import PeriodicWork
from delivery.dispatching.queue_refresher import Refresher
from delivery.dispatching.sender import Sender
from delivery.outbox.tables import OUTBOX
from delivery.queues.queue_transport import QueueTransport
from portal.errors import Unavailable
from portal.noise import noise_teller
from portal.streams import lambda_answer, stream_source
from portal.streams.batch import Batch, BatchResult, batch_of

SWEEPS_SECONDS: Final = 45.0  # of one call, while there is something to send; the next call comes after a minute
# No stream tells a sweep that a message was answered, so it looks often: a tenant with a backlog has to wait for it.
_WATCHED_SECONDS: Final = 1.0

log = logging.getLogger("pooldesk.delivery")


def outbox_handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Send the new rows of a batch of the outbox's stream. Returns the first record that must come again, if any."""
    _take_notes()
    records = event.get("Records", ())
    arn = records[0].get("eventSourceARN", "") if records else ""
    with stream_source.of_arn(arn).entered():
        return lambda_answer.answer(batch_of(arn, "", records), _handle)


def sweep_handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Send what is due and nobody sent, carry out holds, and tell how full the queues are. Returns how many went.

    While the database is away nothing is returned: the next minute brings the next call.
    """
    _take_notes()
    transport = QueueTransport()
    sender = Sender(transport)
    work = PeriodicWork(
        Dispatcher(sender),
        sender,
        refresher=Refresher(sender, transport),
        sweeps=lambda: True,
        watched_seconds=_WATCHED_SECONDS,
    )
    try:
        return {"sent": work.catch_up(seconds=SWEEPS_SECONDS)}
    except Unavailable as error:
        log.warning("What is due cannot be sent, it is tried again: %s", error.message)
        return {}


def _take_notes() -> None:
    noise_teller.start("dispatch function", "worker", beside=False)
    noise_teller.turn()


def _handle(batch: Batch) -> BatchResult:
    dispatcher = _dispatcher()
    dispatcher.look_up()  # another process may have seen the answers
    return dispatcher.handle(stream_source.own(OUTBOX, batch))


@lru_cache(maxsize=1)
def _dispatcher() -> Dispatcher:
    return Dispatcher(Sender(QueueTransport(), most_waiting=0))
