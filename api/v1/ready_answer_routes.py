"""Read and change the shared ready answers. Those of members are their own, and no key has any."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, Self

from django.http import HttpResponse
from ninja import Path, Query
from pydantic import Field, Strict

from api.edge import answers, idempotency
from api.edge.answers import ApiChange, ApiInput, ApiModel, ApiQuery
from api.edge.routing import ApiRequest, ApiRouter
from api.edge.sentences import TextPattern
from api.v1.ticket_schemas import Moment, tag_list
from portal.dynamo.client import alongside
from portal.dynamo.transaction import Companion
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.ready_answers import answer_changes, answer_reading
from tickets.ready_answers.answer_reading import SHORTCUT_LIMIT, TITLE_LIMIT, Given
from tickets.ready_answers.stored import ReadyAnswerItem, ReadyAnswerRow
from tickets.ticket.fields import COMMENT_LIMIT, TAGS_LIMIT, Status

router: Final = ApiRouter()

_SCOPE: Final = Scope.ANSWERS_MANAGE
_LEFT: Final[Any] = None  # the value of a field that a change does not name
_ROW: Final[dict[str, Any]] = {
    "id": "ra_5f0c1d2e3a4b4c5d8e6f708192a3b4c5",
    "title": "Refund for a parcel",
    "shortcut": "refund",
    "uses": 40,
}
_TEXT: Final[dict[str, Any]] = {"body": "Hello {requester}, we refund **{title}**.", "status": "resolved"}
_REFUND: Final[dict[str, Any]] = (
    _ROW
    | _TEXT
    | {
        "tags": ["money"],
        "resolver": "me",
        "version": 2,
        "changed_at": "2026-11-20T09:30:00.000000Z",
    }
)
ReadyAnswerId = Annotated[str, Path(pattern="^ra_[0-9a-f]{32}$")]
_Title = Annotated[str, Field(min_length=1, max_length=TITLE_LIMIT)]
_Shortcut = Annotated[
    str,
    Field(max_length=SHORTCUT_LIMIT, description="a word that no other one has"),
    TextPattern(r"^;?[^\W_][\w-]*$", "A shortcut is one word of letters, digits and hyphens."),
]
_Text = Annotated[
    str, Field(min_length=1, max_length=COMMENT_LIMIT, description="Markdown, with placeholders such as {requester}")
]
_Status = Annotated[Status, Strict(False)]
_Tags = Annotated[list[str], Field(max_length=TAGS_LIMIT, description="that a ticket gets with the comment")]
_Resolver = Annotated[
    str, Field(pattern="^(me|[0-9a-f]{32})$", description="a member's id, or me for whoever uses the answer")
]


class ReadyAnswerLine(ApiModel, json_schema_extra={"example": _ROW}):
    """A shared ready answer in the list."""

    id: str
    title: str
    shortcut: str
    uses: int = Field(description="comments in which it was used")


class ReadyAnswerOut(ReadyAnswerLine, json_schema_extra={"example": _REFUND}):
    """A shared ready answer with its text, and with what it changes in a ticket."""

    body: str = Field(description="Markdown, with placeholders")
    status: Status | None
    tags: list[str]
    resolver: str | None = Field(description="a member's id, or me for whoever uses the answer")
    version: int = Field(description="grows with each change")
    changed_at: Moment

    @classmethod
    def of(cls, item: ReadyAnswerItem, uses: int) -> Self:
        changed = {"status": item.status or None, "resolver": item.resolver or None}
        return cls.of_attributes(item, id=item.answer_id, uses=uses, **changed)


class ReadyAnswerPage(ApiModel, json_schema_extra={"example": {"data": [_ROW], "next": None}}):
    """A page of the shared answers, by shortcut."""

    data: list[ReadyAnswerLine]
    next: str | None = Field(description="the address of the next page")


class ReadyAnswerQuery(ApiQuery):
    """Which answers."""

    q: str = Field("", max_length=100, description="beginnings of words of a title or a shortcut; one page")
    after: str = Field("", max_length=2000, description="from `next` of the page before")
    limit: int = Field(50, ge=1, le=100)


class ReadyAnswerToAdd(
    ApiInput, json_schema_extra={"example": {"title": "Refund for a parcel", "shortcut": "refund", **_TEXT}}
):
    """A new answer for everybody at the desk."""

    title: _Title
    shortcut: _Shortcut
    body: _Text
    status: _Status | None = None
    tags: _Tags = Field(default_factory=list)
    resolver: _Resolver | None = None


class ReadyAnswerToChange(ApiChange, json_schema_extra={"minProperties": 1, "example": {"shortcut": "money"}}):
    """The fields that are to change, at least one; the others stay. Null ends a change of status or assignee."""

    title: _Title = _LEFT
    shortcut: _Shortcut = _LEFT
    body: _Text = _LEFT
    status: _Status | None = None
    tags: _Tags = _LEFT
    resolver: _Resolver | None = None


def _given(sent: ReadyAnswerToAdd | ReadyAnswerToChange) -> dict[str, Any]:
    """Return the fields that are named, as the rules take them. Raises Invalid."""
    values: dict[str, Any] = {}
    for name in sent.model_fields_set:
        value = getattr(sent, name)
        values[name] = tuple(tag_list(value)) if name == "tags" else str(value) if value is not None else ""
    return values


@router.declare("GET", "/ready-answers", scope=_SCOPE, answers={200: ReadyAnswerPage}, sends={200: ("Link",)})
@costs(get="counter", query="ready answer", trips=2, reads=8)
def list_ready_answers(request: ApiRequest, query: Query[ReadyAnswerQuery]) -> HttpResponse:
    """List the shared ready answers by shortcut, or those that have words which begin as `q` says."""
    tenant, cursor = request.acting, ""
    rows: list[ReadyAnswerRow]
    if query.q.strip():
        rows = answer_reading.find(tenant, query.q, limit=query.limit)
    else:
        rows, cursor = answer_reading.listed(tenant, shared=True, after=query.after, limit=query.limit)
    uses = answer_reading.uses(tenant, [row.answer_id for row in rows])
    lines = [
        ReadyAnswerLine(id=row.answer_id, title=row.title, shortcut=row.shortcut, uses=uses[row.answer_id])
        for row in rows
    ]
    return answers.page(ReadyAnswerPage(data=lines, next=answers.next_url(request, cursor or None)))


@router.declare(
    "POST",
    "/ready-answers",
    scope=_SCOPE,
    answers={201: ReadyAnswerOut},
    headers=idempotency.ONCE,
    sends={201: ("Location",)},
)
@costs(get="member", write="API answer in the pool, audit row, ready answer", trips=4, reads=3, writes=40)
def add_ready_answer(request: ApiRequest, answer: ReadyAnswerToAdd) -> HttpResponse:
    """Add a ready answer for everybody at the desk."""

    def write(companion: Companion[ReadyAnswerItem]) -> None:
        given = Given(**_given(answer))
        answer_changes.create(request.acting, given, shared=True, by=request.caller.actor, companion=companion)

    def render(made: ReadyAnswerItem) -> HttpResponse:
        shown = ReadyAnswerOut.of(made, 0)
        return answers.answer(shown, status=201, Location=f"{request.path}/{shown.id}")

    return idempotency.post(request, write, render, is_content=False)


@router.declare("GET", "/ready-answers/{answer_id}", scope=_SCOPE, answers={200: ReadyAnswerOut})
@costs(get="counter, ready answer", trips=1, reads=3)
def read_ready_answer(request: ApiRequest, answer_id: ReadyAnswerId) -> HttpResponse:
    """Read a shared ready answer."""
    item, uses = alongside(
        partial(answer_reading.read, request.acting, answer_id),
        aside=partial(answer_reading.uses, request.acting, [answer_id]),
    )
    return answers.answer(ReadyAnswerOut.of(item, uses[answer_id]))


@router.declare("PATCH", "/ready-answers/{answer_id}", scope=_SCOPE, answers={200: ReadyAnswerOut})
@costs(get="counter, ready answer", write="audit row, ready answer", trips=4, reads=6, writes=40)
def change_ready_answer(request: ApiRequest, answer_id: ReadyAnswerId, answer: ReadyAnswerToChange) -> HttpResponse:
    """Change fields of a shared ready answer."""
    item, uses = alongside(
        partial(answer_reading.read, request.acting, answer_id),
        aside=partial(answer_reading.uses, request.acting, [answer_id]),
    )
    given, seen = replace(Given.of(item), **_given(answer)), int(item.version)
    changed = answer_changes.change(request.acting, answer_id, given, version=seen, by=request.caller.actor)
    return answers.answer(ReadyAnswerOut.of(changed, uses[answer_id]))


@router.declare("DELETE", "/ready-answers/{answer_id}", scope=_SCOPE, answers={204: None})
@costs(get="ready answer", write="audit row, ready answer", trips=3, reads=3, writes=30)
def delete_ready_answer(request: ApiRequest, answer_id: ReadyAnswerId) -> HttpResponse:
    """Delete a shared ready answer. Comments that were made of it stay."""
    answer_changes.delete(request.acting, answer_id, by=request.caller.actor)
    return HttpResponse(status=204)
