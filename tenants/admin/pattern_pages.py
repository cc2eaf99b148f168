"""Show operators which access patterns each route and command uses, their bounds, and what took more than declared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse

from portal import clock
from portal.load import excess_costs
from portal.management import command
from portal.nosql.admin import Notice
from portal.schema import access_patterns
from portal.schema.access_patterns import ALL, Cost
from portal.web import checks, costs
from tenants.operators.operator_site import OperatorSite


@OperatorSite.page("access-patterns/", name="access_patterns", title="Access patterns")
@costs.costs(query="excess cost", trips=1, reads=5)
def patterns(request: HttpRequest) -> HttpResponse:
    """Show all routes and commands, or those that use the table or index in `?place=`: a Query."""
    places = sorted({shape.place for shape in access_patterns.shapes()})
    asked = request.GET.get("place", "")
    place = asked if asked in places else ""
    context = {
        **OperatorSite.context_of(request),
        "title": "Access patterns",
        "excesses": [_excess_row(item) for item in excess_costs.latest()],
        "kept_days": excess_costs.KEPT_DAYS,
        "places": places,
        "place": place,
        "keys": [shape for shape in access_patterns.shapes() if shape.place == place],
        "groups": [
            ("Levels of access", _rows(costs.levels().items(), place)),
            ("Routes", _rows(_routes(), place)),
            ("Commands", _rows(command.declared().items(), place)),
        ],
    }
    return TemplateResponse(request, "tenants/admin/access_patterns.html", context)


def _routes() -> list[tuple[str, Cost]]:
    return sorted((f"{method} {route}".strip(), what) for route, method, _, what in checks.declared_costs())


def _rows(declared: Iterable[tuple[str, Cost | None]], place: str) -> list[dict[str, Any]]:
    """Return the rows of declarations that use a place, of all where it is "". None is what may do anything."""
    rows = []
    for name, what in declared:
        lines = what.lines() if what else []
        if place == "" or {place, ALL} & {where for _, _, where in lines}:
            bound = what.bound() if what else "whatever it proves"
            rows.append({"name": name, "lines": lines, "bound": bound})
    return rows


def _excess_row(item: Any) -> dict[str, Any]:
    return {
        "route": item.fingerprint,
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
