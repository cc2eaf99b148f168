"""The handlers that AWS Lambda calls in place of `run_dispatch`, `run_delivery` and `note_bounces`.

No invocation relies on what an earlier one left in the process, so no message waits there: `outbox_handler` leaves what
is over a tenant's limits in the outbox, where `sweep_handler`, called each minute, finds it with all else that is due.

A batch of deliveries runs in parallel, within the same limits for each tenant; the answer names the messages that
Lambda must not delete. Suspects, which were being worked on when an invocation died, run after all others of the batch
and one in a batch, so that a message that kills its invocation takes no other along.

Sources: AWS, "Using AWS Lambda with Amazon DynamoDB" (the event), "Using Lambda with Amazon SQS", "Handling errors for
an SQS event source in Lambda" (an answer with an empty list deletes all).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
if not apps.ready:
    django.setup()

from delivery.mail import bounces
from delivery.outbox.stored import OUTBOX
from delivery.queues import message_handling, queue_transport
from delivery.queues.dispatcher import Dispatcher
from delivery.queues.limits import Schedule
from delivery.queues.message_handling import Handled, MessageHandler
from delivery.queues.periodic_work import PeriodicWork
from delivery.queues.queue_transport import BATCH, REQUEST, QueueTransport, Received
from delivery.queues.sender import Sender
from portal.errors import PortalError, Unavailable
from portal.load import reporting
from portal.streams import lambda_answer, stream_source
from portal.streams.batch import Batch, BatchResult, batch_of

log = logging.getLogger("pooldesk.delivery")

# --- the outbox ---

SWEEPS_SECONDS: Final = 45.0  # of one call, while there is something to send; the next call comes after a minute
# No stream tells a sweep that a message was answered, so it looks often: a tenant with a backlog has to wait for it.
_WATCHED_SECONDS: Final = 1.0


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
        transport,
        sweeps=lambda: True,
        watched_seconds=_WATCHED_SECONDS,
    )
    try:
        return {"sent": work.catch_up(seconds=SWEEPS_SECONDS)}
    except Unavailable as error:
        log.warning("What is due cannot be sent, it is tried again: %s", error.message)
        return {}


def _take_notes() -> None:
    reporting.start("dispatch function", "worker", in_thread=False)
    reporting.turn()


def _handle(batch: Batch) -> BatchResult:
    dispatcher = _dispatcher()
    dispatcher.look_up()  # another process may have seen the answers
    return dispatcher.handle(stream_source.own(OUTBOX, batch))


@lru_cache(maxsize=1)
def _dispatcher() -> Dispatcher:
    return Dispatcher(Sender(QueueTransport(), most_waiting=0))


# --- a queue of deliveries ---

# One invocation at a time runs in a process, and the next finds the tenants' buckets as this one left them.
_schedule: Final = Schedule(BATCH)
_handler: Final = MessageHandler()


def queue_handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Deliver a batch of at most BATCH messages. Returns the ids of those that stay in the queue."""
    reporting.start("delivery function", "delivery", in_thread=False)
    reporting.turn()
    ids, begun, outcomes = dict[str, str](), list[Received](), list[tuple[Received, Handled]]()
    for record in event.get("Records", ()):
        one = _received(record)
        ids[one.handle] = record["messageId"]
        if not message_handling.is_readable(one):
            continue  # Lambda deletes what is not named
        if seconds := _schedule.begin(one.queue, one.message.tenant_id, is_suspect=one.strikes > 0):
            outcomes.append((one, message_handling.postponed(one, seconds=seconds)))
        else:
            begun.append(one)
    try:
        for together in ([o for o in begun if not o.strikes], [o for o in begun if o.strikes]):
            outcomes += _delivered(together)
    finally:
        for one in begun:
            _schedule.end(one.queue, one.message.tenant_id, is_suspect=one.strikes > 0)
    stay = [ids[one.handle] for one, handled in outcomes if not _concluded(one, handled)]
    return {"batchItemFailures": [{"itemIdentifier": record_id} for record_id in stay]}


def _received(record: Mapping[str, Any]) -> Received:
    attributes, queue = record.get("attributes", {}), int(record["eventSourceARN"].rpartition("-")[2])
    receives, sent_at = attributes.get("ApproximateReceiveCount", 1), attributes.get("SentTimestamp", 0)
    request = queue_transport.request_of(record.get("messageAttributes", {}).get(REQUEST, {}).get("stringValue"))
    return Received(queue, record["body"], record["receiptHandle"], int(receives), int(sent_at) / 1000, request)


def _delivered(together: list[Received]) -> list[tuple[Received, Handled]]:
    if not together:
        return []
    with ThreadPoolExecutor(len(together)) as pool:
        return list(zip(together, pool.map(_handler.handle, together), strict=True))


def _concluded(one: Received, handled: Handled) -> bool:
    if handled.again is None:
        return True
    try:
        return not QueueTransport().send(one.queue, [handled.again], delay=handled.delay)
    except PortalError:
        return False


# --- the queue in which Amazon SES tells what bounced ---


def bounce_handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Note a batch of notifications. Returns the ids of those that stay in the queue."""
    return bounces.note_batch(event)
