"""The owner's Verify button. The rule is in verify.py, its runs in verify_runs.py."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from portal.web.access import member
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.dashboards import verify_runs


@member(Role.OWNER)
@require_POST
def verify(request: TenantRequest) -> HttpResponse:
    """Recount the tenant's tickets, beside the request."""
    started = verify_runs.start(request.tenant)
    if "HX-Request" in request.headers:
        return _shown(request)
    if not started:
        messages.info(request, "The numbers are being verified already.")
    return redirect(reverse("tickets:dashboard") + "#verified")


@member(Role.ADMIN)
@require_safe
def verified(request: TenantRequest) -> HttpResponse:
    """How the verification stands: the part of the dashboard that asks again while it runs."""
    return _shown(request)


def _shown(request: TenantRequest) -> HttpResponse:
    return render(request, "tickets/_verified.html", {"verified": verify_runs.read(request.tenant)})
