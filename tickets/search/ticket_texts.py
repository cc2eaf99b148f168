"""Read what tickets say: the texts by which a search decides whether a proposed ticket matches.

A ticket whose comments may matter is read by one Query of its collection, summary, description and the newest entries;
all others by one BatchGetItem. Everything is sent at the same time. Internal notes are left out for those who may not
read them, before anything looks at them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.store import BATCH_GET_LIMIT, chunked
from tenants.tenancy.context import TenantContext
from tickets.search.index.fragments import COMMENT, NOTE
from tickets.search.index.postings import Places
from tickets.ticket import stored
from tickets.ticket.stored import TICKET_ITEMS, ActivityItem, DetailItem, SummaryItem

ENTRIES_READ: Final = 200  # of a ticket's history at first
FURTHER_ENTRIES: Final = 900  # where these do not decide


@dataclass(frozen=True)
class TicketText:
    """Hold all that may be searched of a ticket by whoever asked. `history` are comments and notes, newest first.

    `rest` is where its history goes on that was not read, None where all that matters was.
    """

    number: int
    summary: SummaryItem
    description: str = ""
    history: tuple[ActivityItem, ...] = ()
    rest: dict[str, Any] | None = None


def read_texts(
    tenant: TenantContext, wanted: Mapping[int, Places], known: Mapping[int, TicketText] = MappingProxyType({})
) -> dict[int, TicketText]:
    """Return those of the tickets that exist, by number, in one round trip: of each what stands in the places that are
    wanted, and the summary, where it is not `known`. Raises Throttled, Unavailable."""
    whole = [number for number, places in wanted.items() if places & Places.COMMENT]
    heads = {number: bool(places & Places.DESCRIPTION) for number, places in wanted.items() if number not in whole}
    reads: list[Callable[[], list[TicketText]]] = [partial(_whole, tenant, number) for number in whole]
    for some in chunked(heads, BATCH_GET_LIMIT // 2):
        reads.append(partial(_heads, tenant, {number: heads[number] for number in some}, known))
    found = {text.number: text for texts in fan_out(reads) for text in texts}
    return {number: found[number] for number in wanted if number in found}


def read_summaries(tenant: TenantContext, numbers: Sequence[int]) -> dict[int, TicketText]:
    """Return those of up to 100 tickets that exist, without description and history: one BatchGetItem."""
    return {text.number: text for text in _heads(tenant, dict.fromkeys(numbers, False))}


def read_on(tenant: TenantContext, unread: Iterable[TicketText]) -> list[TicketText]:
    """Return these tickets with more of their history, up to FURTHER_ENTRIES of it or 1 MB: one round trip."""
    return fan_out([partial(_read_on, tenant, text) for text in unread])


def _heads(
    tenant: TenantContext, wanted: Mapping[int, bool], known: Mapping[int, TicketText] = MappingProxyType({})
) -> list[TicketText]:
    """Read the summary of each ticket that is not `known`, and its description where that is wanted."""
    named: list[Any] = [(stored.ticket, (number,), stored.SUMMARY) for number in wanted if number not in known]
    named += [(stored.ticket, (number,), stored.DETAIL) for number, with_detail in wanted.items() if with_detail]
    found = [item for item in tenant.repository.get_many(TICKET_ITEMS, named, consistent=False) if item]
    details = {item.pk: item.description for item in found if isinstance(item, DetailItem)}
    summaries = {item.pk: item for item in found if isinstance(item, SummaryItem)}
    summaries |= {known[number].summary.pk: known[number].summary for number in wanted if number in known}
    keys = {number: tenant.repository.key(stored.ticket, number) for number in wanted}
    return [TicketText(n, summaries[pk], details.get(pk) or "") for n, pk in keys.items() if pk in summaries]


def _whole(tenant: TenantContext, number: int) -> list[TicketText]:
    page = tenant.repository.query(TICKET_ITEMS, stored.ticket, number, descending=True, limit=ENTRIES_READ + 2)
    summary = next((item for item in page.items if isinstance(item, SummaryItem)), None)
    if summary is None:
        return []
    description = next((item.description for item in page.items if isinstance(item, DetailItem)), "")
    return [TicketText(number, summary, description, _history(tenant, page.items), page.last_key)]


def _read_on(tenant: TenantContext, text: TicketText) -> TicketText:
    page = tenant.repository.query(
        TICKET_ITEMS, stored.ticket, text.number, descending=True, limit=FURTHER_ENTRIES, start=text.rest
    )
    return replace(text, history=(*text.history, *_history(tenant, page.items)), rest=page.last_key)


def _history(tenant: TenantContext, items: Iterable[object]) -> tuple[ActivityItem, ...]:
    readable: Collection[str] = (COMMENT, NOTE) if tenant.is_agent else (COMMENT,)
    return tuple(item for item in items if isinstance(item, ActivityItem) and item.kind in readable)
