"""The dashboard, and the owner's Verify button: its rule is in verify.py, its runs in verify_runs.py."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext

from portal.web import locales
from portal.web.access import member, on_get, on_post
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest
from tickets.dashboards import dashboard, presenters, verify_runs
from tickets.verification import verify as verifying


@member(Role.AGENT)
@on_get(
    get="member, placed stream, watermark",
    query="aggregate, members by name",
    trips=4,
    reads=60,
    room="those not at hand who have tickets",
)
def dashboard_page(request: TenantRequest) -> HttpResponse:
    """Show the numbers of the desk to those who run it, and to agents their own."""
    tenant = request.tenant
    if not tenant.is_admin:
        return render(request, "tickets/share.html", presenters.share(tenant, dashboard.share(tenant)))
    days = request.GET.get("days", "")
    asked = next((n for n in dashboard.PERIODS if str(n) == days), dashboard.PERIODS[0])
    numbers = dashboard.read(tenant, days=asked, first_weekday=locales.current().first_weekday)
    return render(request, "tickets/dashboard.html", presenters.dashboard(tenant, numbers))


@member(Role.OWNER)
@on_post(get="aggregate, counter", write="aggregate", trips=6, reads=5, writes=2)
def verify(request: TenantRequest) -> HttpResponse:
    """Recount the tenant's tickets, beside the request."""
    started = verify_runs.start(request.tenant)
    if "HX-Request" in request.headers:
        return _shown(request)
    if not started:
        messages.info(request, gettext("The numbers are being verified or have just been verified."))
    return redirect(reverse("tickets:dashboard") + "#verified")


@member(Role.OWNER)
@on_post(write="aggregate", trips=3, writes=2)
def stop_verifying(request: TenantRequest) -> HttpResponse:
    """End the verification that runs."""
    stopped = verify_runs.stop(request.tenant)
    if "HX-Request" in request.headers:
        return _shown(request)
    if not stopped:
        messages.info(request, gettext("The verification had already ended."))
    return redirect(reverse("tickets:dashboard") + "#verified")


@member(Role.ADMIN)
@on_get(get="aggregate, counter", trips=2, reads=3)
def verified(request: TenantRequest) -> HttpResponse:
    """Answer with the part of the dashboard that asks again while a verification runs."""
    return _shown(request)


def _shown(request: TenantRequest) -> HttpResponse:
    price = verifying.price(request.tenant.repository)
    return render(request, "tickets/_verified.html", {"verified": verify_runs.read(request.tenant), "price": price})
