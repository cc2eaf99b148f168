"""Rows of the outbox, the messages that tell of them, and a destination whose answer a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

from delivery.outbox import destinations, publisher
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from delivery.outbox.publisher import Event, EventField, EventType
from delivery.outbox.stored import OutboxItem, outbox_row, row_parts
from delivery.queues.queue_transport import Message, Received
from delivery.queues.stored import DEAD_DELIVERIES, DeadDeliveryItem
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import Store, Transaction
from tests.support.commands import everything

TOLD = EventType("test.happened", 1, "Something happened in a test.", (EventField("number", "number", "Which.", 1),))
ANSWERED = Outcome("answered")
_handles = count(1)


def row(tenant_id: str, *to: str, events: int = 1, number: int = 1, where: Placement = POOL) -> OutboxItem:
    """Write a row with so many events, each for all of these destinations, and return it."""
    written = publisher.new_row(
        tenant_id=tenant_id,
        tenant={"id": tenant_id, "name": "Acme", "slug": "acme"},
        queues=[0, 1, 2, 3],
        events=[Event(TOLD, {"number": number + index}, 1) for index in range(events)],
        members=[publisher.member(index, one) for index in range(events) for one in to],
        subject="ticket/7",
    )
    transaction = Transaction()
    transaction.put(written)
    Store("tenant", tenant_id, where).transact(transaction)
    return written


def stored(written: OutboxItem, where: Placement = POOL) -> OutboxItem:
    """Read a row as it is now."""
    tenant_id, row_id = row_parts(written.event_id)
    found = Store("tenant", tenant_id, where).get(
        OutboxItem, outbox_row, row_id, sort=written.timestamp, consistent=True
    )
    assert found is not None
    return found


def message(written: OutboxItem, to: str, *, index: int = 0, strikes: int = 0, where: Placement = POOL) -> Message:
    tenant_id, _ = row_parts(written.event_id)
    placement = "" if where == POOL else str(where)
    return Message(tenant_id, written.event_id, written.timestamp, index, to, strikes=strikes, placement=placement)


def received(told: Message, *, receives: int = 1) -> Received:
    return Received(0, told.body(), f"handle {next(_handles)}", receives, 0.0)


def work(told: Message, row: OutboxItem, where: Placement = POOL) -> Work:
    """Return the work that a message of this row asks for."""
    return Work(Store("tenant", told.tenant_id, where), row, told.index, told.destination)


def dead(tenant_id: str = "") -> list[DeadDeliveryItem]:
    """Return the dead deliveries of a tenant, or of all."""
    found = map(DeadDeliveryItem.from_raw_data, everything(DEAD_DELIVERIES))
    return [letter for letter in found if not tenant_id or letter.tenant_id == tenant_id]


@contextmanager
def destination(beginning: str, deliver: Callable[[Work], Outcome]) -> Iterator[None]:
    """Let a function deliver to the destinations that begin so, inside."""
    destinations.declare_destination(beginning, deliver)
    try:
        yield
    finally:
        del destinations._declared[beginning]
