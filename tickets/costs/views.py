"""The page of a desk's costs, and the same by day as a file."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from portal.errors import Invalid
from portal.web.access import member, on_get
from portal.web.views import csv_file
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest
from tickets.costs import presenters, statement


@member(Role.OWNER)
@on_get(get="counter, file", query="costs of a day, ticket", write="costs of a day", trips=8, reads=40, writes=4)
def costs_page(request: TenantRequest) -> HttpResponse:
    """Show the statement of a month."""
    asked = request.GET.get("month", "").strip()
    problem, month = "", statement.this_month()
    try:
        month = statement.clean_month(asked)
    except Invalid as error:
        problem = error.message
    page = presenters.page(statement.of(request.tenant, month)) | {"problem": problem, "asked": asked or month}
    return render(request, "costs/costs.html", page, status=400 if problem else 200)


@member(Role.OWNER)
@on_get(get="counter, file", query="costs of a day, ticket", write="costs of a day", trips=6, reads=40, writes=4)
def costs_file(request: TenantRequest) -> HttpResponse:
    """Send a month by day and feature as CSV. Raises Invalid."""
    month = statement.clean_month(request.GET.get("month", "").strip())
    rows = presenters.file_rows(statement.lines(request.tenant, month))
    return csv_file(f"costs-{request.tenant.slug}-{month}", presenters.columns(), rows)
