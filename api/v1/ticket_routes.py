"""Read and write tickets: lists with the filters that the queue has, one ticket, and the status of many."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from django.http import HttpResponse
from ninja import Query

from api.edge import answers, idempotency
from api.edge.problem_responses import RequestProblem
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import (
    ChangedTickets,
    FoundTicket,
    FoundTickets,
    Number,
    StatusOfMany,
    TicketInFull,
    TicketInList,
    TicketList,
    TicketListQuery,
    TicketSearchQuery,
    TicketToChange,
    TicketToCreate,
)
from portal.dynamo.transaction import Companion, with_companion
from portal.errors import Invalid
from portal.web.access import costs
from portal.web.heavy_work import heavy
from tenants.api_keys.scopes import Scope
from tickets.attachments import attachments
from tickets.desk import bulk, changing, creating, filters, lists, timelines
from tickets.desk.bulk import BulkRefused
from tickets.desk.changing import EditConflict, Present, Wishes
from tickets.requesters import naming
from tickets.requesters.requesters import Requester
from tickets.search import ticket_search
from tickets.search.search_query import Filters
from tickets.search.views import place_for_a_search
from tickets.ticket import custom_values
from tickets.ticket.fields import CUSTOM_PREFIX, Channel
from tickets.ticket.stored import SummaryItem

router: Final = ApiRouter()


@router.declare("GET", "/tickets", scope=Scope.TICKETS_READ, answers={200: TicketList}, sends={200: ("Link",)})
@costs(
    query="noted tickets, noted tickets by resolver, tickets by resolver, tickets by status",
    trips=1,
    reads=20,
    writes=3,
)
def list_tickets(request: ApiRequest, query: Query[TicketListQuery]) -> HttpResponse:
    """List tickets, the one that changed last first, or in the order that `sort` names.

    Without `status` they are the open ones. A ticket that changes while you go from page to page moves to the front, so
    the walk may miss it: webhooks tell of each change, and the command export_tickets writes all tickets.

    A page looks at so many tickets as one round trip brings. So with a filter beside `status` and `resolver` it may be
    short, or empty, while there are more: go on as long as there is a `next`.

    Lists in another order than by update are read up to 500 tickets for each status, and sorted. A longer list ends
    there, and `sorted_among` then says how many tickets were sorted, those that changed last.
    """
    page = lists.page(
        request.tenant,
        status=filters.statuses(query.status),
        resolver=query.resolver_id,
        only=query.only,
        order=filters.order_of(query.sort),
        after=query.after,
        size=query.limit,
        at_once=True,
    )
    found = TicketList(
        data=[TicketInList.of(row) for row in page.rows],
        sorted_among=page.sorted_among or None,
        next=answers.next_url(request, page.next),
    )
    return answers.page(found)


@router.declare("GET", "/search", scope=Scope.TICKETS_READ, answers={200: FoundTickets}, sends={200: ("Link",)})
@costs(
    get="counter, search segment, setup, ticket",
    query="members by name, requesters by name, search directory, ticket, tickets by resolver, tickets by status",
    trips=6,
    reads=600,
    room="96 blocks of 16 KB, and 30 histories of 200 entries of 300 characters",
)
def search_tickets(request: ApiRequest, query: Query[TicketSearchQuery]) -> HttpResponse:
    """Find tickets by words in their titles, descriptions, comments, tags and requesters, the best first.

    The text means what it means in the portal's search box. Internal notes are searched with the scope notes:read; a
    text that names people by `assignee:` or by an address needs members:read. A desk has a few searches under way at a
    time; one too many is answered by 429.
    """
    if ticket_search.needs_members(ticket_search.parsed(request.tenant, query.q)[0]):
        request.caller.tenant_for(Scope.MEMBERS_READ)
    is_narrowed = query.status != "any" or query.resolver is not None or query.only
    statuses = None if query.status == "any" else filters.statuses(query.status)
    with place_for_a_search(request.tenant):
        found = ticket_search.find(
            request.tenant,
            query.q,
            newest_first=query.order == "newest",
            further=query.after or "",
            within=Filters(statuses, query.resolver_id, query.only) if is_narrowed else None,
        )
    told = FoundTickets(
        data=[FoundTicket.hit(request.tenant, hit) for hit in found.hits],
        explanations=list(found.explanations),
        next=answers.next_url(request, found.further or None),
    )
    return answers.page(told)


@router.declare(
    "GET",
    "/tickets/{ticket_number:number}",
    scope=Scope.TICKETS_READ,
    answers={200: TicketInFull, 304: None},
    headers=answers.KNOWN,
)
@costs(query="ticket", trips=1, reads=8)
def read_ticket(request: ApiRequest, number: Number) -> HttpResponse:
    """Read a ticket."""
    ticket = TicketInFull.whole(request.tenant, *timelines.head(request.tenant, number))
    return answers.unless_known(request, answers.answer(ticket), answers.tag(*ticket.tag_parts))


@router.declare(
    "POST",
    "/tickets",
    scope=Scope.TICKETS_WRITE,
    answers={201: TicketInFull},
    headers=idempotency.ONCE,
    sends={201: ("ETag", "Location")},
)
@costs(
    get="API answer, address of a requester, counter, file, member, move, requester, resharding, setup, targets",
    query="API answer, API answers by time, counter, due row, file, import, letters by time, move log, requesters by "
    "last word, requesters by name, ticket",
    write="API answer, address of a requester, aggregate, audit row, counter, due row, file, move, move log, outbox "
    "row, placed tenant, requester, tenant, ticket",
    trips=6,
    reads=15,
    writes=800,
)
def create_ticket(request: ApiRequest, ticket: TicketToCreate) -> HttpResponse:
    """Create a ticket. Its requester is the person outside the desk who is named, else the API key."""

    def write(companion: Companion[tuple[SummaryItem, str]]) -> None:
        person = _requester(request, ticket.requester) if ticket.requester else None
        files = attachments.uploaded(request.acting, ticket.files) if ticket.files else ()
        with _as_in_the_body():
            creating.create(
                request.acting, channel=Channel.API, requester=person, files=files, companion=companion, **ticket.values
            )

    def render(made: tuple[SummaryItem, str]) -> HttpResponse:
        shown = TicketInFull.whole(request.tenant, *made)
        location = f"{request.path}/{shown.number}"
        return answers.answer(shown, status=201, Location=location, ETag=answers.tag(*shown.tag_parts))

    return idempotency.post(request, write, render)


@contextmanager
def _as_in_the_body() -> Iterator[None]:
    """Call fields in errors what the body of a request calls them."""
    try:
        yield
    except Invalid as refused:
        if refused.field == "resolver":
            refused.field = "resolver_id"
        elif refused.field and custom_values.is_field_id(refused.field):
            refused.field = f"{CUSTOM_PREFIX}{refused.field}"
        raise


def _requester(request: ApiRequest, text: str) -> Requester:
    return naming.named(request.acting, text, by=request.caller.actor, request_id=uuid.uuid4().hex)


@router.declare(
    "PATCH",
    "/tickets/{ticket_number:number}",
    scope=Scope.TICKETS_WRITE,
    answers={200: TicketInFull},
    problems_too=(412,),
    headers=answers.MATCH,
    sends={200: ("ETag",), 409: ("ETag",)},
)
@costs(
    get="address of a requester, member, requester, setup, ticket",
    query="requesters by last word, requesters by name, ticket",
    write="outbox row, ticket",
    trips=7,
    reads=20,
    writes=25,
)
def change_ticket(request: ApiRequest, number: Number, ticket: TicketToChange) -> HttpResponse:
    """Change fields of a ticket, all that are named or none.

    With If-Match it is changed only as the caller saw it. With a version, what others changed in other fields stays.
    With neither, the fields become what is said, whatever they were.
    """

    def check(present: Present) -> None:
        shown = _shown(request, present)
        answers.require_match(request, answers.tag(*shown.tag_parts), current=shown.model_dump(mode="json"))

    try:
        person = _requester(request, ticket.requester) if ticket.requester else None
        wishes = Wishes(requester=person, **ticket.values)
        with _as_in_the_body():
            written = changing.change(request.acting, number, wishes, version=ticket.version, whole=True, check=check)
    except EditConflict as conflict:
        stored = TicketInFull.whole(request.tenant, conflict.stored, conflict.description)
        more, etag = {"current": stored.model_dump(mode="json")}, answers.tag(*stored.tag_parts)
        raise RequestProblem(409, conflict.code, conflict.message, more=more, headers={"ETag": etag}) from conflict
    shown = _shown(request, written)
    return answers.answer(shown, ETag=answers.tag(*shown.tag_parts))


def _shown(request: ApiRequest, present: Present) -> TicketInFull:
    return TicketInFull.whole(request.tenant, present.summary, present.description or "")


@router.declare(
    "POST",
    "/tickets/status",
    scope=Scope.TICKETS_WRITE,
    answers={200: ChangedTickets},
    headers=idempotency.ONCE,
)
@costs(get="setup, ticket", write="API answer, ticket", trips=4, reads=15, writes=30)
def change_status_of_many(request: ApiRequest, change: StatusOfMany) -> HttpResponse:
    """Change the status of many tickets, of all or of none.

    A version that is given has to be the ticket's still.
    """
    changed: HttpResponse = _with_one_status(request, change)
    return changed


@heavy
def _with_one_status(request: ApiRequest, change: StatusOfMany) -> HttpResponse:
    def write(companion: Companion[int]) -> None:
        try:
            tickets = with_companion(companion, lambda: bulk.states(request.acting, change.versions))
            bulk.change_status(request.acting, tickets, to=change.status, companion=companion)
        except BulkRefused as refused:
            raise _told(refused, list(change.versions)) from refused

    def render(count: int) -> HttpResponse:
        return answers.answer(ChangedTickets(count=count, status=change.status))

    return idempotency.post(request, write, render)


def _told(refused: BulkRefused, asked: Sequence[int]) -> RequestProblem:
    """Say which tickets stood in the way, by their places among those that were asked for."""
    errors = [
        {
            "field": f"tickets.{asked.index(one.number)}",
            "code": "ticket_refused",
            "detail": f"Ticket {one.number} {one.reason}.",
        }
        for one in refused.refusals
    ]
    sentence = f"Nothing was changed. {errors[0]['detail']}"
    return RequestProblem(409, refused.code, sentence, more={"errors": errors}, passes=refused.passes)
