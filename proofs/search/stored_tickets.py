"""Read what a tenant's tickets say, by their numbers and without any index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.repository import TenantRepository
from tickets.ticket import keys as ticket_keys
from tickets.ticket.items import ActivityItem, DetailItem, SummaryItem
from tickets.ticket.tables import TICKETS
from tickets.verification.recount import last_number

_AT_ONCE: Final = 8


@dataclass(frozen=True)
class StoredTicket:
    """Hold all that is searched of one ticket, as it is stored."""

    number: int
    title: str
    description: str
    comments: tuple[str, ...]
    notes: tuple[str, ...]
    tags: tuple[str, ...]
    requester_name: str

    def texts(self, *, with_notes: bool = True) -> list[str]:
        """Return the texts one by one: a phrase stands within one of them."""
        return [
            self.title, self.description, *self.comments, *(self.notes if with_notes else ()), *self.tags,
            self.requester_name,
        ]  # fmt: skip


def read(repository: TenantRepository) -> dict[int, StoredTicket]:
    """Return all tickets by number: one Query for each number that was given out."""
    last = last_number(repository)
    found: dict[int, StoredTicket] = {}
    for start in range(1, last + 1, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, last + 1))
        for ticket in fan_out([partial(_ticket, repository, number) for number in numbers]):
            if ticket:
                found[ticket.number] = ticket
    return found


def _ticket(repository: TenantRepository, number: int) -> StoredTicket | None:
    items = {raw["sk"]["S"]: raw for raw in _items(repository, number)}
    if ticket_keys.SUMMARY not in items:
        return None
    summary = SummaryItem.from_raw_data(items[ticket_keys.SUMMARY])
    detail = items.get(ticket_keys.DETAIL)
    entries = [
        ActivityItem.from_raw_data(raw) for key, raw in items.items() if key.startswith(ticket_keys.ACTIVITY_PREFIX)
    ]
    return StoredTicket(
        number,
        summary.title,
        DetailItem.from_raw_data(detail).description if detail else "",
        tuple(entry.body for entry in entries if entry.kind == "comment"),
        tuple(entry.body for entry in entries if entry.kind == "note"),
        tuple(summary.tags),
        summary.requester_name,
    )


def _items(repository: TenantRepository, number: int) -> Iterator[dict[str, Any]]:
    return repository.query_all(TICKETS, ticket_keys.ticket, number, consistent=True)
