"""Show the audit trail of a desk as a page, and send it as a file. Rules are in browsing.py."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal import clock, spreadsheet
from portal.errors import Invalid
from portal.web.access import for_auditors, member, on_get, on_post, open_while_closing
from portal.web.heavy_work import heavy
from tenants.audit_trail import browsing, chain, recording
from tenants.audit_trail.browsing import TrailFilter, TrailPage, TrailRow
from tenants.audit_trail.chain import Head
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import AuditAction, AuditEntry
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of


class AuditFilterForm(forms.Form):
    """Take the filters of the audit trail. The page's address holds them."""

    actor = forms.CharField(required=False, max_length=64)
    entity = forms.CharField(required=False, max_length=120)
    first = forms.DateField(label=gettext_lazy("From"), required=False, widget=forms.DateInput(attrs={"type": "date"}))
    last = forms.DateField(label=gettext_lazy("Until"), required=False, widget=forms.DateInput(attrs={"type": "date"}))


_COLUMNS = ("time (UTC)", "person", "origin", "action", "entity", "name", "before", "after")


@for_auditors
@member(Role.ADMIN)
@on_get(query="audit row, audit rows by actor, audit rows by object", trips=2, reads=20)
def audit_page(request: TenantRequest) -> HttpResponse:
    """Show a page of the trail, of one person or thing or of all. Costs one Query, and one more to look for a head."""
    chosen = _chosen(request.GET)
    problem, only, trail = "", TrailFilter(), TrailPage([], None, None)
    try:
        only = browsing.filter_of(**chosen, zone=request.tenant.zone)
    except Invalid as error:
        problem = error.message
    else:
        erased = ErasedPeople.parse(request.tenant.erased)
        trail = browsing.page(request.tenant.repository, only=only, after=request.GET.get("after"), erased=erased)
    page: dict[str, Any] = {
        "form": AuditFilterForm(initial=chosen),
        "problem": problem,
        "rows": trail.rows,
        "chosen": chosen,
        "title": _title(only, trail.rows),
        "next_url": f"?{urlencode(chosen | {'after': trail.next})}" if trail.next else None,
        "previous_url": f"?{urlencode(chosen | {'after': trail.previous})}" if trail.previous else None,
        "newest_url": f"?{urlencode(chosen)}",
        "is_first": "after" not in request.GET,
        "head": _head(request),
        "days": urlencode({name: value for name, value in chosen.items() if name in ("first", "last")}),
    }
    return render(request, "tenants/audit.html", page, status=400 if problem else 200)


def _head(request: TenantRequest) -> dict[str, Any]:
    """Say whether the head of a letter is in the trail; nothing is read where none was given."""
    text = request.GET.get("head", "").strip()
    try:
        head = Head.parse(text)
    except ValueError:
        return {"text": text, "state": "unreadable" if text else ""}
    repository = request.tenant.repository
    return {
        "text": head.text,
        "rows": head.rows,
        "newest": sum(1 for number in head.sequences if number),  # the end of each chain partition
        "before": head.before,
        "state": chain.find_head(repository, head).value,
    }


def _chosen(fields: QueryDict) -> dict[str, str]:
    """Return the filters that are not empty, by name."""
    texts = {name: fields.get(name, "").strip() for name in ("actor", "entity", "first", "last")}
    return {name: text for name, text in texts.items() if text}


def _title(only: TrailFilter, rows: list[TrailRow]) -> str:
    """Say whose entries the list shows, or about what, in the words of its rows."""
    if only.actor:
        return _("by %(actor)s") % {"actor": rows[0].actor} if rows else _("by this person")
    if only.entity:
        name = next((row.entity for row in rows if row.entity), "")
        nobody = _("about this person") if only.entity[0] == "user" else _("about this")
        return _("about %(entity)s") % {"entity": name} if name else nobody
    return ""


@open_while_closing
@for_auditors
@member(Role.ADMIN)
@on_post(write="audit row", trips=4, reads=2, writes=10)
@heavy
def export(request: TenantRequest) -> HttpResponseBase:
    """Send the whole list as CSV while it is read. The export is recorded in the trail itself."""
    tenant = request.tenant
    chosen = _chosen(request.POST)
    only = browsing.filter_of(**chosen, zone=request.tenant.zone)
    entry = AuditEntry(
        tenant.tenant_id, AuditAction.EXPORT_MADE, actor_of(request), "export", "audit", "the audit trail", after=chosen
    )
    recording.record(entry)
    name = f"audit-{tenant.slug}-{clock.now():%Y%m%d-%H%M%S}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    erased = ErasedPeople.parse(tenant.erased)
    rows = spreadsheet.lines(_COLUMNS, map(_cells, browsing.everything(tenant.repository, only=only, erased=erased)))
    return StreamingHttpResponse(rows, content_type="text/csv; charset=utf-8", headers=headers)


def _cells(row: TrailRow) -> tuple[str, ...]:
    before, after = (", ".join(f"{k}: {v}" for k, v in values.items()) for values in (row.before, row.after))
    return (clock.stamp(row.at), row.actor, row.origin, row.action, row.entity_type, row.entity, before, after)
