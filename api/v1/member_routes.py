"""Read who belongs to the desk."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from django.http import HttpResponse
from ninja import Path, Query
from pydantic import ConfigDict, Field

from api.edge import answers
from api.edge.answers import ApiInput, ApiModel
from api.edge.routing import ApiRequest, ApiRouter
from portal.errors import NotFound
from tenants.api_keys.scopes import Scope
from tenants.membership import members
from tenants.membership.members import Member
from tenants.tenancy.roles import Role

router: Final = ApiRouter()

PersonId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]

_BOB: Final[dict[str, Any]] = {
    "id": "0a1b2c3d4e5f40718293a4b5c6d7e8f9",
    "name": "Bob Example",
    "email": "ben@desk.example",
    "role": "agent",
}


class MemberOut(ApiModel):
    """A member of the desk."""

    model_config = ConfigDict(json_schema_extra={"example": _BOB})

    id: str
    name: str
    email: str
    role: Role = Field(description="what the person may do; viewers only read, and have no tickets")

    @classmethod
    def of(cls, member: Member) -> MemberOut:
        return cls(id=member.id, name=member.name, email=member.email, role=member.role)


class MemberList(ApiModel):
    """All members of the desk, by name."""

    model_config = ConfigDict(json_schema_extra={"example": {"data": [_BOB], "next": None}})

    data: list[MemberOut]
    next: None = Field(description="there are no more pages")


class MemberListQuery(ApiInput):
    """Which members."""

    model_config = ConfigDict(extra="forbid", strict=False)

    role: Literal["owner", "admin", "agent", "viewer"] | None = None


@router.declare(
    "GET", "/members", scope=Scope.MEMBERS_READ, answers={200: MemberList, 304: None}, headers=answers.KNOWN
)
def list_members(request: ApiRequest, query: Query[MemberListQuery]) -> HttpResponse:
    """List the members of the desk, by name."""
    people = members.members_of(request.acting.repository)
    found = [MemberOut.of(one) for one in people if query.role is None or one.role.value == query.role]
    return answers.tagged(request, MemberList(data=found, next=None))


@router.declare(
    "GET", "/members/{member_id}", scope=Scope.MEMBERS_READ, answers={200: MemberOut, 304: None}, headers=answers.KNOWN
)
def read_member(request: ApiRequest, member_id: PersonId) -> HttpResponse:
    """Read a member of the desk."""
    found = members.member(request.acting.repository, member_id)
    if found is None:
        raise NotFound("There is no such member.")
    return answers.tagged(request, MemberOut.of(found))
