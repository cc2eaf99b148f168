"""Publish events to the subscribers of a tenant: by one row of the outbox in the transaction of the change, or by none.

The subscriptions are in the tenant's own item, which every request has read already. So a desk without subscribers pays
nothing: no read, no write, no member of the transaction.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final

from delivery.outbox import event_types
from delivery.outbox.event_types import Event
from delivery.outbox.stored import NO_TENANT, OutboxItem, outbox_row, pending_of, row_parts
from portal import clock, logs
from portal.dynamo.store import Transaction
from tenants.tenancy.context import TenantContext

KEPT_SECONDS: Final = 30 * 86400  # of a row, after which TTL removes it


def publish(
    tenant: TenantContext,
    transaction: Transaction,
    *events: Event,
    subject: str,
    at: str = "",
    open_to: str = "",
    hold: int = 0,
) -> OutboxItem | None:
    """Add the row of these events to the transaction, or nothing where nobody subscribed to any of them and none names
    a destination of its own.

    `subject` names what they are about, "ticket/7"; `at` is the moment of the change, now by default. `open_to` names
    one destination instead of those that subscribed. The row is held for `hold` seconds, in which
    `outbox_rows.withdraw` can take it back. Returns the row, None where there is none. Raises Invalid for an event that
    is too large.
    """
    row = _row_of(tenant, events, subject=subject, at=at, open_to=open_to)
    if row is not None:
        if hold:
            row.held_until = row.sent_until = row.due_at = clock.stamp(offset=hold * 1_000_000)
        transaction.put(row)
    return row


def publish_after(tenant: TenantContext, event: Event, *, subject: str, at: str, row_id: str) -> None:
    """Write the row of one event after its change, for what does so again after a kill: 3 write units instead of 4.

    `row_id` and `at` are the same each time, so that it is one row."""
    if row := _row_of(tenant, [event], subject=subject, at=at, row_id=row_id):
        tenant.repository.put_new(row)


def _row_of(
    tenant: TenantContext, events: Iterable[Event], *, subject: str, at: str, open_to: str = "", row_id: str = ""
) -> OutboxItem | None:
    subscribed = tenant.subscriptions
    whom = [(event, (open_to,) if open_to else (*subscribed.get(event.type.name, ()), *event.to)) for event in events]
    told = [(event, destinations) for event, destinations in whom if destinations]
    if not told:
        return None
    return new_row(
        tenant_id=tenant.tenant_id,
        tenant={"id": tenant.tenant_id, "name": tenant.name, "slug": tenant.slug},
        queues=tenant.queues,
        events=[event for event, _ in told],
        members=[member(index, to) for index, (_, destinations) in enumerate(told) for to in destinations],
        subject=subject,
        at=at,
        row_id=row_id,
        cause=tenant.cause,
    )


def member(index: int, destination: str) -> str:
    """Return what stands in `open` for one event of a row and one destination."""
    return f"{index}/{destination}"


def member_parts(text: str) -> tuple[int, str]:
    """Take apart what `member` made."""
    index, _, destination = text.partition("/")
    return int(index), destination


def new_row(
    *,
    tenant_id: str,
    tenant: dict[str, Any],
    queues: Sequence[int],
    events: Sequence[Event],
    members: Iterable[str],
    subject: str,
    at: str = "",
    private: str | None = None,
    kept: int = KEPT_SECONDS,
    row_id: str = "",
    due_at: str = "",
    cause: str = "",
) -> OutboxItem:
    """Make a row that is due at once, or at the stamp `due_at`, which must be later than `at`. `tenant` is what
    receivers are told of the tenant; `kept` is in seconds; `row_id` is drawn where it is not given."""
    row_id, stamp = row_id or uuid.uuid4().hex, at or clock.stamp()
    return OutboxItem(
        outbox_row(tenant_id, row_id),
        stamp,
        tenant_id=None if tenant_id == NO_TENANT else tenant_id,
        tenant=json.dumps(tenant, ensure_ascii=False, separators=(",", ":")),
        subject=subject,
        private=private,
        events=[event_types.encoded(event) for event in events],
        queues=list(queues),
        open=set(members),
        sent_until=due_at or stamp,
        pending=pending_of(row_id),
        due_at=due_at or stamp,
        expires_at=int(time.time()) + kept,
        request=logs.request_id() or None,
        cause=cause or None,
    )


def delivery_id(row: OutboxItem, index: int) -> str:
    """Return the id by which a receiver knows an event again, however often it arrives."""
    return f"evt_{row_parts(row.event_id)[1]}_{index}"


def envelope(row: OutboxItem, index: int) -> dict[str, Any]:
    """Return one event of a row as receivers get it."""
    event = json.loads(row.events[index])
    return {
        "id": delivery_id(row, index),
        "type": event["type"],
        "version": event["version"],
        "timestamp": row.timestamp,
        "tenant": json.loads(row.tenant),
        "sequence": event["sequence"],
        "data": event["data"],
    }
