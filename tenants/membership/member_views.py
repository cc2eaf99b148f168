"""Show the members of a desk; change roles, remove members, leave. Rules are in roster.py."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.errors import Conflict, Forbidden, Invalid
from portal.web.access import in_person, member
from tenants.membership import members, roster
from tenants.membership.forms import RoleForm
from tenants.tenancy.request import TenantRequest, actor_of, unpin_tenant
from tenants.tenancy.roles import Role

SHOWN: Final = 100  # members on the page; the others are found by name
FEW: Final = 12  # members that need no search


@member(Role.ADMIN)
@require_safe
def members_page(request: TenantRequest) -> HttpResponse:
    """List members by name, because owners first would move people about when roles change. Costs one Query."""
    tenant = request.tenant
    everybody = members.members_of(tenant.repository)
    q = request.GET.get("q", "").strip()
    matching = [m for m in everybody if q.casefold() in m.name.casefold() or q.casefold() in m.email]
    owners = sum(m.role is Role.OWNER for m in everybody)
    grantable = [role for role in Role if tenant.role.at_least(role)]
    people = [
        {
            "id": m.id,
            "name": m.name,
            "email": m.email,
            "role": m.role,
            "is_me": m.id == tenant.user_id,
            "roles": grantable if roster.may_touch(tenant, m) else [],
            "is_only_owner": m.role is Role.OWNER and owners == 1,
        }
        for m in matching[:SHOWN]
    ]
    page = {
        "people": people,
        "total": len(everybody),
        "matching": len(matching),
        "q": q,
        "has_search": len(everybody) > FEW,
    }
    return render(request, "tenants/members.html", page)


@member(Role.ADMIN)
@require_POST
def change_role(request: TenantRequest, user: str) -> HttpResponse:
    """Give a member another role."""
    form = RoleForm(request.POST)
    if not form.is_valid():
        return _back_with(request, Invalid("Choose a role from the list."))
    to = Role(form.cleaned_data["role"])
    try:
        changed = roster.change_role(request.tenant, user_id=user, to=to, by=actor_of(request))
    except (Conflict, Forbidden, Invalid) as error:
        return _back_with(request, error)
    if user == request.tenant.user_id:
        messages.success(request, f"You are now {to.with_article}.")
        return redirect("tickets:queue")
    messages.success(request, f"{changed.name} is now {to.with_article}.")
    return redirect("tenants:members")


@member(Role.ADMIN)
@require_http_methods(["GET", "HEAD", "POST"])
def remove(request: TenantRequest, user: str) -> HttpResponse:
    """Ask first, on a page of its own, then remove, and go on to the tickets that the person leaves."""
    tenant = request.tenant
    if user == tenant.user_id:
        return redirect("tenants:leave")
    if request.method != "POST":
        return render(request, "tenants/member_remove.html", {"person": roster.target(tenant, user)})
    try:
        removed = roster.remove(tenant, user_id=user, by=actor_of(request))
    except (Conflict, Forbidden) as error:
        return _back_with(request, error)
    messages.success(request, f"{removed.name} was removed from {tenant.name}.")
    return redirect(f"{reverse('tickets:handovers')}?{urlencode({'of': removed.id})}")


@in_person
@member(Role.VIEWER)
@require_http_methods(["GET", "HEAD", "POST"])
def leave(request: TenantRequest) -> HttpResponse:
    """Ask first, on a page of its own, then leave. The only owner is told what to do before."""
    tenant = request.tenant
    if request.method != "POST":
        return render(request, "tenants/leave.html", {"is_only_owner": roster.is_only_owner(tenant)})
    try:
        roster.remove(tenant, user_id=tenant.user_id, by=actor_of(request))
    except Conflict as error:
        messages.error(request, error.message)
        return redirect("tenants:leave")
    unpin_tenant(request, tenant)
    messages.success(request, f"You have left {tenant.name}.")
    return redirect("tenants:pick")


def _back_with(request: TenantRequest, error: Conflict | Forbidden | Invalid) -> HttpResponse:
    """Return to the list, which shows the members as they are now, with the sentence that says why not."""
    messages.error(request, error.message)
    return redirect("tenants:members")
