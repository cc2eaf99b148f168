"""The page of reports, and the same as a file."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from portal import spreadsheet
from portal.errors import Invalid
from portal.web.access import in_person, member
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.counting import months
from tickets.custom_fields import definitions
from tickets.notices import weekly_turns
from tickets.reports import presenters
from tickets.reports import report as reports


@member(Role.ADMIN)
@require_safe
def report_page(request: TenantRequest) -> HttpResponse:
    """Show a month of the desk, or of one group, assignee, channel or tag."""
    tenant, by = request.tenant, _by(request)
    problem, month = "", reports.this_month(tenant)
    try:
        month = reports.clean_month(tenant, request.GET.get("month", "").strip())
    except Invalid as error:
        problem = error.message
    value, after = _value(request, "value"), _value(request, "after")
    found = reports.read(tenant, month=month, scope=presenters.BY[by], value=value, after=after)
    page = presenters.page(tenant, found, by=by)
    page |= {"problem": problem, "asked": request.GET.get("month", "") if problem else month, "is_first": not after}
    return render(request, "reports/report.html", page, status=400 if problem else 200)


@member(Role.ADMIN)
@require_safe
def report_file(request: TenantRequest) -> HttpResponse:
    """Send the table of a report as CSV. Raises Invalid."""
    tenant, by, value = request.tenant, _by(request), _value(request, "value")
    month = reports.clean_month(tenant, request.GET.get("month", "").strip())
    rows = presenters.file_rows(tenant, month=month, by=by, value=value)
    headers = {"Content-Disposition": f'attachment; filename="report-{tenant.slug}-{month}-{by}.csv"'}
    lines = spreadsheet.lines(presenters.columns(by), rows)
    return HttpResponse("".join(lines), content_type="text/csv; charset=utf-8", headers=headers)


@in_person
@member(Role.ADMIN)
@require_POST
def choose_mail(request: TenantRequest) -> HttpResponse:
    """Let the person get the numbers of each week by mail, or not any more."""
    wanted = request.POST.get("mail") == "yes"
    weekly_turns.choose(request.tenant, request.tenant.user_id, wanted=wanted)
    said = _("You get the numbers of the week each Monday morning.") if wanted else _("You get this mail no more.")
    messages.success(request, said)
    return redirect("tickets:reports")


def _by(request: TenantRequest) -> str:
    asked = request.GET.get("by", "")
    usual = "group" if definitions.of(request.tenant).groups else "assignee"
    return asked if asked in presenters.BY else usual


def _value(request: TenantRequest, name: str) -> str:
    """Return a value that tickets can have, "" for any other text."""
    text = request.GET.get(name, "").strip()
    try:
        months.escaped(text)
    except ValueError:
        return ""
    return text
