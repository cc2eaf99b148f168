"""Count the tickets of views: by the aggregates where these count just that, else by looking at the list up to a bound.

All views together take one Query of the aggregates, whatever the number of tickets. A view with several filters is
looked at, up to COUNTED tickets and as many rows as one round trip brings; such numbers say so: "50+".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from portal.dynamo.client import fan_out
from portal.errors import Invalid
from portal.web import locales
from tenants.tenancy.context import TenantContext
from tickets.counting import contributions, stored_counts
from tickets.counting import stored as aggregate_keys
from tickets.counting.contributions import COUNTED_CHANNELS, Kind
from tickets.counting.stored_counts import Stored
from tickets.desk import filters, lists
from tickets.desk.filters import TicketFilter
from tickets.saved_views.saved_views import View
from tickets.ticket.fields import GROUP, Channel, Priority, Status

COUNTED: Final = 50
_LOOKED_AT_TOGETHER: Final = 12  # views whose lists are looked at for one page
_KINDS: Final[tuple[Kind, ...]] = ("TOTALS", "PEOPLE", "TAGS")


@dataclass(frozen=True)
class ViewCount:
    """`is_least` says that there may be more: the list was looked at up to a bound."""

    number: int
    is_least: bool = False

    def __str__(self) -> str:
        return locales.current().number(self.number) + ("+" if self.is_least else "")


@dataclass(frozen=True)
class ListAsked:
    """The list that a view asks for."""

    statuses: tuple[Status, ...]
    resolver: str | None
    only: TicketFilter

    @classmethod
    def of(cls, tenant: TenantContext, params: Mapping[str, str]) -> ListAsked:
        """Read the query of a view. Raises Invalid for words that mean nothing here."""
        who = params.get("resolver", "")
        resolver = {"": None, "me": tenant.user_id, "none": ""}.get(who, who)
        return cls(filters.statuses(params.get("status") or Status.OPEN.value), resolver, TicketFilter.parse(params))


def read(tenant: TenantContext) -> Stored:
    """Read what the aggregates count beside days: one Query."""
    found = stored_counts.of_dashboard(tenant.repository, aggregate_keys.LEADERS)
    return stored_counts.shown(found)


def counted(stored: Stored, asked: ListAsked) -> int | None:
    """Return how many tickets the aggregates count for a question, None where they do not count it by itself."""
    asks = asked.only.params
    if len(asks) + (asked.resolver is not None) > 1:
        return None
    merged = contributions.merged(stored.counts)
    totals, people, tags = (merged.get((kind, ""), Counter[str]()) for kind in _KINDS)
    words, who = [status.value for status in asked.statuses], asked.resolver
    name, value = next(iter(asks.items()), ("", ""))
    every = sum(totals[f"{word}.{priority}"] for word in words for priority in Priority)
    number: int | None = None
    if who:
        number = sum(people[f"{who}.{word}"] for word in words)
        # Of people and tags with few tickets, large desks read no counts here.
        if not number and stored.recent.has_tail:
            return None
    elif name == "tag":
        number = sum(tags[f"{word}.{value}"] for word in words)
        if not number and stored.recent.has_tail:
            return None
    elif who == "":
        number = sum(totals[f"{contributions.UNASSIGNED}.{word}"] for word in words)
    elif name == "priority":
        number = sum(totals[f"{word}.{value}"] for word in words)
    elif (name, value) == ("channel", Channel.HAND):  # all that came by no other channel
        number = every - sum(totals[f"{channel}.{word}"] for channel in COUNTED_CHANNELS for word in words)
    elif name in ("channel", "rating", GROUP.name):
        number = sum(totals[f"{value}.{word}"] for word in words)
    elif not name:
        number = every
    return None if number is None else max(0, number)


def looked_at(tenant: TenantContext, asked: ListAsked) -> ViewCount | None:
    """Count the tickets of a list up to COUNTED, in one round trip. Return None for a list that cannot be, such as that
    of a person whose id means nothing."""
    try:
        page = lists.page(
            tenant,
            status=asked.statuses,
            resolver=asked.resolver,
            only=asked.only,
            size=COUNTED,
            at_once=True,
        )
    except Invalid:
        return None
    return ViewCount(len(page.rows), is_least=page.next is not None)


def of(tenant: TenantContext, views: Sequence[View], stored: Stored) -> dict[str, ViewCount]:
    """Return the counts of views by id. One that cannot be counted now, such as one whose filter is gone, is left out.

    The lists that the aggregates do not count are looked at together, up to _LOOKED_AT_TOGETHER of them.
    """
    found: dict[str, ViewCount] = {}
    open_questions: list[tuple[str, ListAsked]] = []
    for view in views:
        try:
            asked = ListAsked.of(tenant, view.params)
        except Invalid:
            continue
        number = counted(stored, asked)
        if number is not None:
            found[view.id] = ViewCount(number)
        else:
            open_questions.append((view.id, asked))
    some = open_questions[:_LOOKED_AT_TOGETHER]
    answers = fan_out([partial(looked_at, tenant, asked) for _, asked in some])
    return found | {view_id: answer for (view_id, _), answer in zip(some, answers, strict=True) if answer is not None}
