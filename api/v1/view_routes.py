"""Read the saved views of the desk: lists of tickets under names, with the parameters that give the same list here."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpResponse
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiModel
from api.edge.routing import ApiRequest, ApiRouter
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.saved_views import saved_views

router: Final = ApiRouter()

_FIRES: Final[dict[str, Any]] = {
    "id": "0123456789ab",
    "name": "Urgent first",
    "list": {"status": "unresolved", "sort": "-priority"},
}


class ViewOut(ApiModel, json_schema_extra={"example": _FIRES}):
    """A view of the desk."""

    id: str
    name: str
    list: dict[str, str] = Field(
        description="the parameters of its list as `GET /tickets` takes them; a `resolver` of me is whoever looks"
    )


class ViewsOut(ApiModel, json_schema_extra={"example": {"data": [_FIRES]}}):
    """The views of the desk, in its order."""

    data: list[ViewOut]


@router.declare("GET", "/views", scope=Scope.TICKETS_READ, answers={200: ViewsOut})
@costs(get="saved views", trips=1, reads=1)
def list_views(request: ApiRequest) -> HttpResponse:
    """List the views that admins have made for the desk. Views of single members are theirs alone."""
    views = saved_views.of_desk(request.tenant)
    return answers.answer(ViewsOut(data=[ViewOut(id=v.id, name=v.name, list=v.params) for v in views]))
