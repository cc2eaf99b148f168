"""Read what was said and done about a ticket, and add comments and internal notes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Literal, Self

from django.http import HttpResponse
from ninja import Query
from pydantic import Field

from api.edge import answers, idempotency
from api.edge.answers import ApiModel, ApiQuery
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import CommentText, CommentToAdd, EntryId, FileOut, Moment, NoteToAdd, Number
from portal.dynamo.transaction import Companion, with_companion
from portal.errors import Invalid, NotFound
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tenants.tenancy.context import TenantContext
from tickets.attachments import attachments
from tickets.data import exporting
from tickets.desk import comment_changes, commenting, timelines
from tickets.ready_answers import answer_reading, inserting
from tickets.ready_answers.answer_reading import UnknownAnswer
from tickets.ready_answers.answer_uses import Uses
from tickets.ticket.fields import Status
from tickets.ticket.stored import ActivityItem, SummaryItem, owner_of

_COMMENT: Final[dict[str, Any]] = {
    "id": "5d1c2b3a4f5e",
    "kind": "comment",
    "at": "2026-11-20T09:45:00.000000Z",
    "by": {"id": "0a1b2c3d4e5f40718293a4b5c6d7e8f9", "name": "Bob Example"},
    "body": "It works again after a **restart**.",
}

_LETTER: Final[dict[str, Any]] = {"state": "sent", "at": "2026-11-20T09:45:02.000000Z", "note": None, "cc": []}


class Author(ApiModel):
    """Say who wrote or did something: a member, a former one, or an API key. Without an account the id is null."""

    id: str | None
    name: str


class ChangedField(ApiModel):
    """A field's text before and after. Of a description it is only the length."""

    field: str
    before: str
    after: str


class CommentLetter(ApiModel, json_schema_extra={"example": _LETTER}):
    """The letter that a comment became, which goes to a requester outside the desk."""

    state: Literal["held", "sent", "bounced", "complained"]
    at: Moment = Field(description="since when it has this state")
    note: str | None = Field(description="why, where that needs a sentence")
    cc: list[str] = Field(description="addresses that it goes to in copy")


class EarlierText(ApiModel):
    """An earlier text of a comment, until somebody put another in its place."""

    body: str
    at: Moment = Field(description="until when it was there")
    by: Author = Field(description="who put another in its place")


class Deletion(ApiModel):
    """Say when a comment was deleted, and by whom."""

    at: Moment
    by: Author


class RuleThatRan(ApiModel):
    """Say by which rule of the desk an entry was made. Its run is `{event}-{number of the ticket}`."""

    id: str
    version: int
    event: str = Field(description="the id of the event in which it began")


class ActivityEntry(ApiModel, json_schema_extra={"example": _COMMENT}):
    """An entry of a ticket's history: a comment or an internal note with its body, or an event with what it changed."""

    id: str
    ticket: int | None = Field(None, description="the number of a merged ticket, of an entry that came from one")
    kind: Literal["comment", "note", "event"]
    at: Moment
    by: Author
    body: str | None = Field(
        None, description="of comments and notes, in Markdown, and what a requester said with a rating"
    )
    letter: CommentLetter | None = Field(None, description="of comments that go to a requester by mail")
    verb: str | None = Field(None, description="of events")
    changes: list[ChangedField] | None = Field(None, description="of events")
    files: list[FileOut] | None = Field(None, description="of comments and notes that have some")
    edited_at: Moment | None = Field(None, description="of comments and notes that were edited, the last time")
    former_texts: list[EarlierText] | None = Field(
        None, description="of comments and notes that were edited, oldest first; with the scope notes:read"
    )
    rule: RuleThatRan | None = Field(None, description="of entries that a rule has made, or the undo of its run")
    deleted: Deletion | None = Field(None, description="of comments and notes that were deleted, whose body is empty")

    @classmethod
    def of(cls, entry: ActivityItem, *, is_agent: bool = False, number: int = 0) -> Self:
        """Make it of an entry, for the activity of the ticket with this number where one is given."""
        told = exporting.entry(entry)
        if not is_agent:
            told.pop("former_texts", None)
        owner = owner_of(entry.pk) if number else None
        return cls.model_validate({**told, "ticket": owner[1] if owner and owner[1] != number else None})


class ActivityList(ApiModel, json_schema_extra={"example": {"data": [_COMMENT], "next": None}}):
    """A page of a ticket's history: the entries of a page oldest first, the newest page first."""

    data: list[ActivityEntry]
    next: str | None = Field(description="the address of the page with what came before")


class ActivityQuery(ApiQuery):
    """Where a page of the history begins."""

    after: str | None = Field(None, max_length=2000, description="from `next` of the page before")


# --- read what was said and done about a ticket, and add comments and internal notes ---


router: Final = ApiRouter()


@router.declare(
    "GET",
    "/tickets/{ticket_number:number}/activity",
    scope=Scope.TICKETS_READ,
    answers={200: ActivityList},
    sends={200: ("Link",)},
)
@costs(query="ticket", trips=2, reads=8)
def list_activity(request: ApiRequest, number: Number, query: Query[ActivityQuery]) -> HttpResponse:
    """List what was said and done about a ticket.

    Comments, events, and with the scope notes:read internal notes.
    """
    found = timelines.ticket(request.tenant, number, before=query.after)
    entries = [ActivityEntry.of(one, is_agent=request.tenant.is_agent, number=number) for one in found.activity]
    url = answers.next_url(request, found.earlier)
    return answers.page(ActivityList(data=entries, next=url))


@router.declare(
    "POST",
    "/tickets/{ticket_number:number}/comments",
    scope=Scope.COMMENTS_WRITE,
    answers={201: ActivityEntry},
    headers=idempotency.ONCE,
)
@costs(
    get="API answer, file, member, ready answer, request, ticket",
    write="API answer, counter, file, move log, outbox row, request, ticket",
    trips=8,
    reads=10,
    writes=40,
)
def add_comment(request: ApiRequest, number: Number, comment: CommentToAdd) -> HttpResponse:
    """Add a comment, and change the status with it."""
    if comment.status is not None:
        request.caller.tenant_for(Scope.TICKETS_WRITE)
    return _added(request, number, comment, then=comment.status, cc=comment.cc)


@router.declare(
    "POST",
    "/tickets/{ticket_number:number}/notes",
    scope=Scope.NOTES_WRITE,
    answers={201: ActivityEntry},
    headers=idempotency.ONCE,
)
@costs(
    get="file, ready answer, ticket",
    write="API answer, counter, file, outbox row, request, ticket",
    trips=4,
    reads=5,
    writes=30,
)
def add_note(request: ApiRequest, number: Number, note: NoteToAdd) -> HttpResponse:
    """Add an internal note, which viewers do not see."""
    return _added(request, number, note, internal=True)


def _added(
    request: ApiRequest,
    number: int,
    sent: CommentToAdd | NoteToAdd,
    *,
    internal: bool = False,
    then: Status | None = None,
    cc: Sequence[str] = (),
) -> HttpResponse:
    def write(companion: Companion[ActivityItem]) -> None:
        attached = attachments.uploaded(request.acting, sent.files) if sent.files else []
        how: Any = {"internal": internal, "then": then, "cc": cc, "files": attached, "companion": companion}
        if sent.ready_answer:
            how |= _answered(request, number, sent.ready_answer, companion, then)
        commenting.comment(request.acting, number, **how | ({"body": sent.body} if sent.body is not None else {}))

    def render(item: ActivityItem) -> HttpResponse:
        return answers.answer(ActivityEntry.of(item), status=201)

    return idempotency.post(request, write, render)


def _answered(
    request: ApiRequest, number: int, answer_id: str, companion: Companion[ActivityItem], then: Status | None
) -> dict[str, Any]:
    """Return what a ready answer gives a comment: its text, its changes, and what counts it. A status that the caller
    names comes before the answer's. The request is claimed beside the answer's read. Raises Invalid."""
    try:
        filled = with_companion(companion, lambda: inserting.filled(request.acting, number, answer_id))
    except UnknownAnswer as error:
        raise Invalid(error.message, field="ready_answer") from error
    named = {name: [one.value for one in filled.actions if one.name == name] for name in answer_reading.ACTIONS}
    if filled.actions:
        request.caller.tenant_for(Scope.TICKETS_WRITE)
    resolver = next((one for one in named[answer_reading.RESOLVER_ACTION] if one != "me"), None)  # a key is nobody
    status = next(map(Status, named[answer_reading.STATUS_ACTION]), None)
    return {
        "body": filled.text,
        "then": then or status,
        "along": commenting.Along(tuple(named[answer_reading.TAGS_ACTION]), resolver),
        "companion": Uses(request.acting, [answer_id], beside=companion, has_begun=True),
    }


# --- change comments of the last minutes ---


@router.declare(
    "PATCH",
    "/tickets/{ticket_number:number}/comments/{entry}",
    scope=Scope.COMMENTS_WRITE,
    answers={200: ActivityEntry},
)
@costs(query="ticket", write="outbox row, ticket", trips=3, reads=8, writes=20)
def edit_comment(request: ApiRequest, number: Number, entry: EntryId, comment: CommentText) -> HttpResponse:
    """Give a comment of this key another text, within 15 minutes of adding it."""
    return _edited(request, number, entry, comment.body, "comment")


@router.declare(
    "DELETE",
    "/tickets/{ticket_number:number}/comments/{entry}",
    scope=Scope.COMMENTS_WRITE,
    answers={200: ActivityEntry},
)
@costs(query="ticket", trips=1, reads=8)
def delete_comment(request: ApiRequest, number: Number, entry: EntryId) -> HttpResponse:
    """Delete a comment of this key, within 15 minutes of adding it. Its entry says who deleted it and when."""
    return _deleted(request, number, entry, "comment")


@router.declare(
    "PATCH",
    "/tickets/{ticket_number:number}/notes/{entry}",
    scope=Scope.NOTES_WRITE,
    answers={200: ActivityEntry},
)
@costs(query="ticket", trips=1, reads=8)
def edit_note(request: ApiRequest, number: Number, entry: EntryId, note: CommentText) -> HttpResponse:
    """Give an internal note of this key another text, within 15 minutes of adding it."""
    return _edited(request, number, entry, note.body, "note")


@router.declare(
    "DELETE",
    "/tickets/{ticket_number:number}/notes/{entry}",
    scope=Scope.NOTES_WRITE,
    answers={200: ActivityEntry},
)
@costs(query="ticket", write="outbox row, ticket", trips=3, reads=8, writes=20)
def delete_note(request: ApiRequest, number: Number, entry: EntryId) -> HttpResponse:
    """Delete an internal note of this key, within 15 minutes of adding it."""
    return _deleted(request, number, entry, "note")


def _edited(request: ApiRequest, number: int, entry: str, body: str, kind: str) -> HttpResponse:
    item = comment_changes.edit(request.acting, number, entry, body=body, find=_recent(kind))
    return answers.answer(ActivityEntry.of(item, is_agent=request.tenant.is_agent))


def _deleted(request: ApiRequest, number: int, entry: str, kind: str) -> HttpResponse:
    item = comment_changes.delete(request.acting, number, entry, find=_recent(kind))
    return answers.answer(ActivityEntry.of(item))


def _recent(kind: str) -> comment_changes.Find:
    def find(tenant: TenantContext, number: int, entry: str) -> tuple[SummaryItem, ActivityItem]:
        with suppress(NotFound):  # in the same words: a key that may read no notes cannot tell one from nothing
            summary, item = comment_changes.read_recent(tenant, number, entry)
            if item.kind == kind:
                return summary, item
        raise NotFound(f"There is no such {kind} of the last 15 minutes.")

    return find
