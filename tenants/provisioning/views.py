"""Show the settings of a desk, and let its owners change them. Rules are in renaming.py and defaults.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from portal.dynamo.client import fan_out
from portal.errors import Conflict, Invalid
from portal.web import desk_prefix
from portal.web.access import member
from tenants.membership import members
from tenants.provisioning import defaults, renaming
from tenants.provisioning.forms import DefaultsForm, DeskForm
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role

get_or_post = require_http_methods(["GET", "HEAD", "POST"])


@member(Role.OWNER)
@get_or_post
def settings_page(request: TenantRequest) -> HttpResponse:
    tenant = request.tenant
    form = DeskForm(request.POST or None, initial={"name": tenant.name, "slug": tenant.slug})
    if request.method == "POST" and form.is_valid():
        try:
            renaming.rename(tenant, **form.cleaned_data, by=actor_of(request))
        except (Invalid, Conflict) as error:
            form.add_error(error.field, error.message)
        else:
            desk_prefix.use(form.cleaned_data["slug"])
            messages.success(request, "Settings saved.")
            return redirect("tenants:settings")
    return _settings(request, form, _defaults_form(tenant))


@member(Role.OWNER)
@require_POST
def change_defaults(request: TenantRequest) -> HttpResponse:
    """Store what the second form of the settings holds."""
    tenant = request.tenant
    form = DefaultsForm(request.POST)
    if form.is_valid():
        try:
            defaults.change(tenant, values=form.cleaned_data, by=actor_of(request))
        except Conflict as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, "Settings saved.")
            return redirect("tenants:settings")
    return _settings(request, DeskForm(initial={"name": tenant.name, "slug": tenant.slug}), form)


def _defaults_form(tenant: TenantContext) -> DefaultsForm:
    return DefaultsForm(initial={default.name: defaults.value(tenant, default.name) for default in defaults.declared()})


def _settings(request: TenantRequest, form: DeskForm, defaults_form: DefaultsForm) -> HttpResponse:
    tenant = request.tenant
    reads: list[Callable[[], Any]] = [
        lambda: tenant_directory.get(tenant.tenant_id),
        lambda: members.members_of(tenant.repository),
    ]
    stored, everybody = fan_out(reads)
    owners = [m for m in everybody if m.role is Role.OWNER]
    page: dict[str, Any] = {"form": form, "defaults_form": defaults_form, "owners": owners, "stored": stored}
    failed = form.is_bound or defaults_form.is_bound
    return render(request, "tenants/settings.html", page, status=422 if failed else 200)
