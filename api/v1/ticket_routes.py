"""Read tickets: lists with the filters that the queue has, and one ticket."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse
from ninja import Query

from api.door import answers
from api.door.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import Number, TicketInFull, TicketInList, TicketList, TicketListQuery
from tenants.api_keys.scopes import Scope
from tickets.desk import filters, lists, timelines
from tickets.desk.filters import TicketFilter

router: Final = ApiRouter()


@router.declare("GET", "/tickets", scope=Scope.TICKETS_READ, answers={200: TicketList})
def list_tickets(request: ApiRequest, query: Query[TicketListQuery]) -> HttpResponse:
    """List tickets, the one that changed last first.

    A page looks at so many tickets as one round trip brings. So with a filter beside `status` and `resolver` it may be
    short, or empty, while there are more: go on as long as there is a `next`.
    """
    asked = {name: str(value) for name, value in query.model_dump(exclude_none=True).items()}
    page = lists.page(
        request.tenant,
        status=filters.statuses(query.status),
        resolver={None: None, "none": ""}.get(query.resolver, query.resolver),
        only=TicketFilter.parse(asked),
        after=query.after,
        size=query.limit,
        at_once=True,
    )
    found = TicketList(data=[TicketInList.of(row) for row in page.rows], next=answers.next_url(request, page.next))
    return answers.page(request, found, after=page.next)


@router.declare(
    "GET",
    "/tickets/{ticket_number:number}",
    scope=Scope.TICKETS_READ,
    answers={200: TicketInFull, 304: None},
    headers={"If-None-Match": "the tag of what the caller has: the answer is 304 where it is still the same"},
)
def read_ticket(request: ApiRequest, number: Number) -> HttpResponse:
    """Read a ticket."""
    ticket = TicketInFull.whole(request.tenant, *timelines.head(request.tenant, number))
    return answers.unless_known(request, answers.answer(ticket), answers.tag(*ticket.tag_parts))
