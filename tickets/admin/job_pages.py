"""Show operators the jobs of all kinds on one page, and report on the admin's first page which of them are stuck."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import urlencode

from portal import clock
from portal.dynamo.client import fan_out
from portal.nosql.admin import Notice
from portal.web.access import costs
from tenants.lifecycle import import_notes
from tenants.operators.operator_site import OperatorSite
from tickets.admin.tenant_page import cells
from tickets.bulk_jobs import bulk_requests
from tickets.desk_export import export_requests
from tickets.isolation_runs import run_requests
from tickets.jobs.leased_job import JobKind
from tickets.jobs.stored import JobItem
from tickets.moving import place_changes
from tickets.purging import purge_requests
from tickets.rules import rehearsal_requests
from tickets.sharding import reshard_requests


@dataclass(frozen=True)
class _Shown:
    """A kind of job, what notices call it, and the operators' page that it is ordered and stopped on."""

    kind: JobKind[Any]
    what: str
    page: str


_ORDERED_BY_OPERATORS: Final = (
    _Shown(place_changes.MOVES, "The move", "places"),
    _Shown(replace(reshard_requests.RESHARDINGS, role="platform"), "The resharding", "shards"),
    _Shown(purge_requests.PURGES, "The deletion", "deletions"),
)
_SHOWN: Final = (
    *_ORDERED_BY_OPERATORS,
    _Shown(export_requests.EXPORTS, "The export", ""),
    _Shown(bulk_requests.BULKS, "The bulk change", ""),
    _Shown(rehearsal_requests.REHEARSALS, "The rehearsal", ""),
    _Shown(run_requests.RUNS, "The isolation run", ""),
)
_STATES: Final = {run_requests.HELD: "isolation held", run_requests.CROSSED: "isolation was crossed"}


@OperatorSite.page("jobs/", name="jobs", title="Jobs")
@costs(query="arriving tenant, bulk job, export, isolation run, move, purge, rehearsal, resharding", trips=1, reads=15)
def jobs(request: HttpRequest) -> HttpResponse:
    """Show the last job of each kind and tenant, and the imports that have not ended: one Query for each kind."""
    lasts, arriving = _read(_SHOWN)
    found = [(shown, item) for shown, items in zip(_SHOWN, lasts, strict=True) for item in items]
    found.sort(key=lambda one: (one[1].state in one[0].kind.unfinished, one[1].begun_at), reverse=True)
    rows = [_row(shown, item) for shown, item in found]
    context = {
        **OperatorSite.context_of(request),
        "title": "Jobs",
        "rows": rows,
        "arriving": [_arriving(item).text for item in arriving],
    }
    return TemplateResponse(request, "tickets/admin/jobs.html", context)


def _read(several: Sequence[_Shown]) -> tuple[list[list[Any]], list[Any]]:
    *lasts, arriving = fan_out([*(shown.kind.all_last for shown in several), import_notes.all_under_way])
    return lasts, arriving


def _row(shown: _Shown, item: JobItem) -> dict[str, Any]:
    is_open = item.state in shown.kind.unfinished
    worker = ("at work" if item.holder else "waits for a worker") if is_open else ""
    began = clock.parse(item.begun_at) if item.begun_at else ""
    url = reverse("admin:tenants_tenant_change", args=[item.tenant_id])
    if shown.page:
        url = f"{reverse(f'admin:{shown.page}')}?{urlencode({'tenant': item.slug})}"
    return {
        "slug": item.slug,
        "url": url,
        "cells": cells(
            Job=shown.kind.name,
            State=_STATES.get(item.state, item.state),
            Step=item.phase,
            Worker=worker,
            Begun=began,
            Trouble=item.trouble,
        ),
    }


@OperatorSite.watches
def jobs_are_stuck() -> list[Notice]:
    """Report each unfinished job with a trouble, each purge that is about to begin, and each import that has not ended:
    one Query for each kind."""
    lasts, arriving = _read(_ORDERED_BY_OPERATORS)
    found = [(shown, item) for shown, items in zip(_ORDERED_BY_OPERATORS, lasts, strict=True) for item in items]
    return [
        *(_stuck(shown, item) for shown, item in found if item.trouble and item.state in shown.kind.unfinished),
        *(_ordered(item) for shown, item in found if item.state == purge_requests.ORDERED),
        *map(_arriving, arriving),
    ]


def _stuck(shown: _Shown, item: JobItem) -> Notice:
    return Notice(20, f"{shown.what} of {item.slug} waits. {item.trouble}", reverse(f"admin:{shown.page}"), "error")


def _ordered(item: Any) -> Notice:
    begins = f"{purge_requests.begins_at(item):%H:%M} UTC"
    url = f"{reverse('admin:deletions')}?{urlencode({'tenant': item.slug})}"
    return Notice(21, f"The deletion of {item.slug} is ordered. It begins after {begins}.", url, "error")


def _arriving(item: Any) -> Notice:
    text = f"The import of {item.name} has not ended: it is under way, or broken off."
    return Notice(24, text, reverse("admin:deletions"), "info")
