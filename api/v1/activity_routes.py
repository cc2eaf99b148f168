"""Read what was said and done about a ticket, and add comments and internal notes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpResponse
from ninja import Query

from api.door import answers, idempotency
from api.door.routing import ApiRequest, ApiRouter
from api.v1.activity_schemas import ActivityEntry, ActivityList, ActivityQuery
from api.v1.ticket_inputs import CommentToAdd, NoteToAdd
from api.v1.ticket_schemas import Number
from portal.dynamo.transaction import Companion
from tenants.api_keys.scopes import Scope
from tickets.desk import commenting, timelines
from tickets.desk.timelines import Activity
from tickets.ticket.fields import Status
from tickets.ticket.stored import ActivityItem

router: Final = ApiRouter()


@router.declare(
    "GET",
    "/tickets/{ticket_number:number}/activity",
    scope=Scope.TICKETS_READ,
    answers={200: ActivityList},
    sends={200: ("Link",)},
)
def list_activity(request: ApiRequest, number: Number, query: Query[ActivityQuery]) -> HttpResponse:
    """List what was said and done about a ticket.

    Comments, events, and with the scope notes:read internal notes.
    """
    found = timelines.ticket(request.tenant, number, before=query.after)
    entries = [ActivityEntry.of(entry) for entry in found.activity]
    url = answers.next_url(request, found.earlier)
    return answers.page(request, ActivityList(data=entries, next=url), after=found.earlier)


@router.declare(
    "POST",
    "/tickets/{ticket_number:number}/comments",
    scope=Scope.COMMENTS_WRITE,
    answers={201: ActivityEntry},
    headers=idempotency.ONCE,
)
def add_comment(request: ApiRequest, number: Number, comment: CommentToAdd) -> HttpResponse:
    """Add a comment, and change the status with it."""
    if comment.status is not None:
        request.caller.tenant_for(Scope.TICKETS_WRITE)
    return _added(request, number, comment.body, then=comment.status)


@router.declare(
    "POST",
    "/tickets/{ticket_number:number}/notes",
    scope=Scope.NOTES_WRITE,
    answers={201: ActivityEntry},
    headers=idempotency.ONCE,
)
def add_note(request: ApiRequest, number: Number, note: NoteToAdd) -> HttpResponse:
    """Add an internal note, which viewers do not see."""
    return _added(request, number, note.body, internal=True)


def _added(
    request: ApiRequest, number: int, body: str, *, internal: bool = False, then: Status | None = None
) -> HttpResponse:
    def write(companion: Companion[ActivityItem]) -> None:
        commenting.comment(request.acting, number, body=body, internal=internal, then=then, companion=companion)

    render: Callable[[ActivityItem], HttpResponse] = _rendered
    return idempotency.post(request, write, render)


def _rendered(item: ActivityItem) -> HttpResponse:
    return answers.answer(ActivityEntry.of(Activity.of(item.serialize())), status=201)
