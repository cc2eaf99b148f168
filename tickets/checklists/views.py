"""Take the ticks of checklists."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import redirect

from portal.errors import Conflict, Invalid
from portal.web.access import member, on_post
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, refusal_told
from tickets.checklists import ticking
from tickets.desk import changing
from tickets.ticket.checklists import Tick


@member(Role.AGENT)
@on_post(get="ticket", query="ticket", write="ticket", trips=14, reads=20, writes=30)
def tick(request: TenantRequest, number: int) -> HttpResponse:
    """Tick an item of a checklist in a ticket, or take its tick away."""
    try:
        wanted = Tick.parse(request.POST.get("tick", ""))
    except Invalid:
        changing.read(request.tenant, number, consistent=False)  # of a ticket that does not exist nothing is said
        raise
    with refusal_told(request, Conflict):
        ticking.tick(request.tenant, number, wanted)
    return redirect("tickets:ticket", number)
