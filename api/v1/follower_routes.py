"""Read who follows a ticket, and let members follow it or end that."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiModel
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.member_routes import PersonId
from api.v1.ticket_schemas import Number
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.desk import changing
from tickets.notices import following

_FOLLOWERS: Final[dict[str, Any]] = {"data": ["0a1b2c3d4e5f40718293a4b5c6d7e8f9"], "next": None}

router: Final = ApiRouter()


class FollowerList(ApiModel, json_schema_extra={"example": _FOLLOWERS}):
    """The ids of all members who follow a ticket."""

    data: list[str]
    next: None = Field(description="there are no more pages")


@router.declare(
    "GET", "/tickets/{ticket_number:number}/followers", scope=Scope.TICKETS_READ, answers={200: FollowerList}
)
@costs(get="ticket", trips=1, reads=1)
def list_followers(request: ApiRequest, number: Number) -> HttpResponse:
    """List who follows a ticket.

    They get its comments by mail, as its assignee does.
    """
    summary = changing.read(request.tenant, number, consistent=False)
    return answers.page(FollowerList(data=sorted(summary.followers or ()), next=None))


@router.declare(
    "PUT",
    "/tickets/{ticket_number:number}/followers/{member_id}",
    scope=Scope.TICKETS_WRITE,
    answers={204: None},
)
@costs(get="member", write="ticket", trips=3, reads=2, writes=10)
def add_follower(request: ApiRequest, number: Number, member_id: PersonId) -> HttpResponse:
    """Let a member follow a ticket.

    Nothing changes where the member follows it already. A member who muted the ticket still gets no mail about it.
    """
    following.follow_as(request.acting, number, member_id)
    return HttpResponse(status=204)


@router.declare(
    "DELETE",
    "/tickets/{ticket_number:number}/followers/{member_id}",
    scope=Scope.TICKETS_WRITE,
    answers={204: None},
)
@costs(write="ticket", trips=1, writes=10)
def remove_follower(request: ApiRequest, number: Number, member_id: PersonId) -> HttpResponse:
    """End that a member follows a ticket.

    Nothing changes where the member does not follow it.
    """
    following.unfollow_as(request.acting, number, member_id)
    return HttpResponse(status=204)
