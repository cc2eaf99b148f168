"""Show operators what each desk costs, what belongs to none, and what the requests of each route cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Invalid
from portal.hosting import prices
from portal.load import route_costs
from portal.load.route_costs import READS, TRIPS, WRITES, RouteDay
from portal.load.spending import day_of
from portal.nosql.admin import Notice
from portal.web.costs import costs as declared
from tenants.operators.operator_site import OperatorSite
from tenants.tenancy import tenant_directory
from tickets.costs import presenters, statement
from tickets.costs.statement import Statement

DESKS: Final = 50  # of a page
_DECIMALS: Final = 6
_WEEK: Final = 7  # days ago, with which today is compared


@OperatorSite.page("costs/", name="costs", title="Costs")
@declared(query="costs of the platform, costs of a day, tenant by name", trips=5, reads=60)
def costs(request: HttpRequest) -> HttpResponse:
    """Show a month, `?month=2026-11`, of DESKS desks by slug, and the platform's part: two Queries, and one for each
    desk."""
    asked, problem = request.GET.get("month", ""), ""
    try:
        month = statement.clean_month(asked)
    except Invalid as error:
        month, problem = statement.this_month(), error.message
    desks = tenant_directory.after(request.GET.get("after", ""), limit=DESKS + 1)
    reads = [partial(statement.stored_of, desk.tenant_id, month) for desk in desks[:DESKS]]
    platform, *found = fan_out([partial(statement.of_platform, month), *reads])
    context = {
        **OperatorSite.context_of(request),
        "title": f"Costs: {presenters.month_title(month)}",
        "problem": problem,
        "month": month,
        "previous": presenters.shifted(month, -1),
        "next": presenters.shifted(month, 1) if month < statement.this_month() else "",
        "rows": [{"id": desk.tenant_id, "slug": desk.name, **_row(of)} for desk, of in zip(desks, found, strict=False)],
        "sum": _dollars(sum(of.total for of in found)),
        "platform": _row(platform),
        "platform_features": [(feature.title, _dollars(of.dollars)) for feature, of in platform.by_feature.items()],
        "after": desks[DESKS - 1].name if len(desks) > DESKS else "",
        "noted": prices.NOTED,
    }
    return TemplateResponse(request, "tickets/admin/costs.html", context)


def _row(of: Statement) -> dict[str, Any]:
    return {
        "requests": f"{of.requests:,}",
        "reads": f"{of.units.reads:,.0f}",
        "writes": f"{of.units.writes:,.0f}",
        "index_writes": f"{of.units.index_writes:,.0f}",
        "capacity": _dollars(of.units.dollars),
        "total": _dollars(of.total),
        "forecast": "" if of.forecast is None else _dollars(of.forecast),
    }


def _dollars(amount: float) -> str:
    return f"${amount:,.{_DECIMALS}f}"


# --- routes ---


ORDERS: Final = {"all": "all requests", "each": "one request, 99th percentile"}


@OperatorSite.page("route-costs/", name="route_costs", title="Costs of routes")
@declared(query="costs of routes", trips=3, reads=100)
def routes(request: HttpRequest) -> HttpResponse:
    """Show the medians and 99th percentiles of each route, or of those that `?q=` is a part of, and what got dearer: a
    Query for each of 14 days. `?order=` is one of ORDERS."""
    days = route_costs.latest(clock.now())
    found = route_costs.read(days)
    asked, order = request.GET.get("q", "").strip(), request.GET.get("order", "")
    order = order if order in ORDERS else "all"
    rows = route_rows([one for one in found if asked.lower() in one.route.lower()], [day_of(day) for day in days])
    context = {
        **OperatorSite.context_of(request),
        "title": "Costs of routes",
        "days": len(days),
        "compared": len([*route_costs.comparable(found)]),
        "dearer": route_costs.dearer(found),
        "least": route_costs.LEAST_REQUESTS,
        "written": route_costs.WRITTEN,
        "asked": asked,
        "orders": ORDERS.items(),
        "order": order,
        "rows": sorted(rows, key=lambda row: -row["costs"][order]),
    }
    return TemplateResponse(request, "tickets/admin/route_costs.html", context)


def route_rows(found: Iterable[RouteDay], days: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each route. `days` are those that were read, latest first."""
    by_route: dict[str, dict[str, RouteDay]] = defaultdict(dict)
    for one in found:
        by_route[one.route].setdefault(one.day, RouteDay(one.route, "")).add(one)
    return [_route_row(route, of_days, days) for route, of_days in by_route.items()]


def _route_row(route: str, of_days: dict[str, RouteDay], days: Sequence[str]) -> dict[str, Any]:
    latest = next(of_days[day] for day in days if day in of_days)
    before = next((of_days[day] for day in days[_WEEK:] if day in of_days), None)
    dearest = [_dollars_of(of_days[day], 99) if day in of_days else 0.0 for day in reversed(days)]
    most = max(dearest) or 1.0
    return {
        "route": route,
        "requests": f"{sum(one.requests for one in of_days.values()):,}",
        "now": _numbers(latest),
        "before": _numbers(before) if before else None,
        "most": _of_a_million(max(dearest)),
        "bars": [
            {"x": f"{place}.1", "y": f"{10 - 10 * cost / most:.1f}", "height": f"{10 * cost / most:.1f}"}
            for place, cost in enumerate(dearest)
        ],
        "costs": {
            "all": sum(_dollars_of(one, 50) * one.requests for one in of_days.values()),
            "each": _dollars_of(latest, 99),
        },
    }


def _dollars_of(day: RouteDay, percent: int) -> float:
    reads, writes = day.percentile(READS, percent), day.percentile(WRITES, percent)
    return reads * prices.READ_UNIT + writes * prices.WRITE_UNIT


def _of_a_million(dollars: float) -> str:
    return f"${dollars * 1e6:,.2f}"


def _numbers(day: RouteDay) -> dict[str, str]:
    """Return "median / 99th percentile" of each kind, and of the price of a million requests."""
    kinds = {"reads": READS, "writes": WRITES, "trips": TRIPS}
    numbers = {name: f"{day.percentile(kind, 50):,g} / {day.percentile(kind, 99):,g}" for name, kind in kinds.items()}
    price = " / ".join(_of_a_million(_dollars_of(day, percent)) for percent in (50, 99))
    return {**numbers, "day": day.day, "million": price}


@OperatorSite.watches
def routes_got_dearer() -> list[Notice]:
    """Report routes that cost more than before this release: a Query for each of 14 days, at the same time."""
    found = route_costs.dearer(route_costs.read(route_costs.latest(clock.now())))
    if not found:
        return []
    more = f" {len(found) - 1} more numbers have grown." if len(found) > 1 else ""
    return [Notice(30, f"This release costs more: {found[0]}.{more}", reverse("admin:route_costs"), "error")]
