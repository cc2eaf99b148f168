"""The queue as its page says it: tabs, rows, pages, words for nothing, and the pages about many selected tickets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from portal import clock
from portal.errors import Invalid
from tenants.tenancy.context import TenantContext
from tickets.desk import bulk, filter_presenters, filters, lists
from tickets.desk.bulk import BulkRefused
from tickets.desk.filter_presenters import NAME_LIMIT, QueueAddress, chips
from tickets.desk.lists import TicketPage
from tickets.desk.summaries import TicketState
from tickets.desk.ticket_presenters import listed, ticket_url
from tickets.ticket.fields import MOVES, Status

_NO_PAGE: Final = TicketPage([], None, None, 0, False)


def queue_page(tenant: TenantContext, address: QueueAddress, after: str) -> dict[str, Any]:
    """Return the page's list, read here, and all that follows from its address. Raises Invalid for a bad cursor or
    person.

    `after` is a cursor, "" for the first page.
    """
    page = lists.page(
        tenant,
        status=address.statuses,
        resolver=address.resolver(tenant),
        only=address.only,
        after=after or None,
        size=bulk.limit(tenant),
    )
    if address.is_of_a_person and page.rows:
        address = replace(address, name=page.rows[0].resolver_name[:NAME_LIMIT])
    first_url = address.url() if after else None
    context = _context(tenant, address, page, first_url)
    if not page.rows:
        context["empty"] = _empty(tenant, address, page, first_url)
    if not after:
        context["updates_url"] = _updates_url(address, page)
    return context


def refused_page(tenant: TenantContext, params: Mapping[str, str], problem: Invalid) -> dict[str, Any]:
    """Return the page for an address that cannot be understood: what is wrong, what was typed, and the way on."""
    address = QueueAddress.of_what_is_understood(params)
    if problem.field is None:  # a link to a page or to a person
        address = replace(address, who=address.who if address.who in ("me", "none") else "", name="")
    context = _context(tenant, address, _NO_PAGE, None)
    context["filter_form"] = filter_presenters.form(address, params, problem)
    context["empty"] = _blank(problem.message, "", [(address.url(), "Show the list without this filter")])
    return context


def _context(tenant: TenantContext, address: QueueAddress, page: TicketPage, first_url: str | None) -> dict[str, Any]:
    rows = [listed(tenant, item) for item in page.rows]
    return {
        "list_label": address.label,
        "is_mixed": address.is_mixed,
        "status_tabs": status_tabs(address),
        "who_tabs": who_tabs(address),
        "people_url": _people_url(address),
        "chips": chips(address),
        "export_params": {name: value for name, value in address.params.items() if value},
        "chips_note": filter_presenters.note(address.only),
        "without_url": address.url(**dict.fromkeys(address.only.params, "")),
        "filter_form": filter_presenters.form(address),
        "tag_url": address.url(tag="") + "&tag=",
        "page": {
            "rows": rows,
            "next_url": address.url(after=page.next) if page.next else None,
            "prev_url": address.url(after=page.previous) if page.previous else None,
            "first_url": first_url,
            "looked_at": page.looked_at if page.stopped else 0,
        },
        # What at least one row of the page can become; for the others the change is refused, with the reason.
        "bulk_targets": [
            {"value": s.value, "label": s.label} for s in Status if any(s in MOVES[Status(r.status)] for r in rows)
        ],
        "bulk_limit": bulk.limit(tenant),
        "empty": None,
        "can_write": tenant.is_agent,
    }


def _updates_url(address: QueueAddress, page: TicketPage) -> str:
    """Return where an open page asks whether tickets of its list have changed since it was read."""
    seen = max((row.updated_at for row in page.rows), default=clock.stamp())
    query = urlencode({name: value for name, value in {**address.params, "seen": seen}.items() if value})
    return f"{reverse('tickets:updates')}?{query}"


def status_tabs(address: QueueAddress) -> list[dict[str, Any]]:
    """Return a tab for each status and each group of them, in one order whichever is chosen."""
    tabs = [(s.value, s.label, s.value) for s in Status]
    tabs += [(name, name.capitalize(), "") for name in filters.GROUPS]
    return [
        {
            "value": value,
            "label": label,
            "icon": icon,
            "url": address.url(status=value),
            "current": value == address.status,
        }
        for value, label, icon in tabs
    ]


def who_tabs(address: QueueAddress) -> list[dict[str, Any]]:
    """Return whose tickets can be listed, as links: everyone's, one's own, nobody's and the chosen person's."""
    people = [("Everyone", ""), ("Mine", "me"), ("Unassigned", "none")]
    if address.is_of_a_person:
        people.append((address.name or "One person", address.who))
    return [
        {
            "label": label,
            "url": address.url(resolver=who, name=address.name if who == address.who else ""),
            "current": who == address.who,
        }
        for label, who in people
    ]


def _people_url(address: QueueAddress) -> str:
    """Return where a person is chosen for the same list."""
    query = address.url(resolver="", name="").partition("?")[2]
    return reverse("tickets:people") + f"?{query}"


# --- nothing ---


def _empty(tenant: TenantContext, address: QueueAddress, page: TicketPage, first_url: str | None) -> dict[str, Any]:
    """Say why there is no row, and the ways on."""
    if page.stopped:
        return _blank(
            f"No match among the latest {page.looked_at} tickets",
            "Older tickets may match." if page.next else "",
            [(address.url(after=page.next or ""), f"Search the next {lists.READ_LIMIT}")] if page.next else [],
        )
    if first_url:
        return _blank("There are no more tickets in this list.", "", [(first_url, "Back to the latest")])
    kind = "" if address.status == "any" else f"{address.status} "
    if chosen := chips(address):
        return _no_match(address, kind, chosen)
    if address.who:
        title = {"me": f"You have no {kind}tickets.", "none": f"No {kind}tickets are unassigned."}.get(
            address.who, f"{address.name or 'This person'} has no {kind}tickets."
        )
        return _blank(title, "", [(address.url(resolver="", name=""), f"Show everyone's {kind}tickets")])
    new = [(reverse("tickets:new"), "New ticket")] if tenant.is_agent else []
    if address.status == Status.OPEN:
        return _blank("You're all caught up.", "No open tickets.", new)
    return _blank(f"No {kind}tickets.", "", new if address.status == "any" else [])


def _no_match(address: QueueAddress, kind: str, chosen: list[dict[str, str]]) -> dict[str, Any]:
    ways = [(chip["url"], f"Remove “{chip['label']}”") for chip in chosen]
    if address.status != "any":
        ways.append((address.url(status="any"), "Search in any status"))
    impossible = not address.only.possible(address.statuses)
    text = f"{address.label} tickets are not resolved." if impossible else ""
    several = "these filters" if len(chosen) > 1 else "this filter"
    return _blank(f"No {kind}tickets match {several}.", text, ways)


def _blank(title: str, text: str, ways: list[tuple[str, str]]) -> dict[str, Any]:
    return {"title": title, "text": text, "actions": [{"url": url, "label": label} for url, label in ways]}


# --- many tickets at once ---


def selection(states: Sequence[TicketState]) -> list[dict[str, Any]]:
    return [{"number": s.number, "select_value": str(s), "url": ticket_url(s.number)} for s in states]


def refused_change(refused: BulkRefused, *, to: Status, back: str) -> dict[str, Any]:
    """Say what stood in the way of a bulk change, and what can still be changed."""
    return {
        "to": to,
        "refused": [
            {
                "number": refusal.number,
                "title": refusal.title,
                "url": ticket_url(refusal.number) if refusal.title else "",
                "reason": refusal.reason,
            }
            for refusal in refused.refusals
        ],
        "kept": selection(refused.kept),
        "back": back,
    }
