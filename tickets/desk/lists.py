"""Lists of tickets: index partitions, one per status and shard, read at the same time and merged, newest change first.

What a key serves, status and resolver, costs one round trip: each shard is asked for its share of a page and some
slack. Where one has more of the newest rows than was fetched from it, the page ends early with a link to go on: such a
page may be short, but it never costs a second round trip. Several statuses are not spread as evenly as shards are,
so each of them is asked for a whole page: "unresolved" reads twice as many rows as "open", in the same round trip.

Priority, tag and days are served by no key: they are asked of the rows that were read, and where a page is not full,
further rounds read on, up to READ_LIMIT rows. That is 500: ten pages, some 200 KB and 25 read units, in at most
three rounds, so that even a filter that nothing matches answers in a fraction of a second; the page then says how
far it looked and links to the rest. The days bound the read itself wherever they can (`TicketFilter.since`).

No FilterExpression: it takes the same capacity, for DynamoDB charges what it reads and not what it returns. It would
save bytes on the wire, but the merge needs the place of each row that was passed over, and the meter, which prices
what comes back, would no longer see what a page costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from portal import clock
from portal.dynamo.paging import Links
from portal.errors import Invalid
from tenants.tenancy.context import TenantContext
from tickets.desk.filters import EVERYTHING, TicketFilter
from tickets.desk.shard_merge import CURSOR_VALUES, MergedList
from tickets.desk.ticket_rows import TicketRow
from tickets.ticket.fields import Status

# The rows of a page where nobody asks for another number; the queue asks for `bulk.limit`.
PAGE_SIZE: Final = 50
# Rows that a filtered page reads at most, and how many of them the rounds after the first ask for.
READ_LIMIT: Final = 500
_FIRST_ROUND: Final = 150
NEWS_LIMIT: Final = 20  # changed tickets that are counted for a page that is open


@dataclass(frozen=True)
class TicketPage:
    """A page of a list, newest change first. The cursors are None at the ends.

    `looked_at` is the number of tickets between the page's ends, those left out by a filter included; `stopped` says
    that the page would be longer, had it been allowed to read on.
    """

    rows: list[TicketRow]
    next: str | None
    previous: str | None
    looked_at: int
    stopped: bool


def page(
    tenant: TenantContext,
    *,
    status: Status | Sequence[Status],
    resolver: str | None = None,
    only: TicketFilter = EVERYTHING,
    after: str | None = None,
    size: int = PAGE_SIZE,
    at_once: bool = False,
) -> TicketPage:
    """Return tickets of one status or several, of one resolver where `resolver` is a user id or "" for nobody.

    `only` leaves out the others of these. `after` is a cursor of a former page of the same list. Raises Invalid for a
    bad cursor or resolver. One Query for each status and shard, at the same time; with `only` up to two rounds more, or
    with `at_once` none: such a page looks at _FIRST_ROUND rows, and may be short or empty with a link to go on.
    """
    statuses = (status,) if isinstance(status, Status) else tuple(status)
    listing = MergedList(tenant, statuses, resolver, only)
    place = listing.pager.place(after, size=CURSOR_VALUES) if after else None
    position = listing.position(place) if place else None
    backwards = position is not None and position.backwards
    rounds = () if at_once else (_FIRST_ROUND, READ_LIMIT)
    first = _FIRST_ROUND if only and at_once else 0
    stretch = listing.read(position, size, rounds, at_least=first, fill=bool(only))
    rows, matches = (stretch.rows[::-1], stretch.matches[::-1]) if backwards else (stretch.rows, stretch.matches)
    begin, end = listing.ends(stretch.rows, position) if rows else ((), ())
    links = listing.pager.links(place, begin=begin, end=end, more=not stretch.complete) if rows else Links()
    # An index lags behind by a moment, in which a ticket that changed may stand in it twice: the newer row is right.
    newest = {item.number: item for item in reversed(matches)}
    return TicketPage(
        rows=[item for item in matches if newest[item.number] is item],
        next=links.next,
        previous=links.previous,
        looked_at=len(rows),
        stopped=(bool(only) or not matches) and not stretch.complete and len(matches) < size,
    )


def changed_since(
    tenant: TenantContext,
    *,
    status: Sequence[Status],
    resolver: str | None = None,
    only: TicketFilter = EVERYTHING,
    seen: str,
) -> int:
    """Count the tickets of a list that changed after the moment `seen`, counted up to NEWS_LIMIT.

    One Query for each status and shard, at the same time, of nothing but what changed: half a unit each where nothing
    did, and further ones only where more changed than was asked for, up to READ_LIMIT rows. A ticket that left the list
    is not counted. Raises Invalid for a bad resolver, and where `seen` is no stamp.
    """
    if not clock.is_stamp(seen):
        raise Invalid("This page is too old to say what has changed. Reload it.")
    merged = MergedList(tenant, status, resolver, only, newer_than=seen)
    found = merged.read(None, NEWS_LIMIT, (_FIRST_ROUND, READ_LIMIT), fill=True).matches
    return len({row.number for row in found})  # one that changed its status may stand in two partitions for a moment
