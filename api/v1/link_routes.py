"""Read links between tickets, make and remove them."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from django.http import HttpResponse
from ninja import Path
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiModel
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import Number
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.desk import timelines
from tickets.linking import linking

_EXAMPLE: Final = {"kind": "blocks", "number": 8}
_Kind = Literal["blocks", "blocked_by", "duplicate_of", "duplicated_by", "relates_to", "split_into", "split_from"]


class LinkOut(ApiModel, json_schema_extra={"example": _EXAMPLE}):
    """A link to another ticket, which has the opposite one."""

    kind: _Kind
    number: int = Field(description="of the other ticket")


class LinkList(ApiModel, json_schema_extra={"example": {"data": [_EXAMPLE], "next": None}}):
    """All links of a ticket."""

    data: list[LinkOut]
    next: None = Field(description="there are no more pages")


Kind = Annotated[Literal["blocks", "blocked_by", "duplicate_of", "duplicated_by", "relates_to"], Path()]
router: Final = ApiRouter()


@router.declare("GET", "/tickets/{ticket_number:number}/links", scope=Scope.TICKETS_READ, answers={200: LinkList})
@costs(query="ticket", trips=1, reads=8)
def list_links(request: ApiRequest, number: Number) -> HttpResponse:
    """List the links of a ticket to others."""
    _, detail = timelines.described(request.tenant, number)
    found = [LinkOut.model_validate({"kind": one.kind, "number": int(one.number)}) for one in detail.links or ()]
    return answers.page(LinkList(data=found, next=None))


@router.declare(
    "PUT",
    "/tickets/{ticket_number:number}/links/{kind}/{ticket_number:other}",
    scope=Scope.TICKETS_WRITE,
    answers={204: None},
)
@costs(get="ticket", write="outbox row, ticket", trips=3, reads=6, writes=20)
def add_link(request: ApiRequest, number: Number, kind: Kind, other: Number) -> HttpResponse:
    """Link a ticket to another one, which gets the opposite link.

    Nothing changes where they are linked so already.
    """
    linking.link(request.acting, number, kind, other)
    return HttpResponse(status=204)


@router.declare(
    "DELETE",
    "/tickets/{ticket_number:number}/links/{kind}/{ticket_number:other}",
    scope=Scope.TICKETS_WRITE,
    answers={204: None},
)
@costs(get="ticket", write="outbox row, ticket", trips=3, reads=6, writes=20)
def remove_link(request: ApiRequest, number: Number, kind: Kind, other: Number) -> HttpResponse:
    """Remove a link on both sides.

    Nothing changes where there is none.
    """
    linking.unlink(request.acting, number, kind, other)
    return HttpResponse(status=204)
