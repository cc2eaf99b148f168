"""Show tickets as they were beside what they are now, and take the filters of their list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy, ngettext

from portal import clock
from portal.web import locales, moments
from portal.web.locales import in_sentence
from tickets.custom_fields.definitions import Definitions
from tickets.desk import ticket_presenters
from tickets.desk.changing import TicketState
from tickets.ticket.fields import CUSTOM_PREFIX, FILTERS, Status
from tickets.ticket.stored import ActivityItem
from tickets.time_machine import past_tickets, restoring
from tickets.time_machine.past_tickets import PastFilter, PastPage, ThenAndNow


class PastFilterForm(forms.Form):
    """Take the filters. The page's address holds them."""

    status = forms.ChoiceField(
        label=gettext_lazy("Status then"),
        required=False,
        choices=lambda: [("", gettext("Any")), *((s.value, s.label) for s in Status)],
    )
    assignee = forms.CharField(label=gettext_lazy("Assignee then"), required=False, max_length=100)
    tag = forms.CharField(label=gettext_lazy("Tag then"), required=False, max_length=100)
    changed = forms.BooleanField(
        label=gettext_lazy("Different now"), required=False, widget=forms.CheckboxInput(attrs={"value": "yes"})
    )


# --- tickets as they were, as their pages show them: beside what they are now ---


REASONS = 10  # for which tickets were left, that are said one by one
MOMENTS_SHOWN = 20  # changes that a ticket's page offers to look behind


def past_url(number: int, at: str) -> str:
    return f"{reverse('tickets:past_ticket', args=[number])}?{urlencode({'at': at})}"


def differences(found: ThenAndNow, defined: Definitions) -> list[dict[str, Any]]:
    """Return the fields then and now, in their order. A description that was not kept differs."""
    if found.then is None:
        return []
    shown = [{**one.shown, **defined.texts(one.values)} for one in (found.then, found.now)]
    rows = []
    for name, label in defined.labels(*shown):
        then, now = (one.get(name, "") for one in shown)
        differs = then != now if name.startswith(CUSTOM_PREFIX) else name in found.differing
        rows.append({"name": name, "label": label, "then": then, "now": now, "differs": differs})
    return rows


def ticket_page(found: ThenAndNow, at: str, defined: Definitions) -> dict[str, Any]:
    number = found.now.number
    return {
        "number": number,
        "then": found.then,
        "now": found.now,
        "opened": clock.parse(found.now.created_at),
        "fields": differences(found, defined),
        "differs": bool(found.differing),
        "activity": [ticket_presenters.timeline_entry(a, defined) for a in found.until],
        "later": len(found.since),
        "moments": _moments(number, [*found.since, *reversed(found.until)], defined),
        "select_value": str(TicketState.of(found.summary)),
        "as_it_was_url": ticket_presenters.ticket_url(number),
        **moments.page(at),
    }


def _moments(number: int, entries: Iterable[ActivityItem], defined: Definitions) -> list[dict[str, Any]]:
    """Return the latest changes, each with the address of the ticket as it was just before it."""
    changes = [a for a in entries if a.changes][:MOMENTS_SHOWN]
    return [
        {
            "url": past_url(number, clock.stamp(clock.parse(a.at), offset=-1)),
            "at": clock.parse(a.at),
            "by": a.author_name,
            "labels": ", ".join(in_sentence(defined.label(c.field)) for c in a.changes),
        }
        for a in changes
    ]


def queue_page(page: PastPage, at: str, only: PastFilter) -> dict[str, Any]:
    """Return what the list of tickets as they were shows, all or those that a filter takes."""
    rows = [
        {
            "ticket": found.then,
            "differs": bool(found.differing),
            "has_changed": any(entry.changes for entry in found.since),
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
        "choices": FILTERS.values(),
        "can_restore": any(row["differs"] for row in rows),
        "first": page.first,
        "down_to": (page.lower or 0) + 1,
        "filters": PastFilterForm(initial=only.params),
        "is_filtered": bool(only.params),
        "all_url": f"?{urlencode({'at': at})}",
        "kept": kept({"list": "yes", **only.params, "from": str(page.first)}),
        "limit": restoring.MOST,
        **{name: address(start) if start else None for name, start in links.items()},
        **moments.page(at),
    }


def kept(params: Mapping[str, str]) -> dict[str, str]:
    """Return what the forms of a restoration take along, to come back to the list that they were opened from."""
    return {name: params[name] for name in ("list", *past_tickets.NAMES, "from") if params.get(name)}


def list_url(params: Mapping[str, str]) -> str:
    told = {name: value for name, value in kept(params).items() if name != "list"}
    return f"{reverse('tickets:past')}?{urlencode({'at': params.get('at', ''), **told})}"


def confirm_page(
    chosen: list[ThenAndNow], people: restoring.Recipients, at: str, defined: Definitions
) -> dict[str, Any]:
    """Return what the page that asks before a restoration shows: what of each ticket will change, and what cannot."""
    rows = [_asked(found, people, at, defined) for found in chosen]
    return {
        "total": len(rows),
        "changing": [row for row in rows if row["changes"]],
        "staying": [row for row in rows if not row["changes"]],
        "members_url": f"{reverse('tenants:past_members')}?{urlencode({'at': at})}",
        **moments.page(at),
    }


def _asked(found: ThenAndNow, people: restoring.Recipients, at: str, defined: Definitions) -> dict[str, Any]:
    row = {"number": found.now.number, "title": found.now.title, "existed": found.then is not None}
    if found.then is None:
        return row | {"changes": [], "lacks": []}
    _, lacks = restoring.wishes_for(found.then, found.now, found.differing, at, people)
    lacking = {lack.field for lack in lacks}
    fields = {field["name"]: field for field in differences(found, defined) if field["differs"]}
    return row | {
        "changes": [field for name, field in fields.items() if name not in lacking],
        "lacks": [{"lack": lack, "now": fields[lack.field]["now"]} for lack in lacks],
    }


def outcome(done: list[restoring.Restored], at: str) -> tuple[str, list[str]]:
    """Say what was restored in one sentence, and of all other tickets, and those restored in part, why.

    Tickets for one reason are named together, for up to REASONS of them.
    """
    changed = [one for one in done if one.is_changed]
    partly, locale = sum(not one.is_whole for one in changed), locales.current()
    told = {"num": locale.number(len(changed)), "when": locale.exact(clock.parse(at), seconds=True), "partly": partly}
    said = gettext("No ticket was restored to %(when)s.")
    if changed:
        said = ngettext(
            "%(num)s ticket was restored to %(when)s.", "%(num)s tickets were restored to %(when)s.", len(changed)
        )
    if partly:
        said = ngettext(
            "%(num)s ticket was restored to %(when)s in part.",
            "%(num)s tickets were restored to %(when)s, %(partly)s of them in part.",
            len(changed),
        )
    said = said % told
    reasons: dict[str, list[str]] = {}
    for one in done:
        if one.why:
            reasons.setdefault(one.why, []).append(f"#{one.number}")
    others: list[str] = [f"{', '.join(numbers)}: {why}." for why, numbers in reasons.items()]
    if len(others) > REASONS:
        more = [number for numbers in list(reasons.values())[REASONS:] for number in numbers]
        rest = gettext("%(num)s more were not restored whole, for other reasons: %(tickets)s.")
        others[REASONS:] = [rest % {"num": len(more), "tickets": ", ".join(more)}]
    if any(lack.of_member for one in done for lack in one.lacks):
        others.append(gettext("Restore the members first, under Time machine, Members; then restore these tickets."))
    return said, others
