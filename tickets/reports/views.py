"""The page of reports, and the same as a file."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal.errors import Forbidden, Invalid
from portal.web.access import in_person, member, on_get, on_post
from portal.web.views import csv_file
from tenants.membership import mail_choices
from tenants.membership.mail_choices import MailedReport
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest
from tickets.counting import months
from tickets.custom_fields import definitions
from tickets.notices import report_turns
from tickets.notices.report_turns import TURNS
from tickets.reports import letter_presenters, monthly, presenters
from tickets.reports import report as reports

_CHOSEN: Final = {
    MailedReport.WEEKLY: gettext_noop("You get the numbers of the week each Monday morning."),
    MailedReport.MONTHLY: gettext_noop("You get the monthly letter in the morning of the first of each month."),
}


@member(Role.ADMIN)
@on_get(
    get="member, placed stream, watermark",
    query="aggregate, members by name",
    trips=4,
    reads=60,
    room="those not at hand who have tickets",
)
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
@on_get(
    get="member, placed stream, watermark",
    query="aggregate, members by name",
    trips=4,
    reads=60,
    room="those not at hand who have tickets",
)
def report_file(request: TenantRequest) -> HttpResponse:
    """Send the table of a report as CSV. Raises Invalid."""
    tenant, by, value = request.tenant, _by(request), _value(request, "value")
    month = reports.clean_month(tenant, request.GET.get("month", "").strip())
    rows = presenters.file_rows(tenant, month=month, by=by, value=value)
    return csv_file(f"report-{tenant.slug}-{month}-{by}", presenters.columns(by), rows)


@in_person
@member(Role.ADMIN)
@on_post(query="due rows by time, member, placed tenant", write="due row, member", trips=11, reads=12, writes=20)
def choose_mail(request: TenantRequest) -> HttpResponse:
    """Let the person get the numbers of each week, or an owner the monthly letter by mail, or not any more."""
    asked, wanted = request.POST.get("report", ""), request.POST.get("mail") == "yes"
    report = MailedReport(asked) if asked in list(MailedReport) else MailedReport.WEEKLY
    if wanted and not request.tenant.role.at_least(TURNS[report].role):
        raise Forbidden(_("Only owners get the monthly letter."))
    report_turns.choose(request.tenant, request.tenant.user_id, report, wanted=wanted)
    messages.success(request, _(_CHOSEN[report]) if wanted else _("You get this mail no more."))
    return redirect("tickets:reports" if report is MailedReport.WEEKLY else "tickets:monthly-letter")


@member(Role.OWNER)
@on_get(
    get="counter, file, member",
    query="aggregate, audit row, audit rows by object, costs of a day, incidents, isolation proof, past isolation "
    "run, tenant by name, ticket, usage",
    write="costs of a day",
    trips=6,
    reads=60,
    writes=2,
)
def letter_page(request: TenantRequest) -> HttpResponse:
    """Show the letter of a month that is over, for those who get it by mail and before one asks for it."""
    tenant, asked = request.tenant, request.GET.get("month", "").strip()
    problem, month = "", monthly.last_month(tenant)
    try:
        month = monthly.clean_month(tenant, asked)
    except Invalid as error:
        problem = error.message
    page = letter_presenters.page(tenant, monthly.read(tenant, month))
    choices = mail_choices.chosen(tenant.repository, tenant.user_id)
    page |= {
        "problem": problem,
        "asked": asked if problem else month,
        "wants_monthly": MailedReport.MONTHLY in choices.reports,
    }
    return render(request, "reports/letter.html", page, status=400 if problem else 200)


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
