"""Let admins set targets for answers and solutions."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal.web.access import member, on_get, on_post
from portal.web.conflicts import status_of, told_in
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of
from tickets.custom_fields import definitions
from tickets.sla import policy_versions
from tickets.sla.forms import SlaForm
from tickets.ticket.due_marks import TARGETS

_PAGE: Final = "tickets:sla"


@member(Role.ADMIN)
@on_get(get="setup, targets", trips=2, reads=3)
@on_post(get="targets", write="audit row, membership, setup, targets", trips=6, reads=5, writes=20)
def sla_page(request: TenantRequest) -> HttpResponse:
    """Show the policy, or store what was entered as its next version. A conflict keeps what was typed."""
    tenant = request.tenant
    policy = policy_versions.read(tenant)
    groups = {one.id: one.name for one in definitions.of(tenant).groups if not one.is_archived}
    kinds = {one.id: one.name for one in definitions.of(tenant).kinds_in_use}
    options: dict[str, Any] = {"policy": policy, "groups": groups, "kinds": kinds}
    if request.method != "POST":
        return _page(request, SlaForm(**options), policy)
    form = SlaForm(request.POST, **options)
    if form.is_valid():
        with told_in(form, lambda: SlaForm(**options)):
            seen = form.cleaned_data["version"]
            policy_versions.save(tenant, form.policy(tenant.zone), seen=seen, by=actor_of(request))
            messages.success(request, _("Targets saved. They hold for tickets from their next step on."))
            return redirect(_PAGE)
    return _page(request, form, policy)


def _page(request: TenantRequest, form: SlaForm, policy: Any) -> HttpResponse:
    days_off = sorted(policy.calendar.days_off)
    page = {
        "form": form,
        "policy": policy,
        "targets": {name: _(label) for name, label in TARGETS.items()},
        "since": datetime.fromtimestamp(policy.version, UTC),
        "zone": request.tenant.zone,
        "first_day_off": days_off[0] if days_off else "",
        "last_day_off": days_off[-1] if days_off else "",
    }
    return render(request, "sla/settings.html", page, status=status_of(form))
