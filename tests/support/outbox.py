"""Who is told of what in a test, and what stands in the outbox, read past every role."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from delivery.outbox import publisher
from delivery.outbox.stored import OUTBOX, OutboxItem, PendingRow
from tenants.tenancy.stored import TENANTS
from tests.support.commands import everything
from tests.support.stored import send
from tests.support.world import World

TICKET_EVENTS = (
    "ticket.assigned",
    "ticket.changed",
    "ticket.commented",
    "ticket.created",
    "ticket.note_added",
    "ticket.status_changed",
)


def subscribe(world: World, where: str, *types: str, to: Sequence[str] = ("ep_one",)) -> None:
    """Tell these destinations of these events, of all of a ticket's where none is named, in place of what was."""
    chosen = {kind: list(to) for kind in types or TICKET_EVENTS}
    send(
        "UpdateItem",
        TableName=TENANTS.full_name,
        Key={"tenant_id": {"S": world.tenants[where].tenant_id}},
        UpdateExpression="SET subscriptions = :s, queues = :q",
        ExpressionAttributeValues={":s": {"S": json.dumps(chosen)}, ":q": {"S": "[1, 2, 4, 7]"}},
    )


def rows() -> list[OutboxItem]:
    """All rows of the outbox, oldest first."""
    return sorted((OutboxItem.from_raw_data(raw) for raw in everything(OUTBOX)), key=lambda row: row.timestamp)


def told() -> list[dict[str, Any]]:
    """All events of the outbox as receivers get them, oldest first."""
    return [publisher.envelope(row, index) for row in rows() for index in range(len(row.events))]


def pending() -> list[str]:
    """The ids of the rows in the index of pending ones, in any order."""
    return [raw["event_id"]["S"] for raw in everything(OUTBOX, index=PendingRow.gsi)]
