"""Read the numbers of the dashboard, and which tags there are."""

from __future__ import annotations

import math
from datetime import date
from typing import Any, Final, Literal

from django.http import HttpResponse
from ninja import Query
from pydantic import Field

from api.edge import answers
from api.edge.answers import ApiModel, ApiQuery
from api.edge.routing import ApiRequest, ApiRouter
from api.v1.ticket_schemas import Moment
from portal import clock
from portal.web.access import costs
from tenants.api_keys.scopes import Scope
from tickets.counting.leaders import Outside
from tickets.dashboards import dashboard
from tickets.dashboards.dashboard import Dashboard, Freshness, Load, Week
from tickets.dashboards.durations import Durations
from tickets.ticket.fields import Priority, Status

_STATUSES: Final[dict[str, Any]] = {"open": 3, "pending": 1, "resolved": 0, "closed": 7}
_NO_OTHERS: Final[dict[str, Any]] = {
    "at_least": 0,
    "at_most": 0,
    "unresolved_at_most": 0,
    "tickets": {"open": 0, "pending": 0, "resolved": 0, "closed": 0},
}
_NONE: Final[dict[str, Any]] = {"urgent": 0, "high": 0, "normal": 0, "low": 0}
_COUNTED: Final[dict[str, Any]] = {"state": "current", "as_of": "2026-11-20T09:30:00.000000Z"}
_TOOK: Final[dict[str, Any]] = {"count": 2, "seconds": 5400, "median_seconds": 1800.0, "p95_seconds": 3420.0}
_DAY: Final = "2026-11-20"


class Counted(ApiModel):
    """Up to when the numbers are complete: they are counted behind the tickets, by a second or so."""

    state: Literal["current", "behind", "stopped", "unknown"] = Field(
        description="unknown: nobody says up to when; `as_of` is then when the last change was counted"
    )
    as_of: Moment | None = Field(description="every change up to this moment has been counted")

    @classmethod
    def of(cls, freshness: Freshness) -> Counted:
        return cls(state=freshness.state, as_of=clock.stamp(freshness.as_of) if freshness.as_of else None)


class Others(ApiModel):
    """People or tags that a list leaves out: how many, with how many tickets, and how many unresolved ones each has at
    most. Where two numbers are given, the true one lies between them."""

    at_least: int
    at_most: int
    unresolved_at_most: int
    tickets: dict[Status, int] = Field(description="of all of them together; a ticket counts for each of its tags")

    @classmethod
    def of(cls, others: Outside) -> Others:
        tickets = {s: max(0, others.tickets.get(s.value[0], 0)) for s in Status}
        most = others.unresolved_at_most
        return cls(at_least=others.least, at_most=others.most, unresolved_at_most=most, tickets=tickets)


class TagOut(ApiModel):
    """A tag, and how many tickets of each status have it."""

    tag: str
    tickets: dict[Status, int]

    @classmethod
    def of(cls, load: Load) -> TagOut:
        return cls(tag=load.key, tickets=dict(load.statuses))


class ResolverOut(ApiModel):
    """A resolver, and how many tickets of each status they have. The id is null for those that nobody has."""

    id: str | None
    name: str
    tickets: dict[Status, int]

    @classmethod
    def of(cls, load: Load) -> ResolverOut:
        return cls(id=load.key or None, name=load.name, tickets=dict(load.statuses))


_TAGS: Final[dict[str, Any]] = {
    "counted": _COUNTED,
    "data": [{"tag": "printer", "tickets": _STATUSES}],
    "others": 0,
    "unlisted": _NO_OTHERS,
    "next": None,
}


class TagList(ApiModel, json_schema_extra={"example": _TAGS}):
    """The tags of tickets, those with most unresolved ones first."""

    counted: Counted
    data: list[TagOut]
    others: int = Field(description="how many tags of tickets are not in the list, at most")
    unlisted: Others
    next: None = Field(description="there are no more pages")


class DurationsOut(ApiModel):
    """Durations of something. Median and 95th percentile are estimates, null where there is none or it is too long."""

    count: int
    seconds: int = Field(description="all together")
    median_seconds: float | None
    p95_seconds: float | None

    @classmethod
    def of(cls, took: Durations) -> DurationsOut:
        return cls(
            count=took.count, seconds=took.seconds, median_seconds=_finite(took.median), p95_seconds=_finite(took.p95)
        )


class DayOut(ApiModel):
    """The events of a day in the time zone of the desk."""

    date: date
    created: int
    resolved: int = Field(description="resolutions that still hold")
    reopened: int
    commented: int


class WeekOut(ApiModel):
    """First answers and resolutions of a week, as far as it lies in the period."""

    first: date
    last: date
    first_answers: DurationsOut
    resolutions: DurationsOut

    @classmethod
    def of(cls, week: Week) -> WeekOut:
        return cls(
            first=week.period.first,
            last=week.period.last,
            first_answers=DurationsOut.of(week.first),
            resolutions=DurationsOut.of(week.done),
        )


class AgeOut(ApiModel):
    """Unresolved tickets by when they were opened; null for an open end."""

    first: date | None
    last: date | None
    count: int


_EXAMPLE: Final[dict[str, Any]] = {
    "counted": _COUNTED,
    "first": _DAY,
    "last": _DAY,
    "tickets": {
        "open": {"urgent": 0, "high": 1, "normal": 2, "low": 0},
        "pending": _NONE,
        "resolved": _NONE,
        "closed": _NONE,
    },
    "days": [{"date": _DAY, "created": 3, "resolved": 0, "reopened": 0, "commented": 4}],
    "unresolved_by_age": [{"first": "2026-11-16", "last": None, "count": 3}],
    "resolvers": [{"id": None, "name": "Unassigned", "tickets": _STATUSES}],
    "other_resolvers": 0,
    "unlisted_resolvers": _NO_OTHERS,
    "tags": [{"tag": "printer", "tickets": _STATUSES}],
    "other_tags": 0,
    "unlisted_tags": _NO_OTHERS,
    "first_answers": _TOOK,
    "resolutions": _TOOK,
    "weeks": [{"first": _DAY, "last": _DAY, "first_answers": _TOOK, "resolutions": _TOOK}],
}


class Aggregates(ApiModel, json_schema_extra={"example": _EXAMPLE}):
    """The numbers of the desk."""

    counted: Counted
    first: date = Field(description="the first day, in the desk's time zone; the numbers of tickets are those of now")
    last: date
    tickets: dict[Status, dict[Priority, int]]
    days: list[DayOut]
    unresolved_by_age: list[AgeOut]
    resolvers: list[ResolverOut] = Field(description="most unresolved tickets first")
    other_resolvers: int = Field(description="how many people with tickets are not in the list, at most")
    unlisted_resolvers: Others
    tags: list[TagOut] = Field(description="most unresolved tickets first")
    other_tags: int = Field(description="how many tags of tickets are not in the list, at most")
    unlisted_tags: Others
    first_answers: DurationsOut
    resolutions: DurationsOut
    weeks: list[WeekOut] = Field(description="latest first")

    @classmethod
    def of(cls, read: Dashboard) -> Aggregates:
        return cls(
            counted=Counted.of(read.freshness),
            first=read.period.first,
            last=read.period.last,
            tickets={s: {p: read.matrix[s, p] for p in Priority} for s in Status},
            days=[DayOut.model_validate(day) for day in read.days],
            unresolved_by_age=[AgeOut.model_validate(age) for age in read.ages],
            resolvers=[ResolverOut.of(load) for load in read.loads],
            other_resolvers=read.other_people.most,
            unlisted_resolvers=Others.of(read.other_people),
            tags=[TagOut.of(load) for load in read.tags],
            other_tags=read.other_tags.most,
            unlisted_tags=Others.of(read.other_tags),
            first_answers=DurationsOut.of(read.first),
            resolutions=DurationsOut.of(read.done),
            weeks=[WeekOut.of(week) for week in read.weeks],
        )


def _finite(seconds: float | None) -> float | None:
    return None if seconds is None or math.isinf(seconds) else round(seconds, 1)


# --- read the numbers of the dashboard, and which tags there are ---


router: Final = ApiRouter()


class AggregatesQuery(ApiQuery):
    """Over how many days, today among them."""

    days: Literal["30", "90"] = "30"


@router.declare(
    "GET", "/aggregates", scope=Scope.AGGREGATES_READ, answers={200: Aggregates, 304: None}, headers=answers.KNOWN
)
@costs(
    get="member, placed stream, watermark",
    query="aggregate, members by name",
    trips=4,
    reads=60,
    room="those not at hand who have tickets",
)
def read_aggregates(request: ApiRequest, query: Query[AggregatesQuery]) -> HttpResponse:
    """Read the numbers of the desk.

    They cost the same for ten tickets and for ten million, and say in `counted` up to when they are complete.
    """
    return answers.tagged(request, Aggregates.of(dashboard.read(request.acting, days=int(query.days))))


@router.declare("GET", "/tags", scope=Scope.AGGREGATES_READ, answers={200: TagList, 304: None}, headers=answers.KNOWN)
@costs(get="placed stream, watermark", query="aggregate", trips=2, reads=10)
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
