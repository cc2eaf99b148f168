"""Read who belongs to the desk."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from django.http import HttpResponse
from ninja import Path, Query
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiModel, ApiQuery
from api.edge.routing import ApiRequest, ApiRouter
from portal.errors import NotFound
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tenants.membership import members

router: Final = ApiRouter()
_PAGE: Final = 500  # members, some 12 units: a program reads all, and each request costs two units beside

MemberRole = Literal["viewer", "agent", "admin", "owner"]
PersonId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]

_BOB: Final[dict[str, Any]] = {
    "id": "0a1b2c3d4e5f40718293a4b5c6d7e8f9",
    "name": "Bob Example",
    "email": "ben@desk.example",
    "role": "agent",
    "time_zone": "Europe/Berlin",
    "language": "de",
}


class MemberOut(ApiModel, json_schema_extra={"example": _BOB}):
    """A member of the desk."""

    id: str
    name: str
    email: str
    role: MemberRole = Field(description="what the person may do; viewers only read, and have no tickets")
    time_zone: str | None = Field(description="a name of IANA's database, null where that of the desk holds")
    language: str | None = Field(description="as `en` or `de`, null where that of the desk holds")


class MemberList(ApiModel, json_schema_extra={"example": {"data": [_BOB], "next": None}}):
    """A page of the members of the desk, by name."""

    data: list[MemberOut]
    next: str | None = Field(description="the address of the next page")


class MemberListQuery(ApiQuery):
    """Which members."""

    role: MemberRole | None = None
    after: str | None = Field(None, max_length=2000, description="from `next` of the page before")


@router.declare(
    "GET", "/members", scope=Scope.MEMBERS_READ, answers={200: MemberList, 304: None}, headers=answers.KNOWN
)
@costs(query="members by name", trips=1, reads=20)
def list_members(request: ApiRequest, query: Query[MemberListQuery]) -> HttpResponse:
    """List the members of the desk, by name, 500 at a time. A page has fewer where a role is asked for."""
    people, more = members.page(request.acting.repository, after=query.after or "", size=_PAGE)
    found = [MemberOut.model_validate(one) for one in people if query.role is None or one.role.value == query.role]
    return answers.tagged(request, MemberList(data=found, next=answers.next_url(request, more or None)))


@router.declare(
    "GET", "/members/{member_id}", scope=Scope.MEMBERS_READ, answers={200: MemberOut, 304: None}, headers=answers.KNOWN
)
@costs(get="member", trips=1, reads=2)
def read_member(request: ApiRequest, member_id: PersonId) -> HttpResponse:
    """Read a member of the desk."""
    found = members.member(request.acting.repository, member_id)
    if found is None:
        raise NotFound("There is no such member.")
    return answers.tagged(request, MemberOut.model_validate(found))
