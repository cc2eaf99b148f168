"""The pages that snooze a ticket: buttons on its page, and a page of its own for another time."""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from portal import clock
from portal.errors import Conflict, Invalid
from portal.web import locales
from portal.web.access import member, on_get, on_post
from tenants.tenancy.context import Role
from tenants.tenancy.request import TenantRequest, refusal_told
from tickets.desk import changing, ticket_presenters
from tickets.snoozing import snoozing
from tickets.ticket.due_marks import UNTIL_ANSWER

_MORNING: Final = time(9)
_MONDAY: Final = 0
_AT: Final = "at"


@member(Role.AGENT)
@on_get(get="ticket", trips=1, reads=2)
@on_post(get="ticket", write="due row, ticket", trips=4, reads=2, writes=20)
def snooze(request: TenantRequest, number: int) -> HttpResponse:
    """Snooze a ticket for a choice or until a typed time; without a choice, ask for one."""
    typed, problem, status = request.POST.get("until", ""), "", 200
    if request.method == "POST":
        try:
            until = _until(request.POST.get("choice", ""), typed)
            receipt = snoozing.snooze(request.tenant, number, until=until)
        except Invalid as error:
            problem, status = error.message, 422
        except Conflict as error:
            messages.error(request, error.message)
            return redirect("tickets:ticket", number)
        else:
            messages.success(request, _said(number, until), extra_tags=receipt)
            return redirect("tickets:ticket", number)
    summary = changing.read(request.tenant, number)
    if summary.is_aside:
        return redirect("tickets:ticket", number)
    context = {
        "ticket": ticket_presenters.listed(request.tenant, summary),
        "choices": {choice: _(label) for choice, label in ticket_presenters.SNOOZES.items()},
        "typed": typed or f"{_at_nine(_now(), 1):%Y-%m-%dT%H:%M}",
        "zone": locales.current().zone.replace("_", " "),
        "problem": problem,
    }
    return render(request, "snoozing/snooze.html", context, status=status)


@member(Role.AGENT)
@on_post(get="ticket", trips=1, reads=2)
def wake(request: TenantRequest, number: int) -> HttpResponse:
    with refusal_told(request, Conflict):
        receipt = snoozing.wake(request.tenant, number)
        if receipt:
            said = _("Ticket #%(number)s is awake again.") % {"number": number}
            messages.success(request, said, extra_tags=receipt)
    return redirect("tickets:ticket", number)


def _until(choice: str, typed: str) -> datetime | None:
    """Return the moment that a choice or a typed time stands for, None for until an answer. Raises Invalid."""
    now = _now()
    if choice == UNTIL_ANSWER:
        return None
    if choice == "hours":
        return clock.now() + timedelta(hours=3)
    if choice == "tomorrow":
        return _at_nine(now, 1)
    if choice == "monday":
        return _at_nine(now, (_MONDAY - now.weekday() - 1) % 7 + 1)
    if choice == "follow_up":
        return now + timedelta(days=3)
    if choice != _AT:
        raise Invalid(_("Choose until when the ticket is to rest."), field="until")
    try:
        return datetime.fromisoformat(typed).replace(tzinfo=now.tzinfo)
    except ValueError:
        raise Invalid(_("Type a day and a time, such as 2026-11-30 09:00."), field="until") from None


def _now() -> datetime:
    """Return the moment in the zone in which the person reads times."""
    return locales.current().local(clock.now())


def _at_nine(now: datetime, days: int) -> datetime:
    return datetime.combine((now + timedelta(days=days)).date(), _MORNING, now.tzinfo)


def _said(number: int, until: datetime | None) -> str:
    if until is None:
        return _("Ticket #%(number)s is snoozed until its requester answers.") % {"number": number}
    said = _("Ticket #%(number)s is snoozed until %(when)s, or until its requester answers.")
    return said % {"number": number, "when": locales.current().moment(until)}
