"""Show the page on which a ticket is merged into another one, and take a merge back."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from portal.errors import Conflict
from portal.web.access import get_or_post, member
from portal.web.costs import costs
from tenants.tenancy.request import TenantRequest
from tenants.tenancy.roles import Role
from tickets.desk import changing, ticket_presenters
from tickets.merging import presenters, ticket_merging
from tickets.merging.forms import MergeTicketsForm


@member(Role.AGENT)
@costs(on="GET", get="requester, ticket", query="ticket, tickets of a requester", trips=4, reads=12)
@costs(on="POST", get="requester, ticket", query="tickets of a requester", write="ticket", trips=6, reads=10, writes=30)
@get_or_post
def merge(request: TenantRequest, number: int) -> HttpResponse:
    """Choose the ticket that stays, see both, then merge this one into it."""
    sent = request.POST if request.method == "POST" else request.GET
    form = MergeTicketsForm(sent if "into" in sent else None)
    shown = None
    if form.is_bound and form.is_valid():
        into = form.cleaned_data["into"]
        try:
            if request.method == "POST" and form.cleaned_data["confirmed"] == str(into):
                ticket_merging.merge(request.tenant, number, into=into)
                messages.success(
                    request,
                    _("Ticket #%(number)s was merged into this one. Below, you can take it out again.")
                    % {"number": number},
                )
                return redirect("tickets:ticket", into)
            shown = presenters.preview(request.tenant, ticket_merging.look(request.tenant, number, into=into))
        except Conflict as error:
            form.add_error("into", error.message)
    summary = changing.read(request.tenant, number)
    if summary.merged_into:
        return redirect("tickets:ticket", int(summary.merged_into))
    context: dict[str, Any] = {
        "form": form,
        "shown": shown,
        "ticket": ticket_presenters.listed(request.tenant, summary),
        "others": [] if shown else presenters.others(request.tenant, summary),
    }
    return render(request, "merging/merge.html", context, status=422 if form.errors else 200)


@member(Role.AGENT)
@costs(get="ticket", write="ticket", trips=5, reads=3, writes=30)
@require_POST
def separate(request: TenantRequest, number: int) -> HttpResponse:
    """Let a merged ticket be one of its own again."""
    try:
        ticket_merging.separate(request.tenant, number)
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("Ticket #%(number)s is a ticket of its own again, as it was.") % {"number": number})
    return redirect("tickets:ticket", number)
