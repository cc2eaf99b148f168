"""Read what tickets say: the texts by which a search decides whether a proposed ticket matches.

A ticket whose comments may matter is read by one Query of its collection, summary, description and the newest entries;
all others by one BatchGetItem. Everything is sent at the same time. Internal notes are left out for those who may not
read them, before anything looks at them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.repository import BATCH_GET_LIMIT
from tenants.tenancy.context import TenantContext
from tickets.search.index.fragments import COMMENT, NOTE
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS, SummaryItem

Raw = Mapping[str, Any]

ENTRIES_READ: Final = 100  # of a ticket's history at first
FURTHER_ENTRIES: Final = 1_000  # where these do not decide


@dataclass(frozen=True, slots=True)
class HistoryText:
    """Hold the text of a comment or an internal note."""

    body: str
    is_note: bool


@dataclass(frozen=True)
class TicketText:
    """Hold all that may be searched of a ticket by whoever asked. `history` is newest first.

    `rest` is where its history goes on that was not read, None where all that matters was.
    """

    number: int
    raw_summary: Raw
    description: str
    history: tuple[HistoryText, ...] = ()
    rest: Raw | None = None

    @property
    def title(self) -> str:
        return text_in(self.raw_summary, "title")

    @property
    def tags(self) -> list[str]:
        tags = self.raw_summary.get("tags", {}).get("L", [])
        return [text_in({"tag": tag}, "tag") for tag in tags]

    @property
    def requester(self) -> str:
        return text_in(self.raw_summary, "requester")

    @property
    def requester_name(self) -> str:
        return text_in(self.raw_summary, "requester_name")

    def summary(self) -> SummaryItem:
        """Return the summary as pages take it."""
        return SummaryItem.from_raw_data(dict(self.raw_summary))


def text_in(raw: Raw, name: str) -> str:
    """Return a text of a raw item, "" where there is none or something else."""
    value = raw.get(name, {}).get("S", "")
    return value if isinstance(value, str) else ""


def read_texts(
    tenant: TenantContext, numbers: Sequence[int], *, with_history: Collection[int]
) -> dict[int, TicketText]:
    """Return those of the tickets that exist, by number: at most 100, one round trip. Raises Throttled, Unavailable."""
    plain = [number for number in numbers if number not in with_history]
    heads = [plain[at : at + BATCH_GET_LIMIT // 2] for at in range(0, len(plain), BATCH_GET_LIMIT // 2)]
    reads: list[Callable[[], list[TicketText]]] = [partial(_heads, tenant, some) for some in heads]
    reads += [partial(_whole, tenant, number) for number in numbers if number in with_history]
    return {text.number: text for texts in fan_out(reads) for text in texts}


def read_on(tenant: TenantContext, unread: Iterable[TicketText]) -> list[TicketText]:
    """Return these tickets with more of their history, up to FURTHER_ENTRIES of it or 1 MB: one round trip."""
    return fan_out([partial(_read_on, tenant, text) for text in unread])


def read_summaries(tenant: TenantContext, numbers: Sequence[int]) -> dict[int, TicketText]:
    """Return those of up to 100 tickets that exist, without description and history: one BatchGetItem."""
    wanted: list[Any] = [(stored.ticket, (number,), stored.SUMMARY) for number in numbers]
    found = tenant.repository.get_stored(TICKETS, wanted) if wanted else []
    return {
        number: TicketText(number, raw, "")
        for raw in found
        if (number := stored.ticket_number(tenant.tenant_id, raw["pk"]["S"])) is not None
    }


def _heads(tenant: TenantContext, numbers: Sequence[int]) -> list[TicketText]:
    wanted: list[Any] = [(stored.ticket, (n,), sort) for n in numbers for sort in (stored.SUMMARY, stored.DETAIL)]
    by_key = {(raw["pk"]["S"], raw["sk"]["S"]): raw for raw in tenant.repository.get_stored(TICKETS, wanted)}
    found = []
    for number in numbers:
        pk = tenant.repository.key(stored.ticket, number)
        if (pk, stored.SUMMARY) in by_key:
            detail = by_key.get((pk, stored.DETAIL), {})
            found.append(TicketText(number, by_key[pk, stored.SUMMARY], text_in(detail, "description")))
    return found


def _whole(tenant: TenantContext, number: int) -> list[TicketText]:
    page = tenant.repository.query(TICKETS, stored.ticket, number, descending=True, limit=ENTRIES_READ + 2)
    items = {raw["sk"]["S"]: raw for raw in page.items}
    if stored.SUMMARY not in items:
        return []
    detail = items.get(stored.DETAIL, {})
    history = _history(tenant, page.items)
    return [TicketText(number, items[stored.SUMMARY], text_in(detail, "description"), history, page.last_key)]


def _read_on(tenant: TenantContext, text: TicketText) -> TicketText:
    page = tenant.repository.query(
        TICKETS, stored.ticket, text.number, descending=True, limit=FURTHER_ENTRIES, start=dict(text.rest or {})
    )
    return replace(text, history=(*text.history, *_history(tenant, page.items)), rest=page.last_key)


def _history(tenant: TenantContext, items: Iterable[Raw]) -> tuple[HistoryText, ...]:
    readable = (COMMENT, NOTE) if tenant.is_agent else (COMMENT,)
    return tuple(
        HistoryText(text_in(raw, "body"), is_note=kind == NOTE)
        for raw in items
        if raw["sk"]["S"].startswith(stored.ACTIVITY_PREFIX) and (kind := text_in(raw, "kind")) in readable
    )
