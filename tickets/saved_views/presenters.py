"""Prepare saved views for their pages, the way from a list's ticket to the next one, and how a browser shows lists.

The address of a ticket says the list that it was opened from, the place in it, and whether to go on to the next ticket
after an action; so the way works in each tab by itself. A cookie holds columns and density, so that they cost no read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from portal import clock
from portal.errors import Invalid
from portal.web import desk_prefix, locales
from tenants.tenancy.context import TenantContext
from tenants.tenancy.request import TenantRequest
from tickets.desk import lists, queue_presenters
from tickets.desk.filters import LATEST, Order, TicketFilter
from tickets.desk.lists import NO_EPOCH, READ_LIMIT, MergedList, Position
from tickets.desk.queue_presenters import QueueAddress, chips
from tickets.desk.ticket_presenters import ticket_url
from tickets.saved_views import saved_views
from tickets.saved_views.saved_views import View, Views
from tickets.saved_views.view_counts import ViewCount
from tickets.ticket.fields import FILTERS, PLAIN, ChoiceField, Status
from tickets.ticket.stored import SummaryItem

_NONE: Mapping[str, ViewCount] = {}


def in_words(tenant: TenantContext, address: QueueAddress) -> str:
    """Say what a list shows, and in which order."""
    named = {"": "", "me": _("mine"), "none": _("unassigned")}
    who = named[address.who] if address.who in named else _("of one member")
    words = [
        _("%(status)s tickets") % {"status": address.label},
        who,
        *(str(chip["label"]) for chip in chips(tenant, address)),
    ]
    return ", ".join([*filter(None, words), locales.in_sentence(address.sorting.label)])


def shown(tenant: TenantContext, view: View, counts: Mapping[str, ViewCount] = _NONE) -> dict[str, Any]:
    """Return a view for a page. Words of its query that this version does not know are left out."""
    address = QueueAddress.of_what_is_understood(view.params)
    count = counts.get(view.id)
    return {
        "id": view.id,
        "name": view.name,
        "url": address.url(),
        "words": in_words(tenant, address),
        "count": str(count) if count else "",
        "is_least": bool(count and count.is_least),
        "may_change": saved_views.may_change(tenant, view),
    }


def starred(
    tenant: TenantContext, views: Views, url: str = "", counts: Mapping[str, ViewCount] = _NONE
) -> dict[str, Any]:
    """Return the views beside the queue, the one with this address marked as the current one."""
    rows = [shown(tenant, view, counts) for view in views.beside]
    return {
        "starred_views": [row | {"is_current": bool(url) and row["url"] == url} for row in rows],
        "counts_url": desk_prefix.address("tickets:view_counts"),
        "has_groups": bool(views.groups),
    }


def all_views(tenant: TenantContext, views: Views, counts: Mapping[str, ViewCount]) -> dict[str, Any]:
    groups = [(_("Views of the desk"), views.desk), (_("Your views"), views.own)]
    return {
        "groups": [
            {
                "label": label,
                "views": [
                    shown(tenant, view, counts)
                    | {"is_starred": view.id in views.stars, "is_first": not at, "is_last": at == len(some) - 1}
                    for at, view in enumerate(some)
                ],
            }
            for label, some in groups
        ]
    }


_ROUNDS = (150, READ_LIMIT)


class Neighbour(NamedTuple):
    """A ticket of a list, its place there, counted from 1, and how many it has; None for what is not known."""

    row: SummaryItem
    place: int | None = None
    total: int | None = None


def neighbour(
    tenant: TenantContext,
    *,
    statuses: tuple[Status, ...],
    resolver: str | None,
    only: TicketFilter,
    order: Order,
    number: int,
    at: str,
    place: int,
    backwards: bool,
) -> Neighbour | None:
    """Return the next ticket of a list, or the one before, None at its end.

    The ticket of this number was shown at this place, counted from 1, and in an order by update had changed `at`.
    One round trip, with a filter up to three. Raises Invalid for a bad resolver.
    """
    if order.key is None:
        merged = MergedList(tenant, statuses, resolver, only, ascending=order.is_reversed)
        here = Position(backwards, merged.prefix + at, 0, number, NO_EPOCH, (number,))
        found = merged.read(here, 2, _ROUNDS, fill=bool(only)).matches
        return next((Neighbour(row) for row in found if row.number != number), None)
    rows, is_whole, _ = lists.collected(tenant, statuses=statuses, resolver=resolver, only=only, order=order)
    index = next((i for i, row in enumerate(rows) if row.number == number), None)
    wanted = place - 1 if backwards else place  # of one that has moved to the front by a change
    if index is None:  # the next one has come to its place
        wanted -= 1
    elif rows[index].updated_at == at or index >= place - 1:
        wanted = index + (-1 if backwards else 1)
    total = len(rows) if is_whole else None
    return Neighbour(rows[wanted], wanted + 1, total) if 0 <= wanted < len(rows) else None


_NUMBER: Final = queue_presenters.PLACE
_TOTAL: Final = re.compile(r"[1-9][0-9]{0,8}\+?\Z")
GOES_ON: Final = "next"


@dataclass(frozen=True)
class ListPlace:
    """A ticket's place in the list that it was opened from. `total` is "43" or "50+", `at` when it had changed last."""

    listing: QueueAddress
    place: int
    total: str
    at: str
    goes_on: bool = False

    @classmethod
    def of(cls, params: Mapping[str, str]) -> Self | None:
        """Return what an address says, None where it says nothing that can be understood."""
        place, total, at = (params.get(name, "") for name in ("place", "of", "at"))
        if not (_NUMBER.match(place) and _TOTAL.match(total) and clock.is_stamp(at)):
            return None
        try:
            listing = QueueAddress.of(params)
        except Invalid:
            return None
        return cls(replace(listing, name=""), int(place), total, at, params.get("then") == GOES_ON)

    @property
    def query(self) -> str:
        """The part of an address that says this again, "?" included."""
        asked = self.listing.params | {"place": str(self.place), "of": self.total, "at": self.at}
        asked["then"] = GOES_ON if self.goes_on else ""
        return "?" + urlencode({name: value for name, value in asked.items() if value})

    def neighbour(self, tenant: TenantContext, number: int, *, backwards: bool) -> str | None:
        """Return the address of the ticket before or behind this one, None at the end of the list."""
        found = neighbour(
            tenant,
            statuses=self.listing.statuses,
            resolver=self.listing.resolver(tenant),
            only=self.listing.only,
            order=self.listing.sorting,
            number=number,
            at=self.at,
            place=self.place,
            backwards=backwards,
        )
        if found is None:
            return None
        place = found.place or max(1, self.place + (-1 if backwards else 1))
        total = self.total if found.total is None else str(found.total)
        if place > int(total.rstrip("+")):
            total = f"{place}+"  # the list is longer than its first page, or has grown
        there = replace(self, place=place, total=total, at=found.row.updated_at)
        return ticket_url(int(found.row.number)) + there.query

    def page(self, number: int) -> dict[str, Any]:
        return {
            "label": _("%(count)s of %(all)s") % {"count": locales.current().number(self.place), "all": self.total},
            "queue_url": self.listing.url(),
            "previous_url": reverse("tickets:ticket_previous", args=[number]) + self.query if self.place > 1 else "",
            "next_url": reverse("tickets:ticket_next", args=[number]) + self.query,
            "goes_on": self.goes_on,
            "toggle_url": ticket_url(number) + replace(self, goes_on=not self.goes_on).query,
            "query": self.query,
        }


def address_of(request: TenantRequest, number: int) -> str:
    """Return the address of a ticket, with its place in the list that this request's address names."""
    place = ListPlace.of(request.GET.dict())
    return reverse("tickets:ticket", args=[number]) + (place.query if place else "")


def onwards(request: TenantRequest, number: int, part: str = "") -> HttpResponse:
    """Answer after an action on a ticket: lead back to it, or on in its list where the person wants that."""
    place = ListPlace.of(request.GET.dict())
    if place is None or not place.goes_on:
        return redirect(address_of(request, number) + part)
    there = reverse("tickets:ticket_next", args=[number]) + place.query
    if "HX-Request" in request.headers:  # another ticket is another page, with its own address
        return HttpResponse(status=204, headers={"HX-Redirect": there})
    return redirect(there)


COOKIE: Final = "pooldesk_lists"
COMPACT: Final = "compact"
COLUMNS: Final = {
    **{name: gettext_lazy(choice.named) for name, choice in FILTERS.items()},
    "tags": gettext_lazy("Tags"),
    "requester": gettext_lazy("Requester"),
    "resolver": gettext_lazy("Assignee"),
    "comments": gettext_lazy("Comments"),
    "created": gettext_lazy("Opened"),
    "updated": gettext_lazy("Updated"),
}
_USUAL: Final = frozenset(COLUMNS) - {"created"}


@dataclass(frozen=True)
class ListDisplay:
    columns: frozenset[str] = _USUAL
    is_compact: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a cookie. Words that this version does not know mean nothing; "" is what nobody has changed."""
        return cls.of(text.split(".")) if text else cls()

    @classmethod
    def of(cls, words: Iterable[str]) -> Self:
        chosen = frozenset(words)
        return cls(chosen & COLUMNS.keys(), COMPACT in chosen)

    def __str__(self) -> str:
        words = [name for name in COLUMNS if name in self.columns]
        return ".".join([COMPACT if self.is_compact else "comfortable", *words])

    def classes(self, sorted_by: str) -> str:
        hidden = [f"without-{name}" for name in COLUMNS if not self.shows(name, sorted_by)]
        return " ".join([*hidden, *([COMPACT] if self.is_compact else [])])

    def shows(self, column: str, sorted_by: str) -> bool:
        """Tell whether a column is shown. The one that a list is sorted by is, but for that of the usual order."""
        return column in self.columns or (column == sorted_by and column != LATEST.column)

    def plain_choices(self, sorted_by: str) -> list[ChoiceField]:
        """Return the fields with a few values whose columns are shown, but for the status and the priority."""
        return [choice for choice in PLAIN if self.shows(choice.name, sorted_by)]

    def choices(self) -> list[tuple[str, str, bool]]:
        """Return name, label, and whether it is shown, of each column."""
        return [(name, str(label), name in self.columns) for name, label in COLUMNS.items()]
