"""Show two tickets that are to be merged, and the ones that are offered for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from tenants.tenancy.context import TenantContext
from tickets.desk import ticket_presenters, timelines
from tickets.desk.ticket_presenters import ListedTicket
from tickets.merging.ticket_merging import Pair
from tickets.requesters import presenters as requester_presenters
from tickets.requesters import requester_tickets
from tickets.ticket import stored
from tickets.ticket.stored import SummaryItem

OFFERED: Final = 10  # other tickets of the requester


@dataclass(frozen=True)
class BothTickets:
    """Two tickets side by side, with their descriptions."""

    source: ListedTicket
    target: ListedTicket


def preview(tenant: TenantContext, pair: Pair) -> BothTickets:
    """Show both tickets: two Queries of two items, at the same time."""
    heads = fan_out([partial(timelines.head, tenant, int(one.number)) for one in (pair.source, pair.target)])
    shown = [ticket_presenters.listed(tenant, summary, description=text) for summary, text in heads]
    return BothTickets(*shown)


def others(tenant: TenantContext, summary: SummaryItem) -> list[dict[str, Any]]:
    """Return the requester's other tickets that this one may be merged into, the newest first."""
    if not stored.is_requester(summary.requester):
        return []
    _, rows = requester_tickets.with_person(tenant, summary.requester, limit=OFFERED + 1)
    return requester_presenters.tickets(rows, but=int(summary.number))[:OFFERED]
