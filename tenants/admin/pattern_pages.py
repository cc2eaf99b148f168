"""Show operators which access patterns each route and command uses, their bounds, and what took more than declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from portal import clock
from portal.load import excess_costs
from portal.management import command
from portal.nosql.admin import Notice
from portal.schema import access_patterns
from portal.schema.access_patterns import Cost
from portal.web import access, checks
from portal.web.access import on_get
from tenants.operators.operator_site import OperatorSite

ROWS: Final = 25  # on a page
COMMANDS: Final = "commands"  # beside the levels of access of routes
_ANYTHING: Final = Cost()  # of a proof, which does whatever people do


@OperatorSite.page("access-patterns/", name="access_patterns", title="Access patterns")
@on_get(query="excess cost", trips=1, reads=5)
def patterns(request: HttpRequest) -> HttpResponse:
    """Show the routes and commands that have `?q=` in their name, address, file or keys, use the table or index
    `place` and are of the access `level`, some of them on each page: a Query."""
    asked = {name: request.GET.get(name, "").strip() for name in ("q", "place", "level")}
    found = [row for row in _rows() if _fits(row, asked)]
    page = Paginator(found, ROWS).get_page(request.GET.get("page"))
    context = {
        **OperatorSite.context_of(request),
        "title": "Access patterns",
        "excesses": [_excess_row(item) for item in excess_costs.latest()],
        "kept_days": excess_costs.KEPT_DAYS,
        "places": sorted({shape.place for shape in access_patterns.shapes()}),
        "levels": [*access.costs_of_levels(), COMMANDS],
        "asked": asked,
        "is_filtered": any(asked.values()),
        "page": page,
        "query": urlencode({name: value for name, value in asked.items() if value}),
        "beside": [(name, _patterns(what), what.bound()) for name, what in _beside()],
    }
    return TemplateResponse(request, "tenants/admin/access_patterns.html", context)


def _beside() -> list[tuple[str, Cost]]:
    """Return what requests take before their route, equal levels together, and now and then."""
    by_cost: dict[Cost, list[str]] = {}
    for name, what in access.costs_of_levels().items():
        by_cost.setdefault(what, []).append(name)
    return [(", ".join(names), what) for what, names in by_cost.items()] + [*access.costs_of_happenings().items()]


def _rows() -> Iterator[dict[str, Any]]:
    for routes in checks.declarations():
        first, what = routes[0], routes[0].cost
        level = access.cost_of_level(first.view)
        yield {
            "titles": [(one.title, one.name) for one in routes],
            "file": first.file,
            "level": first.level,
            "cost": what,
            "patterns": _patterns(what),
            "bound": what.bound(),
            "before": level.bound(),
            "total": first.total.bound(),
        }
    for name, declared in command.declared().items():
        what = declared or _ANYTHING
        bound = what.bound() if declared else "whatever it proves"
        row = {"titles": [(f"manage.py {name}", "")], "file": "", "level": COMMANDS, "cost": what}
        yield row | {"patterns": _patterns(what), "bound": bound, "before": "", "total": ""}


def _patterns(what: Cost) -> list[dict[str, str]]:
    found = [
        {"operation": operation, "name": shape.name, "place": shape.place, "keys": shape.keys}
        for operation, shapes in what.by_operation()
        for shape in shapes
    ]
    every = [operation for operation, name in sorted(what.patterns) if name == access_patterns.ALL]
    return found + [{"operation": one, "name": "", "place": "all that a tenant has", "keys": ""} for one in every]


def _fits(row: dict[str, Any], asked: dict[str, str]) -> bool:
    places, names = {one["place"] for one in row["patterns"]}, {name for _, name in row["cost"].patterns}
    text = " ".join([row["file"], *names, *(f"{title} {name}" for title, name in row["titles"])]).lower()
    return (
        asked["q"].lower() in text
        and asked["level"] in ("", row["level"])
        and (not asked["place"] or asked["place"] in places or access_patterns.ALL in names)
    )


def _excess_row(item: Any) -> dict[str, Any]:
    return {
        "route": item.fingerprint,
        "path": item.fingerprint.partition(" ")[2],
        "bound": item.bound,
        "worst": item.worst,
        "factor": f"{item.factor:g}",
        "times": int(item.times),
        "first_at": clock.parse(item.first_at),
        "last_at": clock.parse(item.last_at),
    }


@OperatorSite.watches
def routes_cost_too_much() -> list[Notice]:
    """Report routes that took more than they declare: a Query."""
    found = len(excess_costs.latest())
    if not found:
        return []
    what = "route costs more than it declares" if found == 1 else "routes cost more than they declare"
    return [Notice(30, f"{found} {what}.", reverse("admin:access_patterns"))]
