"""Take the ticks of checklists."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from portal.errors import Conflict
from portal.web.access import member
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.checklists import ticking
from tickets.ticket.checklists import Tick


@member(Role.AGENT)
@require_POST
def tick(request: TenantRequest, number: int) -> HttpResponse:
    """Tick an item of a checklist in a ticket, or take its tick away."""
    try:
        ticking.tick(request.tenant, number, Tick.parse(request.POST.get("tick", "")))
    except Conflict as error:
        messages.error(request, error.message)
    return redirect("tickets:ticket", number)
