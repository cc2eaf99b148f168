"""Find, add and change requesters: people outside the desk for whom tickets are opened."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Annotated, Any, Final, Self

from django.http import HttpResponse
from ninja import Path, Query
from pydantic import Field

from api.edge import answers, idempotency
from api.edge.answers import ApiChange, ApiInput, ApiModel, ApiQuery
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import Moment
from portal.dynamo.transaction import Companion
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.requesters import requester_changes, requester_list, requesters
from tickets.requesters.requester_addresses import ADDRESS_LIMIT
from tickets.requesters.requester_changes import ADDRESSES_LIMIT, NOTES_LIMIT, Details
from tickets.requesters.requesters import NAME_LIMIT, Requester

router: Final = ApiRouter()

_LEFT: Final[Any] = None  # the value of a field that a change does not name
_ADA: Final[dict[str, Any]] = {
    "id": "rq_5f0c1d2e3a4b4c5d8e6f708192a3b4c5",
    "name": "Ada Example",
    "addresses": ["ada@example.org", "ada.example@work.example"],
    "organisation": "Example Works",
    "language": "en",
    "notes": "Calls in the mornings.",
    "undeliverable": {"ada.example@work.example": "The mailbox is full."},
    "version": 2,
    "created_at": "2026-11-20T09:30:00.000000Z",
}
_ID: Final = "^rq_[0-9a-f]{32}$"
RequesterId = Annotated[str, Path(pattern=_ID)]
_Line = Annotated[str, Field(max_length=NAME_LIMIT)]
_Notes = Annotated[str, Field(max_length=NOTES_LIMIT)]
_Language = Annotated[str, Field(max_length=35, description="a code, such as en, de or pt-BR, or empty")]
_Addresses = Annotated[
    list[Annotated[str, Field(min_length=3, max_length=2 * ADDRESS_LIMIT)]],
    Field(max_length=ADDRESSES_LIMIT, description="mail goes to the first; each is one person's"),
]


class RequesterOut(ApiModel, json_schema_extra={"example": _ADA}):
    """A person outside the desk."""

    id: str
    name: str
    addresses: list[str] = Field(description="mail goes to the first")
    organisation: str
    language: str
    notes: str
    undeliverable: dict[str, str] = Field(description="why mail does not arrive, by address")
    version: int = Field(description="grows with each change")
    created_at: Moment

    @classmethod
    def of(cls, person: Requester) -> Self:
        return cls.of_attributes(person, undeliverable=dict(person.bounced))


class RequesterPage(ApiModel, json_schema_extra={"example": {"data": [_ADA], "next": None}}):
    """A page of the people outside the desk, by name."""

    data: list[RequesterOut]
    next: str | None = Field(description="the address of the next page")


class RequesterQuery(ApiQuery):
    """Which people."""

    q: str = Field(
        "",
        max_length=400,
        description="the beginning of a name, its last word or an address; one page",
    )
    after: str | None = Field(None, max_length=2000, description="from `next` of the page before")
    limit: int = Field(50, ge=1, le=100)


class RequesterToAdd(
    ApiInput, json_schema_extra={"example": {"name": "Ada Example", "addresses": ["ada@example.org"]}}
):
    """A new requester, who needs a name or an address."""

    name: _Line = ""
    addresses: _Addresses = Field(default_factory=list)
    organisation: _Line = ""
    language: _Language = ""
    notes: _Notes = ""

    @property
    def details(self) -> Details:
        """The values as the rule takes them."""
        return Details(**self.model_dump() | {"addresses": tuple(self.addresses)})


class RequesterToChange(
    ApiChange, json_schema_extra={"minProperties": 1, "example": {"organisation": "Example Works"}}
):
    """The fields that are to change, at least one; the others stay. Addresses are replaced as a whole."""

    name: _Line = _LEFT
    addresses: _Addresses = _LEFT
    organisation: _Line = _LEFT
    language: _Language = _LEFT
    notes: _Notes = _LEFT

    def details(self, before: Details) -> Details:
        """Return what the person's values become."""
        given = {name: getattr(self, name) for name in self.model_fields_set}
        if "addresses" in given:
            given["addresses"] = tuple(given["addresses"])
        return replace(before, **given)


class OtherRequester(ApiInput, json_schema_extra={"example": {"other": _ADA["id"]}}):
    """The person who stays."""

    other: str = Field(pattern=_ID, description="the id of the person who has all addresses and tickets then")


@router.declare("GET", "/requesters", scope=Scope.REQUESTERS_READ, answers={200: RequesterPage}, sends={200: ("Link",)})
@costs(get="requester", query="requesters by last word, requesters by name", trips=2, reads=12)
def list_requesters(request: ApiRequest, query: Query[RequesterQuery]) -> HttpResponse:
    """List people outside the desk by name, or those whose name or address begins with `q`."""
    found = requester_list.page(request.acting, typed=query.q, after=query.after or "", limit=query.limit, whole=True)
    people = [RequesterOut.of(one) for one in found.people]
    return answers.page(RequesterPage(data=people, next=answers.next_url(request, found.next or None)))


@router.declare(
    "POST",
    "/requesters",
    scope=Scope.REQUESTERS_WRITE,
    answers={201: RequesterOut},
    headers=idempotency.ONCE,
    sends={201: ("Location",)},
)
@costs(write="API answer in the pool, address of a requester, audit row, requester", trips=3, reads=2, writes=30)
def add_requester(request: ApiRequest, requester: RequesterToAdd) -> HttpResponse:
    """Add a person outside the desk.

    An address that somebody has already is refused: find the person by it instead.
    """

    def write(companion: Companion[Requester]) -> None:
        requester_changes.create(
            request.acting,
            requester.details,
            by=request.caller.actor,
            request_id=uuid.uuid4().hex,
            companion=companion,
        )

    def render(made: Requester) -> HttpResponse:
        return answers.answer(RequesterOut.of(made), status=201, Location=f"{request.path}/{made.id}")

    return idempotency.post(request, write, render, is_content=False)


@router.declare(
    "GET",
    "/requesters/{requester_id}",
    scope=Scope.REQUESTERS_READ,
    answers={200: RequesterOut, 304: None},
    headers=answers.KNOWN,
)
@costs(get="requester", trips=2, reads=3)
def read_requester(request: ApiRequest, requester_id: RequesterId) -> HttpResponse:
    """Read a person outside the desk.

    For one who was merged into another, the answer is the person who stands for both, with their own id.
    """
    return answers.tagged(request, RequesterOut.of(requesters.known(request.acting, requester_id)))


@router.declare(
    "PATCH",
    "/requesters/{requester_id}",
    scope=Scope.REQUESTERS_WRITE,
    answers={200: RequesterOut},
    problems_too=(412,),
    headers=answers.MATCH,
    sends={200: ("ETag",)},
)
@costs(get="requester", write="address of a requester, audit row, requester", trips=3, reads=3, writes=30)
def change_requester(request: ApiRequest, requester_id: RequesterId, requester: RequesterToChange) -> HttpResponse:
    """Change fields of a person outside the desk."""

    def check(person: Requester) -> None:
        shown = RequesterOut.of(person)
        answers.require_match(request, answers.tag(answers.encoded(shown)), current=shown.model_dump(mode="json"))

    changed = requester_changes.change(
        request.acting, requester_id, requester.details, version=None, by=request.caller.actor, check=check
    )
    shown = RequesterOut.of(changed)
    return answers.answer(shown, ETag=answers.tag(answers.encoded(shown)))


_changes_requester: Final = costs(
    get="requester", write="address of a requester, audit row, requester", trips=3, reads=5, writes=30
)


@router.declare("PUT", "/requesters/{requester_id}/merge", scope=Scope.REQUESTERS_WRITE, answers={200: RequesterOut})
@_changes_requester
def merge_requester(request: ApiRequest, requester_id: RequesterId, target: OtherRequester) -> HttpResponse:
    """Merge a person into another one, who has all addresses and tickets then, and is the answer."""
    both = requester_changes.merge(request.acting, target.other, requester_id, by=request.caller.actor)
    return answers.answer(RequesterOut.of(both))


@router.declare("DELETE", "/requesters/{requester_id}/merge", scope=Scope.REQUESTERS_WRITE, answers={200: RequesterOut})
@_changes_requester
def separate_requester(request: ApiRequest, requester_id: RequesterId) -> HttpResponse:
    """Let a merged person be one of their own again, with their addresses as far as those are still there."""
    return answers.answer(
        RequesterOut.of(requester_changes.undo_merge(request.acting, requester_id, by=request.caller.actor))
    )
