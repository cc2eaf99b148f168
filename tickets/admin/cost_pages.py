"""Show operators what each desk costs, what belongs to none, and what the requests of each route cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from portal import clock, spreadsheet
from portal.dynamo.client import fan_out
from portal.errors import Invalid
from portal.hosting import prices
from portal.load import route_costs, spending
from portal.load.route_costs import READS, TRIPS, WRITES, RouteDay
from portal.load.spending import day_of
from portal.nosql.admin import Notice
from portal.web import checks
from portal.web.access import costs as declared
from tenants.lifecycle import certificates
from tenants.operators.operator_site import OperatorSite
from tenants.tenancy import tenant_directory
from tickets.costs import presenters, statement
from tickets.costs.statement import Statement

DESKS: Final = 50  # of a page
CERTIFICATES: Final = 100  # that are looked through for deleted desks
DELETED, PLATFORM = "deleted", "platform"  # rows that are no desk's
_DECIMALS: Final = 6
_WEEK: Final = 7  # days ago, with which today is compared

_COLUMNS: Final = (
    "Desk", "Id", "Requests", "Read units", "Write units", "Index write units", "Use (USD)", "Storage (USD)"
)  # fmt: skip


class CostedDesk(NamedTuple):
    """A desk, all deleted desks or the platform, and its statement."""

    id: str
    name: str
    of: Statement


@OperatorSite.page("costs/", name="costs", title="Costs")
@declared(
    query="certificate, costs of the platform, costs of a day, tenant by name",
    trips=5,
    reads=400,
    room="50 desks have 100 days each, of a kilobyte",
)
def costs(request: HttpRequest) -> HttpResponse:
    """Show a month, `?month=2026-11`, of DESKS desks by slug, of deleted desks and of the platform: three Queries, and
    one for each desk.

    `?order=cost` has the dearest desks of the page first, `?of=` chooses whose features are shown, and `?file=1` sends
    all desks as CSV.
    """
    asked, problem = request.GET.get("month", ""), ""
    try:
        month = statement.clean_month(asked)
    except Invalid as error:
        month, problem = statement.this_month(), error.message
    if request.GET.get("file"):
        return _file(month)
    reads: list[Any] = [partial(_desks, month, request.GET.get("after", "")), partial(_others, month)]
    (desks, has_more), others = fan_out(reads)
    after = desks[-1].name if has_more else ""
    order = "cost" if request.GET.get("order") == "cost" else "name"
    if order == "cost":
        desks.sort(key=lambda desk: -desk.of.use)
    everything = [*desks, *others]
    all_use = sum(one.of.use for one in everything)
    chosen = next((one for one in everything if one.id == request.GET.get("of")), None)
    sums = [CostedDesk("", name, _sum(of, month)) for name, of in (("These desks", desks), ("Together", everything))]
    context = {
        **OperatorSite.context_of(request),
        "title": f"Costs: {presenters.month_title(month)}",
        "problem": problem,
        "month": month,
        "previous": presenters.shifted(month, -1),
        "next": presenters.shifted(month, 1) if month < statement.this_month() else "",
        "order": order,
        "rows": [_row(one, all_use) for one in desks],
        "sums": [_row(one, all_use) for one in (sums[0], *others, sums[1])],
        "total": _dollars(all_use),
        "forecast": "" if sums[1].of.forecast_of_use is None else _dollars(sums[1].of.forecast_of_use),
        "chosen": chosen,
        "features": _features(chosen.of if chosen else sums[1].of),
        "is_part": has_more or bool(request.GET.get("after")),
        "here": request.GET.get("after", ""),
        "after": after,
        "noted": prices.NOTED,
        "prices": {"read": f"{prices.READ_UNIT * 1e6:g}", "write": f"{prices.WRITE_UNIT * 1e6:g}"},
        "lost": _dollars(spending.WORTH * prices.WRITE_UNIT),
    }
    return TemplateResponse(request, "tickets/admin/costs.html", context)


def _desks(month: str, after: str) -> tuple[list[CostedDesk], bool]:
    """Return the desks of a page, and whether more follow."""
    found = tenant_directory.after(after, limit=DESKS + 1)
    desks = found[:DESKS]
    statements = fan_out([partial(statement.stored_of, one.tenant_id, month, one.created_at) for one in desks])
    of_desks = zip(desks, statements, strict=True)
    return [CostedDesk(one.tenant_id, one.name, of) for one, of in of_desks], len(found) > DESKS


def _others(month: str) -> list[CostedDesk]:
    """Return what belongs to no desk of any page: deleted desks, and the platform."""
    reads = [partial(statement.stored_of, tenant_id, month) for tenant_id in _deleted(month)]
    platform, *gone = fan_out([partial(statement.of_platform, month), *reads])
    deleted = [CostedDesk(DELETED, "Deleted desks", statement.sum_of(gone, month))] if gone else []
    return [*deleted, CostedDesk(PLATFORM, "The platform", platform)]


def _deleted(month: str) -> list[str]:
    """Return the ids of desks that were deleted since the month before began: their costs are kept, and workers may
    have worked for them a little longer."""
    since = presenters.shifted(month, -1)
    return [one.tenant_id for one in certificates.last_issued(CERTIFICATES) if one.created_at >= since]


def _sum(several: Iterable[CostedDesk], month: str) -> Statement:
    return statement.sum_of([one.of for one in several], month)


def _row(one: CostedDesk, all_use: float) -> dict[str, Any]:
    of = one.of
    return {
        "id": one.id,
        "name": one.name,
        "requests": "" if one.id == PLATFORM else f"{of.requests:,}",
        "reads": f"{of.units.reads:,.0f}",
        "writes": f"{of.units.writes:,.0f}",
        "index_writes": f"{of.units.index_writes:,.0f}",
        "capacity": _dollars(of.units.dollars),
        "use": _dollars(of.use),
        "share": f"{100 * of.use / all_use:.1f}%" if all_use else "",
        "forecast": "" if of.forecast_of_use is None else _dollars(of.forecast_of_use),
        "storage": "" if one.id == PLATFORM else "not measured" if of.storage is None else _dollars(of.storage),
    }


def _features(of: Statement) -> list[dict[str, str]]:
    """Return a row for each feature, the dearest first, and for what is paid for beside capacity and storage."""
    return [
        {
            "title": str(feature.title),
            "reads": f"{units.reads:,.0f}",
            "writes": f"{units.writes:,.0f}",
            "index_writes": f"{units.index_writes:,.0f}",
            "dollars": _dollars(units.dollars),
            "share": f"{100 * units.dollars / of.units.dollars:.1f}%" if of.units.dollars else "",
        }
        for feature, units in of.by_feature.items()
    ] + [
        {"title": str(presenters.title_of(counted.name)), "reads": "", "writes": "", "index_writes": "",
         "dollars": _dollars(counted.dollars), "share": ""}
        for counted in of.counted.values()
        if counted.dollars and counted.name not in statement.STORED
    ]  # fmt: skip


def _file(month: str) -> HttpResponse:
    lines = spreadsheet.lines(_COLUMNS, _file_rows(month))
    headers = {"Content-Disposition": f'attachment; filename="costs-of-desks-{month}.csv"'}
    response: Any = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)
    return response  # type: ignore[no-any-return]


def _file_rows(month: str) -> Iterator[list[str]]:
    """Yield all desks by slug, DESKS of them at a time, and then what belongs to no desk."""
    after, has_more = "", True
    while has_more:
        desks, has_more = _desks(month, after)
        after = desks[-1].name if desks else ""
        for one in desks if has_more else [*desks, *_others(month)]:
            of, units = one.of, one.of.units
            amounts = [f"{number:.1f}" for number in (units.reads, units.writes, units.index_writes)]
            storage = "" if of.storage is None else f"{of.storage:.9f}"
            yield [one.name, one.id, str(of.requests), *amounts, f"{of.use:.9f}", storage]


def _dollars(amount: float) -> str:
    if 0 < amount < 10**-_DECIMALS:
        return f"under ${10**-_DECIMALS:.{_DECIMALS}f}"
    return f"${amount:,.{_DECIMALS}f}"


# --- routes ---


ORDERS: Final = {"all": "all requests", "each": "one request, 99th percentile"}


@OperatorSite.page("route-costs/", name="route_costs", title="Costs of routes")
@declared(query="costs of routes", trips=3, reads=700, room="hundreds of routes on 14 days, of a kilobyte each")
def routes(request: HttpRequest) -> HttpResponse:
    """Show the medians and 99th percentiles of each route, or of those whose address or name has `?q=`, and what got
    dearer: a Query for each of 14 days. `?order=` is one of ORDERS."""
    days = route_costs.latest(clock.now())
    found = route_costs.read(days)
    asked, order = request.GET.get("q", "").strip(), request.GET.get("order", "")
    order = order if order in ORDERS else "all"
    names = {path: name for path, name, _ in checks.routes()}
    named = [one for one in found if asked.lower() in f"{one.route} {names.get(one.route.split()[-1], '')}".lower()]
    rows = route_rows(named, [day_of(day) for day in days])
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
        "path": route.partition(" ")[2],
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
    """Report routes that cost more than before this release, as this process has found in the last hour."""
    found = route_costs.route_costs.dearer
    if not found:
        return []
    more = f" {len(found) - 1} more numbers have grown." if len(found) > 1 else ""
    return [Notice(30, f"This release costs more: {found[0]}.{more}", reverse("admin:route_costs"), "error")]
