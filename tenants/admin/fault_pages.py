"""Show operators the unexpected errors of all processes, grouped by where they came from."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from portal import clock
from portal.faults import fault_board
from portal.faults.fault_board import KEPT_DAYS, SHOWN
from portal.faults.stored import FaultItem
from portal.web.access import on_get, on_post
from tenants.operators.operator_site import OperatorSite


@OperatorSite.page("errors/", name="errors", title="Errors")
@on_get(query="error", trips=1, reads=2)
@on_post(query="error", trips=1, reads=2)
def errors(request: HttpRequest) -> HttpResponse:
    """Show the hundred errors that came last: a Query."""
    context = {
        **OperatorSite.context_of(request),
        "title": "Errors",
        "errors": [_row(item) for item in fault_board.latest()],
        "kept_days": KEPT_DAYS,
        "shown": SHOWN,
    }
    return TemplateResponse(request, "tenants/admin/errors.html", context)


def _row(item: FaultItem) -> dict[str, Any]:
    places = item.places.splitlines()
    ours = [place for place in places if not place.startswith(("<", "/"))]
    return {
        "fingerprint": item.fingerprint,
        "type": item.type,
        "place": (ours or places or [""])[-1],
        "places": places,
        "times": int(item.times),
        "first_at": clock.parse(item.first_at),
        "last_at": clock.parse(item.last_at),
        "route": item.route,
        "process": item.process,
        "request": item.request,
    }
