"""The filters of the queue: as its address asks for them, as chips over the list, and as a form.

What the words of an address mean is in filters.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Self

from django.urls import reverse

from portal import clock
from portal.errors import Invalid
from tenants.tenancy.context import TenantContext
from tickets.desk import filters
from tickets.desk.filters import Days, TicketFilter
from tickets.desk.ticket_presenters import queue_url
from tickets.ticket import fields
from tickets.ticket.fields import Status

NAME_LIMIT: Final = 100  # characters of a name in an address
_MEANT: Final = {
    "created": "opened",
    "resolved": "last resolved",
    "reopened": "last reopened",
    "commented": "last commented on",
}
# The form of filters sends each end of the days in a field of its own.
_ENDS: Final = ("created_from", "created_to")


@dataclass(frozen=True)
class QueueAddress:
    """Hold what an address of the queue asks for. `who` is "", me, none or a user id; `name` is that of the person."""

    status: str
    who: str
    name: str
    only: TicketFilter

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Self:
        """Raise Invalid for what means nothing; unknown parameters and empty ones ask nothing."""
        status = params.get("status") or Status.OPEN.value
        filters.statuses(status)
        return cls(status, params.get("resolver", ""), params.get("name", "")[:NAME_LIMIT], TicketFilter.parse(params))

    @classmethod
    def of_what_is_understood(cls, params: Mapping[str, str]) -> Self:
        """Return the address without the parameters that mean nothing."""
        good = {}
        for name, value in params.items():
            try:
                cls.of({name: value})
            except Invalid:
                continue
            good[name] = value
        return cls.of(good)

    @property
    def statuses(self) -> tuple[Status, ...]:
        return filters.statuses(self.status)

    @property
    def is_mixed(self) -> bool:
        """Tell whether rows of several statuses may be listed, so that each says its own."""
        return len(self.statuses) > 1

    @property
    def is_of_a_person(self) -> bool:
        return self.who not in ("", "me", "none")

    @property
    def label(self) -> str:
        return "All" if self.status == "any" else self.status.capitalize()

    def resolver(self, tenant: TenantContext) -> str | None:
        """Return it as `lists.page` takes it."""
        return {"": None, "me": tenant.user_id, "none": ""}.get(self.who, self.who)

    @property
    def params(self) -> dict[str, str]:
        return {"status": self.status, "resolver": self.who, "name": self.name, **self.only.params}

    def url(self, **changes: str) -> str:
        """Return the address of the same list with other values of these parameters; "" drops one."""
        return queue_url(**(self.params | changes))


def tidied(params: Mapping[str, str]) -> str | None:
    """Return the address that the form of filters means, None where the parameters are not the form's. Raises
    Invalid."""
    meant = with_days(params)
    return None if meant is None else QueueAddress.of(meant).url()


def with_days(params: Mapping[str, str]) -> dict[str, str] | None:
    """Return the parameters that the form of filters means, None where these are not the form's.

    Its ends of the days become one parameter, in the right order, and empty fields leave no trace.
    """
    if not any(name in params for name in _ENDS):
        return None
    first, last = (params.get(name, "") for name in _ENDS)
    if first and last:
        first, last = sorted((first, last))
    days = f"{first}..{last}" if first or last else ""
    return {**params, "created": days}


def chips(address: QueueAddress) -> list[dict[str, str]]:
    """Return a chip for each filter: its words, what they mean exactly, and the address without it."""
    return [
        {"label": label, "title": title, "url": address.url(**{name: ""})}
        for name, label, title in _words(address.only)
    ]


def _words(only: TicketFilter) -> list[tuple[str, str, str]]:
    words = []
    for name, choice in fields.FILTERS.items():
        if value := only.get(name):
            label = choice.label.lower()
            words.append((name, f"{label}: {value}", f"Only tickets with {value} {label}"))
    if tag := only.get("tag"):
        words.append(("tag", f"tag: {tag}", f"Only tickets with the tag {tag}"))
    for name, said in filters.EVENTS.items():
        days: Days | None = only.get(name)
        if days:
            label = f"{said} {in_words(days)}"
            words.append((name, label, f"Only tickets {_MEANT[name]} {in_words(days)}, UTC"))
    return words


def note(only: TicketFilter) -> str:
    """Say what has to be known of these filters: a list of the last such events is shorter than all that there were."""
    verbs = [_MEANT[name].removeprefix("last ") for name in only.params if name in filters.EVENTS and name != "created"]
    return f"Each ticket is listed by the last day it was {' or '.join(verbs)}, in UTC." if verbs else ""


def in_words(days: Days, today: date | None = None) -> str:
    """Write "on 20 Nov", "1 to 7 Nov", "from 1 Nov" or "up to 20 Nov"; a year is named where it is not this one."""
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


def form(
    address: QueueAddress, typed: Mapping[str, str] | None = None, problem: Invalid | None = None
) -> dict[str, Any]:
    """Return what the form of filters shows, and in `hidden` what it sends along untouched.

    With a problem: what was typed, and beside its field the sentence that says what is wrong.
    """
    typed = typed or {}
    created: Days | None = address.only.get("created")
    offered = {**{s.value: s.label for s in Status}, "unresolved": "Unresolved", "any": "Any"}
    kept = ("resolver", "name", "resolved", "reopened", "commented")
    return {
        "url": reverse("tickets:queue"),
        "place": "#queue",
        "home": "queue-title",
        "hidden": [(name, address.params[name]) for name in kept if address.params.get(name)],
        "statuses": [{"value": v, "label": label, "current": v == address.status} for v, label in offered.items()],
        "choices": {name: choice.offered(address.only.get(name) or "") for name, choice in fields.FILTERS.items()},
        "tag": typed.get("tag") or address.only.get("tag") or "",
        "created_from": typed.get("created_from") or (created.first if created else ""),
        "created_to": typed.get("created_to") or (created.last if created else ""),
        "problem": {"field": problem.field, "text": problem.message} if problem else None,
    }
