"""Show admins what their desk asks for and has at work, beside what it may. Rules are in portal/limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from portal import clock
from portal.dynamo.client import fan_out
from portal.limits import usage
from portal.web.access import member
from tenants.membership import invitations, members
from tenants.provisioning import usage_presenters
from tenants.tenancy import tenant_directory
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role


@member(Role.ADMIN)
@require_safe
def usage_page(request: TenantRequest) -> HttpResponse:
    """Show what the tenant uses, at the cost of three Queries and a BatchGetItem at the same time."""
    tenant, now = request.tenant, clock.now()
    reads: list[Callable[[], Any]] = [
        lambda: usage.latest(tenant.repository, minutes=usage_presenters.MINUTES, now=now),
        lambda: members.members_of(tenant.repository),
        lambda: invitations.pending(tenant.repository),
        lambda: tenant_directory.get(tenant.tenant_id),
    ]
    told, people, invites, stored = fan_out(reads)
    invited = sum(not invitations.is_expired(invite) for invite in invites)
    page = usage_presenters.page(
        tenant, told, members=len(people), invited=invited, most=int(stored.member_limit or 0) or None, now=now
    )
    return render(request, "tenants/usage.html", page | {"plan": stored.plan, "own": stored.request_rate is not None})
