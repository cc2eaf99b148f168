"""The page of who was a member at a time. Rules are in past_roster.py."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from portal import clock
from portal.errors import Invalid
from portal.web import moments
from portal.web.access import get_or_post, member
from tenants.past_members import past_roster
from tenants.past_members.past_roster import PastMember
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import TenantRequest, actor_of
from tenants.tenancy.roles import Role


@member(Role.ADMIN)
@get_or_post
def past_members(request: TenantRequest) -> HttpResponse:
    """Show who was a member at a moment beside today, and restore those who are chosen."""
    if request.method == "POST":
        return _restore(request)
    problem, at, rows = "", clock.stamp(), []
    asked = request.GET.get("at", "")
    try:
        at = moments.moment(asked)
        rows = [_row(request.tenant, one) for one in past_roster.at(request.tenant, at)] if asked else []
    except Invalid as error:
        problem = error.message
    asks = bool(problem) or not asked
    page: dict[str, Any] = {"asks": asks, "problem": problem, "rows": rows, **moments.page(at)}
    page["can_restore"] = any(row["can_restore"] for row in rows)
    return render(request, "tenants/past_members.html", page, status=400 if problem else 200)


def _row(tenant: TenantContext, one: PastMember) -> dict[str, Any]:
    is_possible = not one.is_same and not one.has_left and tenant.role.at_least(one.role)
    return {"member": one, "can_restore": is_possible and tenant.role.at_least(one.now or one.role)}


def _restore(request: TenantRequest) -> HttpResponse:
    back = reverse("tenants:past_members")
    try:
        at = moments.moment(request.POST.get("at", ""))
        back = f"{back}?{urlencode({'at': at})}"
        done = past_roster.restore(request.tenant, request.POST.getlist("members"), at, by=actor_of(request))
    except Invalid as error:
        messages.error(request, error.message)
        return redirect(back)
    restored = sum(not one.left for one in done)
    messages.success(request, f"{restored} member{'s were' if restored != 1 else ' was'} restored.")
    for one in [one for one in done if one.left][:5]:
        messages.warning(request, f"{one.email} was not restored. {one.left}")
    return redirect(back)
