"""Take tickets out of the lists and back: merge one into another one, or mark it as spam."""

from __future__ import annotations

from typing import Final

from django.http import HttpResponse
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiInput
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import Number, TicketInFull
from tenants.api_keys.scopes import Scope
from tickets.desk import timelines
from tickets.merging import ticket_merging
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
def separate_ticket(request: ApiRequest, number: Number) -> HttpResponse:
    """Let a merged ticket be one of its own again.

    It is as it was before. All that came to the other ticket meanwhile stays there.
    """
    ticket_merging.separate(request.acting, number)
    return _shown(request, number)


def _shown(request: ApiRequest, number: int) -> HttpResponse:
    return answers.answer(TicketInFull.whole(request.tenant, *timelines.head(request.tenant, number)))


@router.declare("PUT", "/tickets/{ticket_number:number}/spam", scope=Scope.TICKETS_WRITE, answers={200: TicketInFull})
def mark_as_spam(request: ApiRequest, number: Number) -> HttpResponse:
    """Mark a ticket as spam.

    It leaves all lists and numbers and is removed after 30 days. Its requester cannot write to the desk any more.
    """
    spam_marking.mark(request.acting, number, by=request.caller.actor)
    return _shown(request, number)


@router.declare(
    "DELETE", "/tickets/{ticket_number:number}/spam", scope=Scope.TICKETS_WRITE, answers={200: TicketInFull}
)
def mark_as_no_spam(request: ApiRequest, number: Number) -> HttpResponse:
    """Take the mark of spam back.

    The ticket is as it was before, and its requester is not blocked any more.
    """
    spam_marking.unmark(request.acting, number, by=request.caller.actor)
    return _shown(request, number)
