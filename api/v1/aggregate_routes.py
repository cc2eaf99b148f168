"""Read the numbers of the dashboard, and which tags there are."""

from __future__ import annotations

from typing import Final, Literal

from django.http import HttpResponse
from ninja import Query
from pydantic import ConfigDict

from api.door import answers
from api.door.answers import ApiInput
from api.door.routing import ApiRequest, ApiRouter
from api.v1.aggregate_schemas import Aggregates, Counted, Others, TagList, TagOut
from tenants.api_keys.scopes import Scope
from tickets.dashboards import dashboard

router: Final = ApiRouter()


class AggregatesQuery(ApiInput):
    """Over how many days, today among them."""

    model_config = ConfigDict(extra="forbid", strict=False)

    days: Literal["30", "90"] = "30"


@router.declare(
    "GET", "/aggregates", scope=Scope.AGGREGATES_READ, answers={200: Aggregates, 304: None}, headers=answers.KNOWN
)
def read_aggregates(request: ApiRequest, query: Query[AggregatesQuery]) -> HttpResponse:
    """Read the numbers of the desk.

    They cost the same for ten tickets and for ten million, and say in `counted` up to when they are complete.
    """
    return answers.tagged(request, Aggregates.of(dashboard.read(request.acting, days=int(query.days))))


@router.declare("GET", "/tags", scope=Scope.AGGREGATES_READ, answers={200: TagList, 304: None}, headers=answers.KNOWN)
def list_tags(request: ApiRequest) -> HttpResponse:
    """List the tags of tickets, with how many tickets of each status have them."""
    read = dashboard.tags(request.acting)
    found = [TagOut.of(load) for load in read.tags]
    return answers.tagged(
        request,
        TagList(
            counted=Counted.of(read.freshness),
            data=found,
            others=read.others.most,
            unlisted=Others.of(read.others),
            next=None,
        ),
    )
