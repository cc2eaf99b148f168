"""The orders in which a list of tickets can be shown, by their words in addresses, and pages of a list in any of them.

Only the order by update is that of an index. For the others the list is read by its keys, up to COLLECTED rows of it,
and sorted here: each ticket is in its place where the list has no more than that, and the page says so where it has.
Such a page costs what its list costs, at most 25 units for each status, in one round trip with one shard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from django.utils.translation import gettext, gettext_noop

from portal.dynamo.paging import Pager
from portal.errors import Invalid
from portal.web import locales
from tenants.tenancy.context import TenantContext
from tickets.desk import lists
from tickets.desk.filters import EVERYTHING, TicketFilter
from tickets.desk.lists import NO_PAGE, READ_LIMIT, MergedList, TicketPage
from tickets.ticket.due_marks import DueMarks
from tickets.ticket.fields import Priority, Status, is_unresolved
from tickets.ticket.stored import SummaryItem

Key = tuple[Any, str, int]  # of a row: what the order asks for, when the ticket was opened, and its number
KEY_VALUES: Final = 3
_RANKS: Final = {priority.value: rank for rank, priority in enumerate(Priority)}
_NEVER: Final = 1 << 40  # seconds
_NAME_LENGTH: Final = 40  # characters of a requester's name that count, so that a cursor stays short


@dataclass(frozen=True)
class Order:
    """`key` is None where an index has this order. Without it, `is_reversed` reads the index from its oldest row on;
    with it, rows come with the greatest key first."""

    word: str
    named: str  # in English
    is_reversed: bool = False
    key: Callable[[SummaryItem], Key] | None = None

    @property
    def label(self) -> str:
        return locales.said(self.named)

    def key_of(self, row: SummaryItem) -> Key:
        """Return the key of a row. Raises TypeError where an index has this order."""
        if self.key is None:
            raise TypeError(f"an index has the order {self.word}")
        return self.key(row)

    @property
    def column(self) -> str:
        return self.word.removeprefix("-")

    @property
    def is_descending(self) -> bool:
        return self.word.startswith("-")


def _created(row: SummaryItem) -> Key:
    return "", row.created_at, int(row.number)


def _urgency(row: SummaryItem) -> Key:
    """Order by priority, the oldest ticket first where two have the same."""
    return _RANKS[row.priority], row.created_at, int(row.number)


def _requester(row: SummaryItem) -> Key:
    return row.requester_name.casefold()[:_NAME_LENGTH], row.created_at, int(row.number)


def _due(row: SummaryItem) -> Key:
    """Order by the next target, overdue ones first; tickets without one come last, the oldest first."""
    marks = DueMarks.read(row.due) if row.due and is_unresolved(row.status) else None
    return (marks.at if marks and marks.at else _NEVER), row.created_at, int(row.number)


LATEST: Final = Order("-updated", gettext_noop("Latest update first"))
ORDERS: Final = {
    order.word: order
    for order in (
        LATEST,
        Order("updated", gettext_noop("Oldest update first"), is_reversed=True),
        Order("-created", gettext_noop("Newest ticket first"), True, _created),
        Order("created", gettext_noop("Oldest ticket first"), False, _created),
        Order("-priority", gettext_noop("Highest priority first"), False, _urgency),
        Order("priority", gettext_noop("Lowest priority first"), True, _urgency),
        Order("due", gettext_noop("Due first"), False, _due),
        Order("requester", gettext_noop("Requester, A to Z"), False, _requester),
        Order("-requester", gettext_noop("Requester, Z to A"), True, _requester),
    )
}


def parse(word: str) -> Order:
    """Return the order of a word, the usual one for "". Raises Invalid."""
    try:
        return ORDERS[word or LATEST.word]
    except KeyError:
        raise Invalid(gettext("There is no such order of tickets."), field="sort") from None


# --- pages ---


COLLECTED: Final = READ_LIMIT


def page(
    tenant: TenantContext,
    *,
    status: Status | tuple[Status, ...],
    resolver: str | None = None,
    only: TicketFilter = EVERYTHING,
    order: Order = LATEST,
    after: str | None = None,
    size: int = lists.PAGE_SIZE,
    at_once: bool = False,
) -> TicketPage:
    """Return a page of a list as `lists.page` does, in this order. Raises Invalid for a bad cursor or resolver."""
    statuses = (status,) if isinstance(status, Status) else tuple(status)
    if order.key is None:
        return lists.page(
            tenant,
            status=statuses,
            resolver=resolver,
            only=only,
            after=after,
            size=size,
            at_once=at_once,
            ascending=order.is_reversed,
        )
    rows, whole, looked_at = collected(tenant, statuses=statuses, resolver=resolver, only=only, order=order)
    binding = lists.binding(statuses=statuses, resolver=resolver, only=only, order=order.word)
    found = _page(rows, Pager(tenant.tenant_id, binding), order, after, size)
    return replace(found, total=len(rows) if whole else None, sorted_among=0 if whole else looked_at)


def collected(
    tenant: TenantContext,
    *,
    statuses: tuple[Status, ...],
    resolver: str | None,
    only: TicketFilter = EVERYTHING,
    order: Order,
) -> tuple[list[SummaryItem], bool, int]:
    """Return the rows of a list in an order that no index has, whether they are all, and how many were read."""
    merged = MergedList(tenant, statuses, resolver, only)
    # The further round is for shards that had more than their share.
    stretch = merged.read(None, COLLECTED, (2 * COLLECTED,), fill=True)
    newest = {int(row.number): row for row in reversed(stretch.matches)}  # see lists.page
    return sorted(newest.values(), key=order.key_of, reverse=order.is_reversed), stretch.complete, len(stretch.rows)


def _page(rows: list[SummaryItem], pager: Pager, order: Order, after: str | None, size: int) -> TicketPage:
    """Cut a page out of the sorted rows. A position is the key of the row next to which the page begins."""
    place = pager.place(after, size=KEY_VALUES) if after else None
    backwards = place is not None and place.backwards
    if place is not None:
        position = tuple(place.position)
        # Rows behind the position have a greater key, read backwards or from the greatest on a lesser one.
        greater = backwards == order.is_reversed
        rows = [row for row in rows if (order.key_of(row) > position if greater else order.key_of(row) < position)]
    shown = rows[-size:] if backwards else rows[:size]
    if not shown:
        return NO_PAGE
    ends = [list(order.key_of(row)) for row in (shown[0], shown[-1])]
    begin, end = reversed(ends) if backwards else ends
    links = pager.links(place, begin=begin, end=end, more=len(rows) > size)
    return TicketPage(shown, links.next, links.previous, len(shown), False)
