"""Show the page on which a ticket is merged into another one, and take a merge back."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal.dynamo.client import fan_out
from portal.errors import Conflict
from portal.web.access import member, on_get, on_post
from tenants.tenancy.context import Role, TenantContext
from tenants.tenancy.request import TenantRequest, refusal_told
from tickets.desk import changing, ticket_presenters, timelines
from tickets.desk.ticket_presenters import ListedTicket
from tickets.merging import ticket_merging
from tickets.merging.ticket_merging import Pair
from tickets.requesters import presenters as requester_presenters
from tickets.requesters import requester_tickets
from tickets.ticket import stored
from tickets.ticket.stored import SummaryItem

OFFERED: Final = 10  # other tickets of the requester


@dataclass(frozen=True)
class BothTickets:
    """Two tickets side by side, with their descriptions."""

    source: ListedTicket
    target: ListedTicket


def preview(tenant: TenantContext, pair: Pair) -> BothTickets:
    """Show both tickets: two Queries of two items, at the same time."""
    heads = fan_out([partial(timelines.head, tenant, int(one.number)) for one in (pair.source, pair.target)])
    shown = [ticket_presenters.listed(tenant, summary, description=text) for summary, text in heads]
    return BothTickets(*shown)


def others(tenant: TenantContext, summary: SummaryItem) -> list[dict[str, Any]]:
    """Return the requester's other tickets that this one may be merged into, the newest first."""
    if not stored.is_requester(summary.requester):
        return []
    _, rows = requester_tickets.with_person(tenant, summary.requester, limit=OFFERED + 1)
    return requester_presenters.tickets(rows, but=int(summary.number))[:OFFERED]


_NUMBER: Final = re.compile(r"#?([1-9][0-9]{0,14})")


class NumberField(forms.CharField):
    """The number of a ticket, with or without its sign in front."""

    default_error_messages: ClassVar[Any] = {
        "required": gettext_lazy("Enter the number of a ticket."),
        "number": gettext_lazy("Enter a number, such as 12."),
    }

    def clean(self, value: str | None) -> int:
        found = _NUMBER.fullmatch((super().clean(value) or "").strip())
        if found is None:
            raise ValidationError(self.error_messages["number"], code="number")
        return int(found[1])


class MergeTicketsForm(forms.Form):
    """The ticket that stays. `confirmed` is its number again once both were shown."""

    into = NumberField(
        label=gettext_lazy("Merge into ticket number"),
        max_length=40,
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off", "size": 12}),
    )
    confirmed = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)


@member(Role.AGENT)
@on_get(get="requester, ticket", query="ticket, tickets of a requester", trips=4, reads=12)
@on_post(get="requester, ticket", query="tickets of a requester", write="ticket", trips=6, reads=10, writes=30)
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
            shown = preview(request.tenant, ticket_merging.look(request.tenant, number, into=into))
        except Conflict as error:
            form.add_error("into", error.message)
    summary = changing.read(request.tenant, number)
    if summary.merged_into:
        return redirect("tickets:ticket", int(summary.merged_into))
    context: dict[str, Any] = {
        "form": form,
        "shown": shown,
        "ticket": ticket_presenters.listed(request.tenant, summary),
        "others": [] if shown else others(request.tenant, summary),
    }
    return render(request, "merging/merge.html", context, status=422 if form.errors else 200)


@member(Role.AGENT)
@on_post(get="ticket", write="ticket", trips=5, reads=3, writes=30)
def separate(request: TenantRequest, number: int) -> HttpResponse:
    """Let a merged ticket be one of its own again."""
    with refusal_told(request, Conflict):
        ticket_merging.separate(request.tenant, number)
        messages.success(request, _("Ticket #%(number)s is a ticket of its own again, as it was.") % {"number": number})
    return redirect("tickets:ticket", number)
