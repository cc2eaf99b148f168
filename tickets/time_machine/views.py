"""The pages of the past: tickets as they were, one of them beside the present, and its restoration."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext

from portal import clock, plain_text
from portal.errors import Invalid
from portal.web import moments
from portal.web.access import counted, member, on_get, on_post
from portal.web.heavy_work import heavy
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, actor_of, refusal_told
from tickets.custom_fields import definitions
from tickets.desk.changing import TicketState
from tickets.time_machine import past_tickets, presenters, restoring
from tickets.time_machine.past_tickets import PastFilter


@member(Role.ADMIN)
@on_get(
    get="counter, ticket",
    query="ticket",
    trips=24,
    reads=600,
    room="25 tickets that have changed since, and with a filter eight times as many",
)
def past_queue(request: TenantRequest) -> HttpResponse:
    """List the tickets that existed at a moment, all or those of one kind; without a moment, ask for it."""
    if not request.GET.get("at"):
        return render(request, "tickets/past/queue.html", {"asks": True, **moments.page(clock.stamp())})
    try:
        at, first = moments.moment(request.GET["at"]), _number(request.GET.get("from", ""))
        only = PastFilter.of(request.GET.dict())
    except Invalid as error:
        page = {"asks": True, "problem": error.message, **moments.page(clock.stamp())}
        return render(request, "tickets/past/queue.html", page, status=400)
    found = past_tickets.page(request.tenant, at, first=first, only=only.takes if only.params else None)
    return render(request, "tickets/past/queue.html", presenters.queue_page(found, at, only))


@member(Role.ADMIN)
@on_get(query="ticket", trips=1, reads=8)
def past_ticket(request: TenantRequest, number: int) -> HttpResponse:
    """Show a ticket as it was at a moment beside what it is now; without one, as it is, with its latest changes."""
    problem = ""
    try:
        at = moments.moment(request.GET.get("at", ""))
    except Invalid as error:
        at, problem = clock.stamp(), error.message
    found = past_tickets.read(request.tenant, number, at)
    page = {"problem": problem, **presenters.ticket_page(found, at, definitions.of(request.tenant))}
    return render(request, "tickets/past/ticket.html", page, status=400 if problem else 200)


@member(Role.ADMIN)
@on_post(
    get="member, ticket",
    query="ticket",
    write="audit row, outbox row, ticket",
    trips=6,
    reads=6,
    writes=10,
    per="ticket",
    each=(5, 5, 25),
)
@heavy
def restore(request: TenantRequest) -> HttpResponse:
    """Ask first, on a page that says what will change, then restore the chosen tickets."""
    tenant, is_listed = request.tenant, "list" in request.POST
    back = presenters.list_url(request.POST.dict())
    with refusal_told(request, Invalid):
        at = moments.moment(request.POST.get("at", ""))
        chosen = [TicketState.parse(text) for text in request.POST.getlist("tickets")]
        restoring.check(chosen)
        counted(request, len(chosen))
        if not is_listed and len(chosen) == 1:
            back = presenters.past_url(chosen[0].number, at)
        if "confirmed" not in request.POST:
            found = restoring.look(tenant, [state.number for state in chosen], at)
            page = presenters.confirm_page(found, restoring.recipients(tenant, found), at, definitions.of(tenant))
            form = {"states": [str(s) for s in chosen], "kept": presenters.kept(request.POST.dict()), "back": back}
            return render(request, "tickets/past/restore.html", page | form)
        done = restoring.restore(tenant, chosen, at, by=actor_of(request))
        said, others = presenters.outcome(done, at)
        is_any = any(one.is_changed for one in done)
        messages.add_message(request, messages.SUCCESS if is_any else messages.WARNING, said)
        for sentence in others:
            messages.warning(request, sentence)
        return (
            redirect("tickets:ticket", done[0].number)
            if is_any and len(done) == 1 and not is_listed
            else redirect(back)
        )
    return redirect(back)


def _number(text: str) -> int | None:
    """Return where a list begins, None for where the moment lies. Raises Invalid."""
    if not text:
        return None
    number = plain_text.whole_number(text, digits=15)
    if not number:
        raise Invalid(gettext("A ticket's number has up to 15 digits."), field="from")
    return number
