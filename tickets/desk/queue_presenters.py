"""The queue as its address asks for it and as its page says it: tabs, chips, the form of filters, words for nothing.

Templates get plain values; what the words of the address mean is in filters.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

from django.urls import reverse

from portal import clock
from tenants.tenancy.context import TenantContext
from tickets.desk import bulk, filters, lists
from tickets.desk.filters import Days, Filter
from tickets.desk.lists import TicketPage
from tickets.desk.ticket_presenters import queue_url, row
from tickets.ticket.fields import MOVES, Priority, Status

NAME_LIMIT: Final = 100  # characters of a name in an address
_ICON_OF_GROUPS: Final = "list"
_MEANT: Final = {
    "created": "opened",
    "resolved": "last resolved",
    "reopened": "last reopened",
    "commented": "last commented on",
}
# The form of filters sends each end of the days in a field of its own.
_ENDS: Final = ("created_from", "created_to")


@dataclass(frozen=True)
class Asked:
    """What an address of the queue asks for. `who` is "", me, none or a user id; `name` is that person's, if known."""

    status: str
    who: str
    name: str
    only: Filter

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Asked:
        """Raises Invalid for what means nothing; unknown parameters and empty ones ask nothing."""
        status = params.get("status") or Status.OPEN.value
        filters.statuses(status)
        return cls(status, params.get("resolver", ""), params.get("name", "")[:NAME_LIMIT], Filter.parse(params))

    @property
    def statuses(self) -> tuple[Status, ...]:
        return filters.statuses(self.status)

    @property
    def is_mixed(self) -> bool:
        """Whether rows of several statuses may be listed, so that each says its own."""
        return len(self.statuses) > 1

    @property
    def is_of_a_person(self) -> bool:
        return self.who not in ("", "me", "none")

    @property
    def label(self) -> str:
        return "All" if self.status == "any" else self.status.capitalize()

    def resolver(self, tenant: TenantContext) -> str | None:
        """As `lists.page` takes it."""
        return {"": None, "me": tenant.user_id, "none": ""}.get(self.who, self.who)

    @property
    def params(self) -> dict[str, str]:
        return {"status": self.status, "resolver": self.who, "name": self.name, **self.only.params}

    def url(self, **changes: str) -> str:
        """The same list with other values of these parameters; "" drops one."""
        return queue_url(**(self.params | changes))


def tidied(params: Mapping[str, str]) -> str | None:
    """The address that the form of filters means, None where the parameters are not the form's.

    Its ends of the days become one parameter, in the right order, and empty fields leave no trace.
    """
    if not any(name in params for name in _ENDS):
        return None
    first, last = (params.get(name, "") for name in _ENDS)
    if first and last:
        first, last = sorted((first, last))
    days = f"{first}..{last}" if first or last else ""
    return Asked.of({**params, "created": days}).url()


def context(tenant: TenantContext, asked: Asked, after: str) -> dict[str, Any]:
    """The page's list, read here, and all that follows from what was asked. Raises Invalid for a bad cursor or person.

    `after` is a cursor, "" for the first page.
    """
    found = lists.page(
        tenant, status=asked.statuses, resolver=asked.resolver(tenant), only=asked.only, after=after or None
    )
    rows = [row(tenant, item) for item in found.rows]
    if asked.is_of_a_person and rows:
        asked = replace(asked, name=rows[0].resolver_name[:NAME_LIMIT])
    first_url = asked.url() if after else None
    return {
        "list_label": asked.label,
        "is_mixed": asked.is_mixed,
        "status_tabs": _status_tabs(asked),
        "who_tabs": _who_tabs(asked),
        "people_url": _people_url(asked),
        "chips": chips(asked),
        "chips_note": _note(asked.only),
        "without_url": asked.url(**dict.fromkeys(asked.only.params, "")),
        "filter_form": _form(asked),
        "tag_url": asked.url(tag="") + "&tag=",
        "page": {
            "rows": rows,
            "next_url": asked.url(after=found.next) if found.next else None,
            "prev_url": asked.url(after=found.previous) if found.previous else None,
            "first_url": first_url,
            "looked_at": found.looked_at if found.stopped else 0,
        },
        # What at least one row of the page can become; for the others the change is refused, with the reason.
        "bulk_targets": [
            {"value": s.value, "label": s.label} for s in Status if any(s in MOVES[Status(r.status)] for r in rows)
        ],
        "bulk_limit": bulk.LIMIT,
        "empty": None if rows else _empty(tenant, asked, found, first_url),
        "can_write": tenant.is_agent,
    }


def _status_tabs(asked: Asked) -> list[dict[str, Any]]:
    tabs = [(s.value, s.label, s.value) for s in Status]
    if asked.status in filters.GROUPS:
        tabs.append((asked.status, asked.status.capitalize(), _ICON_OF_GROUPS))
    return [
        {
            "value": value,
            "label": label,
            "icon": icon,
            "url": asked.url(status=value),
            "current": value == asked.status,
        }
        for value, label, icon in tabs
    ]


def _who_tabs(asked: Asked) -> list[dict[str, Any]]:
    people = [("Everyone", ""), ("Mine", "me"), ("Unassigned", "none")]
    if asked.is_of_a_person:
        people.append((asked.name or "One person", asked.who))
    return [
        {
            "label": label,
            "url": asked.url(resolver=who, name=asked.name if who == asked.who else ""),
            "current": who == asked.who,
        }
        for label, who in people
    ]


def _people_url(asked: Asked) -> str:
    """Where a person is chosen for the same list."""
    query = asked.url(resolver="", name="").partition("?")[2]
    return reverse("tickets:people") + f"?{query}"


# --- chips ---


def chips(asked: Asked) -> list[dict[str, str]]:
    """A chip for each filter: its words, what they mean exactly, and the address without it."""
    return [
        {"label": label, "title": title, "url": asked.url(**{name: ""})} for name, label, title in _words(asked.only)
    ]


def _words(only: Filter) -> list[tuple[str, str, str]]:
    words = []
    if only.priority:
        words.append(("priority", f"priority: {only.priority}", f"Only tickets of {only.priority} priority"))
    if only.tag:
        words.append(("tag", f"tag: {only.tag}", f"Only tickets with the tag {only.tag}"))
    for name, said in filters.EVENTS.items():
        days: Days | None = getattr(only, name)
        if days:
            label = f"{said} {in_words(days)}"
            words.append((name, label, f"Only tickets {_MEANT[name]} {in_words(days)}, UTC"))
    return words


def _note(only: Filter) -> str:
    """What has to be known of these filters: a list of the last such events is shorter than all that there were."""
    verbs = [_MEANT[name].removeprefix("last ") for name in only.params if name in filters.EVENTS and name != "created"]
    return f"A ticket is found by the last day on which it was {' or '.join(verbs)}, in UTC." if verbs else ""


def in_words(days: Days, today: date | None = None) -> str:
    """ "on 20 Nov", "1 to 7 Nov", "from 1 Nov" or "up to 20 Nov"; a year is named where it is not this one."""
    year = (today or clock.now().date()).year
    first, last = (date.fromisoformat(end) if end else None for end in (days.first, days.last))
    if first is None or last is None:
        end, word = (last, "up to") if last else (first, "from")
        return f"{word} {_day(end, year)}" if end else ""
    if first == last:
        return f"on {_day(first, year)}"
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day} to {_day(last, year)}"
    return f"{_day(first, last.year if last.year == first.year else year)} to {_day(last, year)}"


def _day(day: date, year: int) -> str:
    return f"{day.day} {day:%b}" + ("" if day.year == year else f" {day.year}")


# --- the form ---


def _form(asked: Asked) -> dict[str, Any]:
    """What the form of filters shows, and in `hidden` what it sends along untouched."""
    created = asked.only.created
    offered = {**{s.value: s.label for s in Status}, "unresolved": "Unresolved", "any": "Any"}
    chosen = asked.only.priority or ""
    kept = ("resolver", "name", "resolved", "reopened", "commented")
    return {
        "hidden": [(name, asked.params[name]) for name in kept if asked.params.get(name)],
        "statuses": [{"value": v, "label": label, "current": v == asked.status} for v, label in offered.items()],
        "priorities": [{"value": p.value, "label": p.label, "current": p == chosen} for p in Priority],
        "tag": asked.only.tag,
        "created_from": created.first if created else "",
        "created_to": created.last if created else "",
    }


# --- nothing ---


def _empty(tenant: TenantContext, asked: Asked, found: TicketPage, first_url: str | None) -> dict[str, Any]:
    """Why there is no row, and the ways on."""
    chosen = chips(asked)
    if found.stopped:
        return _blank(
            f"None of these {found.looked_at} tickets match",
            "There are more, with older changes." if found.next else "",
            [(asked.url(after=found.next or ""), f"Look through the next {lists.READ_LIMIT}")] if found.next else [],
        )
    if first_url:
        return _blank("That was the last one", "", [(first_url, "Back to the top")])
    whose = {"": "", "me": " of yours", "none": " without an assignee"}.get(asked.who, " of this person")
    kind = "" if asked.status == "any" else f"{asked.status} "
    title = f"No {kind}tickets{whose}"
    ways = [(chip["url"], f"Drop “{chip['label']}”") for chip in chosen]
    if chosen:
        impossible = not asked.only.possible(asked.statuses)
        text = f"What is {asked.status} is not resolved." if impossible else "None match all of these filters."
        if asked.status != "any":
            ways.append((asked.url(status="any"), "Look in any status"))
        return _blank(f"{title} match", text, ways)
    if asked.who:
        return _blank(title, "", [(asked.url(resolver="", name=""), f"All {kind}tickets")])
    if asked.status == Status.OPEN:
        new = [(reverse("tickets:new"), "New ticket")] if tenant.is_agent else []
        return _blank(title, "Nothing waits for an answer.", new)
    return _blank(title, "", [])


def _blank(title: str, text: str, ways: list[tuple[str, str]]) -> dict[str, Any]:
    return {"title": title, "text": text, "actions": [{"url": url, "label": label} for url, label in ways]}
