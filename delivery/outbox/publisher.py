"""Declare the types of events, and publish events to the subscribers of a tenant.

A package declares what it publishes (`declare_event`): name, version and payload, from which docs/events.md is made.
The version of a type grows when a field goes or changes its meaning; a new field leaves it as it is.

An event is published by a row of the outbox in the transaction of the change. The subscriptions are in the tenant's own
item, which every request has read already. So a desk without subscribers pays nothing: no read, no write, no member of
the transaction.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext_noop

from delivery.outbox.stored import NO_TENANT, OutboxItem, outbox_row, pending_of, row_parts
from portal import clock, logs
from portal.dynamo.store import Transaction
from portal.errors import Invalid
from tenants.tenancy.context import TenantContext

PAYLOAD_LIMIT: Final = 256 * 1024  # bytes of one event's JSON
_NAME: Final = re.compile(r"[a-z]+\.[a-z]+(?:_[a-z]+)*\Z")
KEPT_SECONDS: Final = 30 * 86400  # of a row, after which TTL removes it


@dataclass(frozen=True)
class EventField:
    """One field of a payload. `type` is a word for people; `example` is JSON-ready and stands in the documentation."""

    name: str
    type: str
    summary: str
    example: Any


@dataclass(frozen=True)
class EventType:
    """Something that can be told: "ticket.created". `summary` is a sentence that says when it is."""

    name: str
    version: int
    summary: str
    fields: tuple[EventField, ...]

    def example(self) -> dict[str, Any]:
        """Return a payload as the declaration describes it."""
        return {field.name: field.example for field in self.fields}

    def whole_example(self, **values: Any) -> dict[str, Any]:
        """Return an event of this type as receivers get it, with these values in place of the declared examples."""
        around = {field.name: field.example for field in ENVELOPE}
        return around | {"type": self.name, "version": self.version, "data": self.example()} | values


# What every event has around its payload; `envelope` makes it.
ENVELOPE: Final = (
    EventField(
        "id",
        gettext_noop("text"),
        gettext_noop(
            "the same however often the event arrives, and what to know it by; also in the header `webhook-id`"
        ),
        "evt_5b1f0c2d3e4a4b5c8d9e0f1a2b3c4d5e_0",
    ),
    EventField("type", gettext_noop("text"), gettext_noop("one of those below"), ""),
    EventField(
        "version",
        gettext_noop("number"),
        gettext_noop("of the type; it grows if a field is removed or changes its meaning, not if one is added"),
        1,
    ),
    EventField("timestamp", gettext_noop("moment"), gettext_noop("when it happened"), "2026-11-20T09:30:00.000000Z"),
    EventField(
        "tenant",
        gettext_noop("object"),
        gettext_noop("`id`, `name` and `slug` of the desk"),
        {"id": "9c8b7a6f5e4d4c3b8a291807f6e5d4c3", "name": "Acme", "slug": "acme"},
    ),
    EventField(
        "sequence",
        gettext_noop("number"),
        gettext_noop("the version of the ticket after the change; a later change has a larger one"),
        3,
    ),
    EventField(
        "data", gettext_noop("object"), gettext_noop("the fields below; the receiver needs no further request"), {}
    ),
)


@dataclass(frozen=True)
class Event:
    """Something that has happened. `data` has exactly the fields of its type.

    `sequence` grows with each change of what it happened to, so that a receiver can tell older from newer. `to` names
    destinations of our own, which get the event beside those that subscribed to its type.
    """

    type: EventType
    data: Mapping[str, Any]
    sequence: int
    to: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        declared = {field.name for field in self.type.fields}
        if self.data.keys() != declared:
            raise ValueError(f"{self.type.name} has the fields {sorted(declared)}, not {sorted(self.data)}")


_declared: Final[dict[str, EventType]] = {}


def declare_event(kind: EventType) -> EventType:
    """Add a type to those that can be subscribed to. Raises ValueError for a bad name, and for one that is taken."""
    if not _NAME.match(kind.name):
        raise ValueError(f"{kind.name} is no name of an event type")
    if _declared.setdefault(kind.name, kind) != kind:
        raise ValueError(f"{kind.name} is declared twice")
    return kind


def declared_types() -> tuple[EventType, ...]:
    return tuple(_declared[name] for name in sorted(_declared))


def event_type(name: str) -> EventType:
    """Return the type of this name. Raises Invalid where there is none."""
    try:
        return _declared[name]
    except KeyError:
        raise Invalid(f"There is no event type “{name}”.", field="event_types") from None


def encoded(event: Event) -> str:
    """Return an event as the outbox stores it: JSON of type, version, sequence and data.

    Raises Invalid above PAYLOAD_LIMIT.
    """
    content = {
        "type": event.type.name,
        "version": event.type.version,
        "sequence": event.sequence,
        "data": dict(event.data),
    }
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    if (size := len(text.encode())) > PAYLOAD_LIMIT:
        raise Invalid(
            f"The event “{event.type.name}” would have {size:,} bytes, and those who subscribed to it take at most "
            f"{PAYLOAD_LIMIT:,}. Nothing was changed. Shorten the text."
        )
    return text


# --- publishing ---


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
        events=[encoded(event) for event in events],
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
