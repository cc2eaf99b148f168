"""The page of a desk's costs, and the same by day as a file."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from portal import spreadsheet
from portal.errors import Invalid
from portal.load import spending
from portal.web.access import member
from portal.web.costs import costs
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.costs import presenters, statement


@member(Role.OWNER)
@costs(get="counter, file", query="costs of a day, ticket", trips=5, reads=80)
@require_safe
def costs_page(request: TenantRequest) -> HttpResponse:
    """Show the statement of a month; what this process has not written down yet is in it, and written soon."""
    asked = request.GET.get("month", "").strip()
    problem, month = "", statement.this_month()
    try:
        month = statement.clean_month(asked)
    except Invalid as error:
        problem = error.message
    spending.look(request.tenant.tenant_id)
    page = presenters.page(statement.of(request.tenant, month)) | {"problem": problem, "asked": asked or month}
    return render(request, "costs/costs.html", page, status=400 if problem else 200)


@member(Role.OWNER)
@costs(query="costs of a day", trips=2, reads=20)
@require_safe
def costs_file(request: TenantRequest) -> HttpResponse:
    """Send a month by day and feature as CSV. Raises Invalid."""
    month = statement.clean_month(request.GET.get("month", "").strip())
    columns = [_("Day (UTC)"), _("What"), _("Read units"), _("Write units"), _("Index write units"), _("Number"), "USD"]
    rows = presenters.file_rows(statement.lines(request.tenant, month))
    headers = {"Content-Disposition": f'attachment; filename="costs-{request.tenant.slug}-{month}.csv"'}
    return HttpResponse(
        "".join(spreadsheet.lines(columns, rows)), content_type="text/csv; charset=utf-8", headers=headers
    )
