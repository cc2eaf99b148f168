"""What admins and owners do with their desk: its members and its settings. Rules are in roster.py and renaming.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.dynamo.client import fan_out
from portal.errors import Conflict, Forbidden, Invalid
from portal.web import desk_prefix
from portal.web.access import member
from tenants.membership import members, roster
from tenants.membership.forms import RoleForm
from tenants.provisioning import defaults, renaming
from tenants.provisioning.forms import DefaultsForm, DeskForm
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import TenantRequest, actor_of, pin_tenant
from tenants.tenancy.roles import Role

SHOWN: Final = 100  # members of one page: more are found by name
FEW: Final = 12  # without a search

get_or_post = require_http_methods(["GET", "HEAD", "POST"])


@member(Role.ADMIN)
@require_safe
def members_page(request: TenantRequest) -> HttpResponse:
    """Members by name; owners first would move people about when roles change. One Query, whoever is looked for."""
    tenant = request.tenant
    everybody = members.members_of(tenant.repository)
    q = request.GET.get("q", "").strip()
    found = [m for m in everybody if q.casefold() in m.name.casefold() or q.casefold() in m.email]
    owners = sum(m.role is Role.OWNER for m in everybody)
    people = [
        {
            "id": m.id,
            "name": m.name,
            "email": m.email,
            "role": m.role,
            "is_me": m.id == tenant.user_id,
            "roles": _grantable(tenant.role) if roster.may_touch(tenant, m) else [],
            "is_last_owner": m.role is Role.OWNER and owners == 1,
        }
        for m in found[:SHOWN]
    ]
    page = {"people": people, "total": len(everybody), "found": len(found), "q": q, "has_search": len(everybody) > FEW}
    return render(request, "tenants/members.html", page)


def _grantable(own: Role) -> list[Role]:
    return [role for role in Role if own.at_least(role)]


@member(Role.ADMIN)
@require_POST
def change_role(request: TenantRequest, user: str) -> HttpResponse:
    form = RoleForm(request.POST)
    if not form.is_valid():
        return _refused(request, Invalid("That is not a role."))
    to = Role(form.cleaned_data["role"])
    try:
        changed = roster.change_role(request.tenant, user_id=user, to=to, by=actor_of(request))
    except (Conflict, Forbidden, Invalid) as error:
        return _refused(request, error)
    messages.success(request, f"{changed.name} is {to.value} now; it counts from their next click.")
    return redirect("tickets:queue" if user == request.tenant.user_id else "tenants:members")


@member(Role.ADMIN)
@get_or_post
def remove(request: TenantRequest, user: str) -> HttpResponse:
    """Asks first, on a page of its own, then removes."""
    tenant = request.tenant
    if request.method != "POST":
        return render(request, "tenants/member_remove.html", {"person": roster.target(tenant, user)})
    try:
        removed = roster.remove(tenant, user_id=user, by=actor_of(request))
    except (Conflict, Forbidden) as error:
        return _refused(request, error)
    messages.success(request, f"{removed.name} is out of {tenant.name} from their next click.")
    return redirect(f"{reverse('tickets:handovers')}?{urlencode({'of': removed.id})}")


@member(Role.VIEWER)
@get_or_post
def leave(request: TenantRequest) -> HttpResponse:
    """Asks first, as `remove` does."""
    tenant = request.tenant
    if request.method != "POST":
        return render(request, "tenants/member_remove.html", {"person": roster.target(tenant, tenant.user_id)})
    try:
        roster.remove(tenant, user_id=tenant.user_id, by=actor_of(request))
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("tenants:account")
    pin_tenant(request, "", slug="")
    messages.success(request, f"You have left {tenant.name}.")
    return redirect("tenants:pick")


def _refused(request: TenantRequest, error: Conflict | Forbidden | Invalid) -> HttpResponse:
    """Back to the list, which shows how it is now, with the sentence that says why not."""
    messages.error(request, error.message)
    return redirect("tenants:members")


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
            messages.success(request, "Saved.")
            return redirect("tenants:settings")
    return _settings(request, form, _defaults_form(tenant))


@member(Role.OWNER)
@require_POST
def change_defaults(request: TenantRequest) -> HttpResponse:
    """The second form of the settings."""
    tenant = request.tenant
    form = DefaultsForm(request.POST)
    if form.is_valid():
        try:
            defaults.change(tenant, values=form.cleaned_data, by=actor_of(request))
        except Conflict as error:
            form.add_error(None, error.message)
        else:
            messages.success(request, "Saved.")
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
