"""Find the ticket before or behind one in a list, while the list changes.

In the order by update a ticket is known by the moment at which the list showed it. So after a comment, which moves a
ticket to the front, the way goes on from where it was. In the other orders a ticket mostly stays where it is; one that
has left the list, or has moved in it, is known by its place.
"""

from __future__ import annotations

from typing import NamedTuple

from tenants.tenancy.context import TenantContext
from tickets.desk import sorting
from tickets.desk.filters import TicketFilter
from tickets.desk.lists import NO_EPOCH, READ_LIMIT, MergedList, Position
from tickets.desk.sorting import Order
from tickets.ticket.fields import Status
from tickets.ticket.stored import SummaryItem

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
    rows, is_whole, _ = sorting.collected(tenant, statuses=statuses, resolver=resolver, only=only, order=order)
    index = next((i for i, row in enumerate(rows) if row.number == number), None)
    wanted = place - 1 if backwards else place  # of one that has moved to the front by a change
    if index is None:  # the next one has come to its place
        wanted -= 1
    elif rows[index].updated_at == at or index >= place - 1:
        wanted = index + (-1 if backwards else 1)
    total = len(rows) if is_whole else None
    return Neighbour(rows[wanted], wanted + 1, total) if 0 <= wanted < len(rows) else None
