"""Tickets as they were, as their pages show them: beside what they are now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode

from portal import clock
from portal.web import moments
from tickets.desk import changing, ticket_presenters
from tickets.desk.summaries import TicketState
from tickets.desk.timelines import Activity
from tickets.ticket.fields import Priority, Status
from tickets.time_machine import restoring
from tickets.time_machine.forms import PastFilterForm
from tickets.time_machine.past_filters import PastFilter
from tickets.time_machine.past_tickets import PastPage, PastTicket, ThenAndNow

_UNKNOWN = "(not kept)"
MOMENTS_SHOWN = 20  # changes that a ticket's page offers to look behind


def past_url(number: int, at: str) -> str:
    """Return the address of a ticket as it was."""
    return f"{reverse('tickets:past_ticket', args=[number])}?{urlencode({'at': at})}"


def texts(ticket: PastTicket) -> dict[str, str]:
    """Return a ticket's fields by name as people read them."""
    return {
        "title": ticket.title,
        "description": _UNKNOWN if ticket.description is None else ticket.description,
        "status": Status(ticket.status).label,
        "priority": Priority(ticket.priority).label,
        "tags": ", ".join(ticket.tags),
        "resolver": ticket.resolver_name or "Unassigned",
    }


def differences(found: ThenAndNow) -> list[dict[str, Any]]:
    """Return the fields then and now, in their order. A description that was not kept differs."""
    if found.then is None:
        return []
    then, now = texts(found.then), texts(found.now)
    return [
        {"label": label, "then": then[name], "now": now[name], "differs": then[name] != now[name]}
        for name, label in changing.LABELS.items()
    ]


def ticket_page(found: ThenAndNow, at: str) -> dict[str, Any]:
    """Return what the page of one ticket as it was shows."""
    number = found.now.number
    return {
        "number": number,
        "then": found.then,
        "now": found.now,
        "fields": (shown := differences(found)),
        "differs": any(field["differs"] for field in shown),
        "activity": [ticket_presenters.timeline_entry(a) for a in found.until],
        "later": len(found.since),
        "moments": _moments(number, [*found.since, *reversed(found.until)]),
        "select_value": str(TicketState.of(found.summary)),
        "as_it_was_url": ticket_presenters.ticket_url(number),
        **moments.page(at),
    }


def _moments(number: int, entries: Iterable[Activity]) -> list[dict[str, Any]]:
    """Return the latest changes, each with the address of the ticket as it was just before it."""
    changes = [a for a in entries if a.changes][:MOMENTS_SHOWN]
    return [
        {
            "url": past_url(number, clock.stamp(clock.parse(a.at), offset=-1)),
            "at": clock.parse(a.at),
            "by": a.author_name,
            "labels": ", ".join(changing.LABELS.get(c.field, c.field).lower() for c in a.changes),
        }
        for a in changes
    ]


def queue_page(page: PastPage, at: str, only: PastFilter) -> dict[str, Any]:
    """Return what the list of tickets as they were shows, all or those that a filter takes."""
    rows = [
        {
            "ticket": found.then,
            "texts": texts(found.then),
            "status_label": Status(found.then.status).label,
            "priority_label": Priority(found.then.priority).label,
            "has_changed": bool(found.since),
            "url": past_url(found.now.number, at),
            "select_value": str(TicketState.of(found.summary)),
        }
        for found in page.tickets
        if found.then is not None
    ]
    links = {"lower_url": page.lower, "higher_url": page.higher}

    def address(start: int) -> str:
        return f"?{urlencode({'at': at, **only.params, 'from': str(start)})}"

    return {
        "rows": rows,
        "first": page.first,
        "down_to": (page.lower or 0) + 1,
        "filters": PastFilterForm(initial=only.params),
        "is_filtered": bool(only.params),
        "all_url": f"?{urlencode({'at': at})}",
        "limit": restoring.MOST,
        **{name: address(start) if start else None for name, start in links.items()},
        **moments.page(at),
    }


def confirm_page(chosen: list[ThenAndNow], agents: set[str], at: str) -> dict[str, Any]:
    """Return what the page that asks before a restoration shows: the fields of each ticket that will change."""
    rows = []
    for found in chosen:
        lacks = restoring.wishes_for(found.then, at, agents)[1] if found.then else ()
        changes = [f for f in differences(found) if f["differs"] and f["label"] not in lacks]
        rows.append({"number": found.now.number, "title": found.now.title, "changes": changes, "lacks": lacks})
    return {"rows": rows, **moments.page(at)}


def outcome(done: list[restoring.Restored], at: str) -> tuple[str, list[str]]:
    """Say what was restored in one sentence, and of each other ticket why it was not."""
    restored = [one for one in done if not one.left]
    plural = "s were" if len(restored) != 1 else " was"
    said = f"{len(restored)} ticket{plural} restored to {clock.parse(at):%-d %B %Y, %H:%M:%S} UTC."
    left = [f"#{one.number} {one.left}." for one in done if one.left]
    lacking = [
        f"#{one.number}: {' and '.join(one.lacks).lower()} could not be restored." for one in restored if one.lacks
    ]
    return said, left + lacking
