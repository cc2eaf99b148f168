"""Take tickets out of the lists and back: merge one into another one, mark it as spam; and snooze and wake one."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from django.http import HttpResponse
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiInput
from api.edge.routing import ApiRequest, ApiRouter
from api.edge.sentences import TextPattern
from api.v1.ticket_schemas import Number, TicketInFull
from portal.errors import Invalid
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.desk import timelines
from tickets.merging import ticket_merging
from tickets.snoozing import snoozing
from tickets.spam import spam_marking

router: Final = ApiRouter()


class TicketToMergeInto(ApiInput, json_schema_extra={"example": {"number": 7}}):
    """The ticket that stays."""

    number: Number = Field(description="of the ticket in whose activity the other one appears")


@router.declare(
    "PUT",
    "/tickets/{ticket_number:number}/merge",
    scope=Scope.TICKETS_WRITE,
    answers={200: TicketInFull},
)
@costs(get="ticket", query="ticket", write="ticket", trips=8, reads=16, writes=50)
def merge_ticket(request: ApiRequest, number: Number, target: TicketToMergeInto) -> HttpResponse:
    """Merge a ticket into another one.

    Its activity appears in that of the other ticket, where letters and answers of its requester arrive from then on. It
    is in no list any more and cannot be changed; reading it says where it went. A ticket of a person outside the desk
    is merged only into another one of the same person. Up to 5 tickets can be merged into one.
    """
    ticket_merging.merge(request.acting, number, into=target.number)
    return _shown(request, number)


@router.declare(
    "DELETE",
    "/tickets/{ticket_number:number}/merge",
    scope=Scope.TICKETS_WRITE,
    answers={200: TicketInFull},
)
@costs(get="ticket", query="ticket", write="ticket", trips=5, reads=10, writes=25)
def separate_ticket(request: ApiRequest, number: Number) -> HttpResponse:
    """Let a merged ticket be one of its own again.

    It is as it was before. All that came to the other ticket meanwhile stays there.
    """
    ticket_merging.separate(request.acting, number)
    return _shown(request, number)


def _shown(request: ApiRequest, number: int) -> HttpResponse:
    return answers.answer(TicketInFull.whole(request.tenant, *timelines.head(request.tenant, number)))


@router.declare("PUT", "/tickets/{ticket_number:number}/spam", scope=Scope.TICKETS_WRITE, answers={200: TicketInFull})
@costs(
    get="address, mail settings, requester",
    query="ticket",
    write="audit row, mail settings, ticket",
    trips=13,
    reads=20,
    writes=50,
)
def mark_as_spam(request: ApiRequest, number: Number) -> HttpResponse:
    """Mark a ticket as spam.

    It leaves all lists and numbers and is removed after 30 days. Its requester cannot write to the desk any more.
    """
    spam_marking.mark(request.acting, number, by=request.caller.actor)
    return _shown(request, number)


@router.declare(
    "DELETE", "/tickets/{ticket_number:number}/spam", scope=Scope.TICKETS_WRITE, answers={200: TicketInFull}
)
@costs(
    get="mail settings, requester",
    query="ticket",
    write="audit row, mail settings, ticket",
    trips=11,
    reads=12,
    writes=50,
)
def mark_as_no_spam(request: ApiRequest, number: Number) -> HttpResponse:
    """Take the mark of spam back.

    The ticket is as it was before, and its requester is not blocked any more.
    """
    spam_marking.unmark(request.acting, number, by=request.caller.actor)
    return _shown(request, number)


_MOMENT: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}:[0-9]{2})$"


class Snooze(ApiInput, json_schema_extra={"example": {"until": "2026-11-30T09:00:00.000000Z"}}):
    """Until when a ticket rests."""

    until: Annotated[str, TextPattern(_MOMENT, "A moment is written as 2026-11-30T09:00:00Z.")] | None = Field(
        description="a moment within a year; null: until an answer"
    )


@router.declare("PUT", "/tickets/{ticket_number:number}/snooze", scope=Scope.TICKETS_WRITE, answers={200: TicketInFull})
@costs(get="ticket", query="ticket", write="due row, ticket", trips=4, reads=10, writes=20)
def snooze_ticket(request: ApiRequest, number: Number, wanted: Snooze) -> HttpResponse:
    """Snooze a ticket.

    It is marked in lists, which can be filtered by it. It wakes at its moment, which the event `ticket.due` tells of,
    or when its requester answers.
    """
    try:
        until = datetime.fromisoformat(wanted.until) if wanted.until else None
    except ValueError:
        raise Invalid("There is no such moment.", field="until") from None
    snoozing.snooze(request.acting, number, until=until)
    return _shown(request, number)


@router.declare(
    "DELETE", "/tickets/{ticket_number:number}/snooze", scope=Scope.TICKETS_WRITE, answers={200: TicketInFull}
)
@costs(get="ticket", query="ticket", write="ticket", trips=4, reads=10, writes=20)
def wake_ticket(request: ApiRequest, number: Number) -> HttpResponse:
    """Wake a snoozed ticket."""
    snoozing.wake(request.acting, number)
    return _shown(request, number)
