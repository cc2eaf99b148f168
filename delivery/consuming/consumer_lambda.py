"""The handler that AWS Lambda calls with a batch of one queue, the other host of deliveries beside `run_delivery`.

A batch is delivered side by side, within the same limits for each tenant; what is over them is sent again with a delay.
The answer names the messages that Lambda must not delete (ReportBatchItemFailures). What was being worked on when an
invocation died is a suspect: it runs after all others of its batch, and one in a batch, so that a message that kills
its invocation takes no other along.

Sources: AWS, "Using Lambda with Amazon SQS" (the event), "Handling errors for an SQS event source in Lambda" (partial
batch responses; an answer with an empty list deletes all).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
if not apps.ready:
    django.setup()

from delivery.consuming import message_handling
from delivery.consuming.message_handling import Handled, MessageHandler
from delivery.consuming.slots import Schedule
from delivery.queues.queue_transport import BATCH, Message, QueueTransport, Received
from portal.errors import PortalError
from portal.noise import noise_teller

# One invocation at a time runs in a process, and the next finds the tenants' buckets as this one left them.
_schedule: Final = Schedule(BATCH)
_handler: Final = MessageHandler()


@dataclass(frozen=True)
class _Begun:
    record_id: str
    queue: int
    received: Received
    message: Message

    @property
    def is_suspect(self) -> bool:
        return message_handling.strikes_of(self.received, self.message) > 0


def queue_handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Deliver a batch of at most BATCH messages. Returns the ids of those that stay in the queue."""
    noise_teller.start("delivery function", "delivery", beside=False)
    noise_teller.turn()
    outcomes: list[tuple[_Begun, Handled]] = []
    begun: list[_Begun] = []
    for one in _messages(event.get("Records", ())):
        seconds = _schedule.begin(one.queue, one.message.tenant_id, is_suspect=one.is_suspect)
        if seconds:
            outcomes.append((one, message_handling.postponed(one.received, one.message, seconds=seconds)))
        else:
            begun.append(one)
    try:
        for together in ([o for o in begun if not o.is_suspect], [o for o in begun if o.is_suspect]):
            outcomes += _delivered(together)
    finally:
        for one in begun:
            _schedule.end(one.queue, one.message.tenant_id, is_suspect=one.is_suspect)
    stay = [one.record_id for one, handled in outcomes if not _concluded(one, handled)]
    return {"batchItemFailures": [{"itemIdentifier": record_id} for record_id in stay]}


def _messages(records: Iterable[Mapping[str, Any]]) -> Iterable[_Begun]:
    """Yield the messages of an event; what is none is logged, and deleted by not being named."""
    for record in records:
        attributes = record.get("attributes", {})
        receives, sent_at = attributes.get("ApproximateReceiveCount", 1), attributes.get("SentTimestamp", 0)
        received = Received(record["body"], record["receiptHandle"], int(receives), int(sent_at) / 1000)
        message = message_handling.read(received)
        if message is not None:
            queue = int(record["eventSourceARN"].rpartition("-")[2])
            yield _Begun(record["messageId"], queue, received, message)


def _delivered(together: list[_Begun]) -> list[tuple[_Begun, Handled]]:
    if not together:
        return []
    with ThreadPoolExecutor(len(together)) as pool:
        handled = pool.map(lambda one: _handler.handle(one.received, one.message), together)
        return list(zip(together, handled, strict=True))


def _concluded(one: _Begun, handled: Handled) -> bool:
    """Send what is to be sent in the message's place. False where it must stay."""
    if handled.again is None:
        return True
    try:
        return not QueueTransport().send(one.queue, [handled.again], delay=handled.delay)
    except PortalError:
        return False
