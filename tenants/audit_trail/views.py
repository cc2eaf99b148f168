"""The audit trail of a desk, as a page and as a file. Rules are in trail.py."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.http import urlencode
from django.views.decorators.http import require_POST, require_safe

from portal import clock
from portal.errors import Invalid
from portal.web.access import member
from tenants.audit_trail import browsing, recording
from tenants.audit_trail.browsing import TrailFilter, TrailPage, TrailRow
from tenants.audit_trail.forms import AuditFilterForm
from tenants.audit_trail.recording import AuditAction, AuditEntry
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role

_COLUMNS = ("time (UTC)", "who", "from", "action", "what", "name", "before", "after")


@member(Role.ADMIN)
@require_safe
def audit_page(request: TenantRequest) -> HttpResponse:
    asked = {name: request.GET.get(name, "").strip() for name in ("actor", "entity", "first", "last")}
    problem, only, found = "", TrailFilter(), TrailPage([], None, None)
    try:
        only = browsing.filter_of(**asked)
    except Invalid as error:
        problem = error.message
    else:
        found = browsing.page(request.tenant.repository, only=only, after=request.GET.get("after"))
    given = {name: value for name, value in asked.items() if value}
    page: dict[str, Any] = {
        "form": AuditFilterForm(initial=asked),
        "problem": problem,
        "rows": found.rows,
        "asked": given,
        "title": _title(only, found.rows),
        "next_url": f"?{urlencode(given | {'after': found.next})}" if found.next else None,
        "previous_url": f"?{urlencode(given | {'after': found.previous})}" if found.previous else None,
        "newest_url": f"?{urlencode(given)}",
        "is_first": "after" not in request.GET,
        "days": urlencode({name: value for name, value in given.items() if name in ("first", "last")}),
    }
    return render(request, "tenants/audit.html", page, status=400 if problem else 200)


def _title(only: TrailFilter, rows: list[TrailRow]) -> str:
    """Whose or about what the list is, as its rows have it."""
    if only.actor:
        return f"by {rows[0].actor}" if rows else "by this person"
    if only.entity:
        return f"about {rows[0].entity or only.entity[0]}" if rows else "about this"
    return ""


@member(Role.ADMIN)
@require_POST
def export(request: TenantRequest) -> HttpResponseBase:
    """The whole list as CSV, sent while it is read. That it was made is a row of the trail itself."""
    tenant = request.tenant
    asked = {name: request.POST.get(name, "").strip() for name in ("actor", "entity", "first", "last")}
    only = browsing.filter_of(**asked)
    after = {name: value for name, value in asked.items() if value}
    entry = AuditEntry(
        tenant.tenant_id, AuditAction.EXPORT_MADE, actor_of(request), "export", "audit", "the audit trail", after=after
    )
    recording.record(entry)
    name = f"audit-{tenant.slug}-{clock.now():%Y%m%d-%H%M%S}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    rows = _lines(browsing.everything(tenant.repository, only=only))
    return StreamingHttpResponse(rows, content_type="text/csv; charset=utf-8", headers=headers)


class _Echo:
    """Gives csv.writer's line back instead of storing it."""

    def write(self, line: str) -> str:
        return line


def _lines(rows: Iterator[TrailRow]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    yield writer.writerow(_COLUMNS)
    for row in rows:
        before, after = (", ".join(f"{k}: {v}" for k, v in values.items()) for values in (row.before, row.after))
        cells = (clock.stamp(row.at), row.actor, row.origin, row.action, row.entity_type, row.entity, before, after)
        yield writer.writerow([harmless(cell) for cell in cells])


def harmless(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula. Source: OWASP, "CSV Injection"."""
    return f"'{cell}" if cell[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") else cell
