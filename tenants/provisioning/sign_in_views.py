"""Let owners say how members sign in. The rule is in sign_in_demand.py."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from portal.errors import Conflict
from portal.web.access import member
from tenants.membership import members
from tenants.provisioning import sign_in_demand
from tenants.provisioning.forms import SignInDemandForm
from tenants.sign_in import accounts
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role


@member(Role.OWNER)
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in_page(request: TenantRequest) -> HttpResponse:
    """Show whether a second factor is demanded, and who has none: one Query of the members, then one BatchGetItem of
    their accounts for every hundred."""
    tenant = request.tenant
    form = SignInDemandForm(request.POST or None, initial={"demanded": tenant.needs_second_factor})
    if request.method == "POST" and form.is_valid():
        try:
            sign_in_demand.change(tenant, demanded=form.cleaned_data["demanded"], by=actor_of(request))
        except Conflict as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, "Settings saved.")
            return redirect("tenants:settings_sign_in")
    everybody = members.members_of(tenant.repository)
    have = accounts.with_second_factor([m.id for m in everybody])
    page = {"form": form, "without": [m for m in everybody if m.id not in have], "total": len(everybody)}
    return render(request, "tenants/settings_sign_in.html", page, status=422 if form.errors else 200)
