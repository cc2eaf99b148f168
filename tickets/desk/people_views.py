"""The pages and menus in which somebody is chosen among the members of the desk."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal.web.access import member
from tenants.membership import members
from tenants.membership.members import Member
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.desk.filter_presenters import QueueAddress


@member(Role.VIEWER)
@require_safe
def people(request: TenantRequest) -> HttpResponse:
    """Ask whose tickets to list: those who can have tickets, as links to the queue."""
    address = QueueAddress.of(request.GET.dict())
    return people_page(request, {"ticket": None}, lambda m: address.url(resolver=m.id, name=m.name))


def people_choices(request: TenantRequest) -> list[tuple[str, str]]:
    """Return the members who can have tickets as ids and names, oneself first."""
    me = request.tenant.user_id
    found = sorted(_assignable(request), key=lambda m: m.id != me)
    return [(m.id, f"{m.name} (you)" if m.id == me else m.name) for m in found]


def _assignable(request: TenantRequest) -> list[Member]:
    return [m for m in members.members_of(request.tenant.repository) if m.role.at_least(Role.AGENT)]


def people_page(
    request: TenantRequest, context: dict[str, Any], link: Callable[[Member], str] | None = None
) -> HttpResponse:
    """Show the members who can have tickets, narrowed by `?q=`: buttons of a form, or links where `link` makes them."""
    search = request.GET.get("q", "").strip()
    chosen = [
        {
            "id": m.id,
            "name": m.name,
            "role_label": m.role.label,
            "is_me": m.id == request.tenant.user_id,
            "url": link(m) if link else None,
        }
        for m in _assignable(request)
        if search.casefold() in f"{m.name} {m.email}".casefold()
    ]
    template = "tickets/_people.html" if "HX-Request" in request.headers else "tickets/assign.html"
    return render(request, template, context | {"people": chosen, "q": search})
