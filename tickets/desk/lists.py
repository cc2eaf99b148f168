"""Lists of tickets: index partitions, one per status and shard, read at the same time and merged, newest change first.

Status and resolver are served by a key and cost one round trip: each shard is asked for its share of a page and some
slack, and a page ends early where one has more of the newest rows. Priority, channel, rating, tag and days are asked of
the rows that were read: where a page is not full, further rounds read on, up to READ_LIMIT rows in three rounds, so
that even a filter that nothing matches answers in a fraction of a second.

No FilterExpression: DynamoDB charges what it reads and not what it returns, and the merge needs the place of each row
that was passed over.

Rows are in the total order (sort key, place of the partition, the engine's own order), from which each page and each
cursor follows. When the number of shards changes, tickets change their places, but never their sort keys: so a cursor
also names the tickets of its page that have its own sort key, and in another layout the list goes on behind these.
While tickets are being moved, the partitions that they move into are read once more after all others: each ticket is
met at its old place or at its new one, or at both, and is shown once.

For those who may read internal notes a list has one more partition for each status: a ticket whose last change is a
note stands there by the moment of that note, and its row in the other index, which viewers read, is passed over.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext as _

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.models import ByIndex
from portal.dynamo.paging import Links, Pager, Place
from portal.errors import Invalid
from portal.schema import keys
from portal.schema.registry import Index
from tenants.tenancy.context import TenantContext
from tickets.desk.filters import EVERYTHING, KEY_VALUES, LATEST, Order, TicketFilter
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import RESOLVER_RAISED, STATUS_RAISED, STATUS_RESOLVER, STATUS_UPDATED, SummaryItem

log = logging.getLogger("pooldesk.isolation")

# Bounds around every stamp, for BETWEEN, which takes no empty string.
_BEFORE_ALL, _BEHIND_ALL = " ", "~"
# Tickets that a cursor names. Where more share one sort key, which takes an import, some are shown again after a change
# of the layout.
_TIES: Final = 150
_ROWS_PER_READ: Final = 9  # that the first 4 KB hold, which cost as much as one row; a row has some 370 to 450 bytes
CURSOR_VALUES: Final = 5
Where = tuple[Any, ...]  # the builder of a partition key, and what it takes beside the tenant
NO_EPOCH: Final = -1  # of a cursor whose page was not in the order of places


def binding(
    *, statuses: Sequence[Status], resolver: str | None, only: TicketFilter = EVERYTHING, order: str = ""
) -> tuple[object, ...]:
    """Bind a cursor to this list, beside the tenant: it means nothing in another list, or in another order of it."""
    words = tuple(s.value for s in statuses)
    return (_index(resolver).name, words, resolver, *only.params.items(), *([order] if order else []))


def _index(resolver: str | None) -> Index:
    return STATUS_UPDATED if resolver is None else STATUS_RESOLVER


class IndexRow(NamedTuple):
    sort: str  # value of the index's sort key
    place: int  # of its partition in the list
    number: int
    ticket: SummaryItem  # with the attributes that the index has

    @classmethod
    def of(cls, ticket: SummaryItem, partition: IndexPartition) -> IndexRow:
        values: dict[str, Any] = ticket.attribute_values  # attributes are descriptors, and a list reads hundreds
        return cls(values[partition.index.range], partition.place, int(values["number"]), ticket)


@dataclass(frozen=True)
class Position:
    """The row next to which a page begins. Rows are in the total order (sort key, place, the engine's own order).

    That holds in the layout of its `epoch`. In another one `ties` are the tickets with this sort key that were shown.
    """

    backwards: bool
    sort: str
    place: int
    number: int
    epoch: int
    ties: tuple[int, ...]


@dataclass
class Stretch:
    """A piece of the list without gaps, in reading order: its rows, those that match, whether no match follows."""

    rows: list[IndexRow] = field(default_factory=list)
    matches: list[SummaryItem] = field(default_factory=list)
    complete: bool = False


@dataclass
class IndexPartition:
    """One index partition: rows that wait to be merged, where its next Query starts, and whether it has more."""

    index: Index
    where: Where
    place: int
    between: tuple[str, str]
    start: dict[str, Any] | None
    shown: frozenset[int] = frozenset()  # tickets that are passed over where they have the sort key `shown_at`
    shown_at: str = ""
    rows: deque[IndexRow] = field(default_factory=deque)
    more: bool = True

    def has_shown(self, row: IndexRow) -> bool:
        """Tell whether a page before has shown this row."""
        return row.sort == self.shown_at and row.number in self.shown

    @property
    def is_dry(self) -> bool:
        """Tell whether it must be read on before its next row is shown. The last row of a Query with more behind it
        bounds what may come, and is left for the next page, which is then never empty."""
        return self.more and len(self.rows) < 2


class MergedList:
    """One list: which partitions, which sort key, and how its cursors are bound."""

    def __init__(
        self,
        tenant: TenantContext,
        statuses: Sequence[Status],
        resolver: str | None,
        only: TicketFilter,
        newer_than: str = "",
        ascending: bool = False,
    ) -> None:
        if resolver and not keys.USER_ID.match(resolver):
            raise Invalid(_("There is no such person."))
        only = only.in_zone(tenant.zone)
        self.tenant, self.only, self.layout = tenant, only, tenant.layout
        self.statuses = only.possible(tuple(statuses))
        self.index = _index(resolver)
        self.raised = (STATUS_RAISED if resolver is None else RESOLVER_RAISED) if tenant.is_agent else None
        self.prefix = "" if resolver is None else ticket_keys.resolver_prefix(resolver)
        # No stamp extends another, so this bound leaves out the moment itself.
        self.low = self.prefix + (f"{newer_than}{_BEHIND_ALL}" if newer_than else only.since or _BEFORE_ALL)
        self.ascending = ascending  # from the oldest change on
        order = "ascending" if ascending else ""
        self.pager = Pager(tenant.tenant_id, binding(statuses=statuses, resolver=resolver, only=only, order=order))

    def ends(self, rows: Sequence[IndexRow], position: Position | None) -> tuple[list[Any], list[Any]]:
        """Return the first and the last row of a page that began at `position` as their cursors hold them."""
        in_places = self._in_places(position)
        # Who reads on has seen the pages before as well; who turns back has not.
        before = position.ties if position and rows[-1].sort == position.sort else ()
        return self._signed(rows[0], rows, (), in_places), self._signed(rows[-1], rows, before, in_places)

    def _signed(self, row: IndexRow, rows: Sequence[IndexRow], before: Sequence[int], in_places: bool) -> list[Any]:
        """Return the position of a row without the prefix, which would name the person."""
        ties = [*before, *(other.number for other in rows if other.sort == row.sort)]
        epoch = self.layout.epoch if in_places else NO_EPOCH
        return [row.sort.removeprefix(self.prefix), row.place, row.number, epoch, ties[-_TIES:]]

    def position(self, place: Place) -> Position:
        sort, partition, number, epoch, ties = place.position
        return Position(place.backwards, self.prefix + sort, partition, number, epoch, tuple(ties))

    def _in_places(self, position: Position | None) -> bool:
        """Tell whether the order of places is the same here as on the page before."""
        return not self.layout.moving_to and (position is None or position.epoch == self.layout.epoch)

    def _towards_newer(self, position: Position | None) -> bool:
        """Tell whether a page beginning there is read from older changes to newer ones."""
        return self.ascending != (position is not None and position.backwards)

    def read(
        self, position: Position | None, size: int, rounds: Sequence[int], at_least: int = 0, fill: bool = False
    ) -> Stretch:
        """Read from the position on, up to `size` matches or as far as may be read.

        `rounds` says for each further round up to how many rows it may take all of them together; the first asks for
        `at_least` so many. They serve to find a first match, and with `fill` all.
        """
        descending = not self._towards_newer(position)
        partitions = self._read_first(position, max(size, at_least), descending)
        if self.layout.moving_to:
            rounds = ()  # what one partition is read on for would lie behind the others in time
        read = sum(len(p.rows) for p in partitions)
        most, further = rounds[-1] if rounds else 0, iter(rounds)
        found, met = Stretch(), set[tuple[str, int]]()
        while len(found.matches) < size and (heads := [p for p in partitions if p.rows]):
            first = (max if descending else min)(heads, key=lambda p: (p.rows[0].sort, -p.place))
            if first.is_dry:
                if found.matches and not fill:
                    break
                dry = [p for p in heads if p.is_dry]
                each = min(next(further, 0), most - read) // len(dry)
                if each < 1:
                    break
                self._fill(dry, each, descending)
                read += each * len(dry)
                continue
            row = first.rows.popleft()
            if (row.sort, row.number) in met:
                continue
            met.add((row.sort, row.number))
            found.rows.append(row)
            if item := self._match(first, row):
                found.matches.append(item)
        found.complete = not any(p.more for p in partitions) and not any(
            self._match(p, row) for p in partitions for row in p.rows if (row.sort, row.number) not in met
        )
        return found

    def _match(self, partition: IndexPartition, row: IndexRow) -> SummaryItem | None:
        # Attributes are descriptors, and each row is asked.
        if self.raised and partition.index is self.index and row.ticket.attribute_values.get("raised_at"):
            return None
        if partition.index is self.raised:  # for those who may read notes it was updated last by one
            row.ticket.updated_at = row.ticket.raised_at
        return row.ticket if self.only.matches(row.ticket) else None

    def _read_first(self, position: Position | None, size: int, descending: bool) -> list[IndexPartition]:
        """Read the beginning of each partition, and while tickets move once more of those that they move into."""
        shown = 0 if position is None or self._in_places(position) else len(position.ties)
        moving_to, wanted = self.layout.moving_to, size + 1 + shown
        # A share of it is enough where the tickets are spread evenly, which they are not while they are moved.
        each = wanted if moving_to else _share(wanted, self.layout.readers)
        partitions = self._partitions(position, self.layout.readers)
        self._fill(partitions, each, descending, raised=wanted)
        if moving_to:
            again = [p for p in self._partitions(position, moving_to) if p.index is self.index]
            self._fill(again, each, descending)
            partitions += again
        return partitions

    def _partitions(self, position: Position | None, shards: int) -> list[IndexPartition]:
        """Return those of the list, each with the bounds of what lies on the right side of the position."""
        partitions: list[IndexPartition] = []
        in_places, newer = self._in_places(position), self._towards_newer(position)
        for place, (index, where) in enumerate(self._places(shards)):
            start, shown = None, frozenset[int]()
            low, high = self.low, self.prefix + _BEHIND_ALL
            if position is not None and not in_places:
                shown = frozenset(position.ties)
                low, high = (position.sort, high) if newer else (low, position.sort)
            elif position is not None:
                # Equal sort keys are ordered by place: on one side of the position's they were shown already.
                if place == position.place:
                    start = self._start_key(position, index, where)
                elif not newer:
                    high = position.sort if place > position.place else _just_before(position.sort)
                else:
                    low = position.sort if place < position.place else position.sort + _BEHIND_ALL
            shown_at = position.sort if position and shown else ""
            partitions.append(IndexPartition(index, where, place, (low, high), start, shown, shown_at))
        return partitions

    def _places(self, shards: int) -> Iterator[tuple[Index, Where]]:
        """Yield the partitions in their order: index, and the builder of the key with what it takes."""
        words = [status.value.upper() for status in self.statuses]
        yield from ((self.index, (ticket_keys.tenant_status, w, shard)) for w in words for shard in range(shards))
        if self.raised:
            yield from ((self.raised, (ticket_keys.raised_status, word)) for word in words)

    def _fill(self, partitions: list[IndexPartition], each: int, descending: bool, raised: int = 0) -> None:
        """Read on in these partitions, in all at the same time; `raised` rows of those that are not divided."""
        limits = [raised if raised and p.index is self.raised else each for p in partitions]
        reads = [partial(self._query, p, n, descending) for p, n in zip(partitions, limits, strict=True)]
        if reads:
            fan_out(reads)

    def _query(self, partition: IndexPartition, limit: int, descending: bool) -> None:
        while True:
            found = self.tenant.repository.query(
                ByIndex(SummaryItem, partition.index),
                *partition.where,
                between=partition.between,
                descending=descending,
                limit=limit,
                start=partition.start,
            )
            cut = len(found.items) < limit  # by the megabyte that a Query returns at most
            if found.last_key and not cut and not self._is_ours(found.last_key["pk"]["S"]):
                # Behind a planted row nothing can be read on: the guard refuses its key. So the row must not be last.
                limit *= 2
                continue
            ours = (
                IndexRow.of(ticket, partition) for ticket in found.items if self._is_ours(ticket.attribute_values["pk"])
            )
            partition.rows += (row for row in ours if not partition.has_shown(row))
            partition.start, partition.more = found.last_key, found.last_key is not None
            if not partition.is_dry:  # else nearly all were planted: read on behind them
                return

    def _start_key(self, position: Position, index: Index, where: Where) -> dict[str, Any]:
        repository = self.tenant.repository
        return {
            index.hash: {"S": repository.key(*where)},
            index.range: {"S": position.sort},
            "pk": {"S": repository.key(ticket_keys.ticket, position.number)},
            "sk": {"S": ticket_keys.SUMMARY},
        }

    def _is_ours(self, pk: str) -> bool:
        """Tell whether the row's base key is this tenant's: a row that another tenant planted is dropped."""
        if ticket_keys.ticket_number(self.tenant.tenant_id, pk) is not None:
            return True
        log.error("An index row of tenant %s belongs to another tenant; it was dropped.", self.tenant.tenant_id)
        return False


def _share(size: int, shards: int) -> int:
    """Return how many rows of a page to ask of each shard: its share and up to two standard deviations of slack, and
    never the whole page. Within that as many as fill what is paid for, where one deviation is left."""
    if shards == 1:
        return size
    share = size / shards
    deviation = math.sqrt(share * (1 - 1 / shards))
    rows = math.ceil(share + 2 * deviation)
    if (whole := rows - rows % _ROWS_PER_READ) >= share + deviation:
        rows = whole
    elif rows < _ROWS_PER_READ <= size // 2:
        rows = _ROWS_PER_READ
    return max(2, min(size, rows))


def _just_before(sort: str) -> str:
    """Return the bound that leaves out `sort` and nothing below it: stamps have one width and all end in Z."""
    return sort[:-1]


# --- pages ---

# The rows of a page where nobody asks for another number; the queue asks for `bulk.limit`.
PAGE_SIZE: Final = 50
# Rows that a filtered page reads at most, and how many of them the rounds after the first ask for.
READ_LIMIT: Final = 500
_FIRST_ROUND: Final = 150
NEWS_LIMIT: Final = 20  # changed tickets that are counted for a page that is open


@dataclass(frozen=True)
class TicketPage:
    """A page of a list. The cursors are None at the ends.

    `looked_at` is the number of tickets between the page's ends, those left out by a filter included; `stopped` says
    that the page would be longer, had it been allowed to read on. `total` is how many tickets the whole list has, None
    where that is not known. `sorted_among` is how many of its tickets were sorted where it has more: `collected`.
    """

    rows: list[SummaryItem]
    next: str | None
    previous: str | None
    looked_at: int
    stopped: bool
    total: int | None = None
    sorted_among: int = 0


NO_PAGE: Final = TicketPage([], None, None, 0, False)


def page(
    tenant: TenantContext,
    *,
    status: Status | Sequence[Status],
    resolver: str | None = None,
    only: TicketFilter = EVERYTHING,
    after: str | None = None,
    size: int = PAGE_SIZE,
    at_once: bool = False,
    order: Order = LATEST,
) -> TicketPage:
    """Return tickets of one status or several, of one resolver where `resolver` is a user id or "" for nobody.

    `only` leaves out the others of these. `after` is a cursor of a former page of the same list. Raises Invalid for a
    bad cursor or resolver. One Query for each status and shard, at the same time; with `only` up to two rounds more, or
    with `at_once` none: such a page looks at _FIRST_ROUND rows, and may be short or empty with a link to go on.
    """
    statuses = (status,) if isinstance(status, Status) else tuple(status)
    if order.key is not None:
        return _sorted_page(tenant, statuses, resolver, only, after=after, size=size, order=order)
    listing = MergedList(tenant, statuses, resolver, only, ascending=order.is_reversed)
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
    ordered = matches if order.is_reversed else reversed(matches)
    newest = {item.attribute_values["number"]: item for item in ordered}
    shown = [item for item in matches if newest[item.attribute_values["number"]] is item]
    is_whole = place is None and stretch.complete
    return TicketPage(
        rows=shown,
        next=links.next,
        previous=links.previous,
        looked_at=len(rows),
        stopped=(bool(only) or not matches) and not stretch.complete and len(matches) < size,
        total=len(shown) if is_whole else None,
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
        raise Invalid(_("This page is too old to say what has changed. Reload it."))
    merged = MergedList(tenant, status, resolver, only, newer_than=seen)
    found = merged.read(None, NEWS_LIMIT, (_FIRST_ROUND, READ_LIMIT), fill=True).matches
    return len({row.number for row in found})  # one that changed its status may stand in two partitions for a moment


# --- in an order that no index has ---

COLLECTED: Final = READ_LIMIT


def _sorted_page(
    tenant: TenantContext,
    statuses: tuple[Status, ...],
    resolver: str | None,
    only: TicketFilter,
    *,
    after: str | None,
    size: int,
    order: Order,
) -> TicketPage:
    rows, whole, looked_at = collected(tenant, statuses=statuses, resolver=resolver, only=only, order=order)
    pager = Pager(tenant.tenant_id, binding(statuses=statuses, resolver=resolver, only=only, order=order.word))
    found = _cut(rows, pager, order, after, size)
    return replace(found, total=len(rows) if whole else None, sorted_among=0 if whole else looked_at)


def collected(
    tenant: TenantContext,
    *,
    statuses: tuple[Status, ...],
    resolver: str | None,
    only: TicketFilter = EVERYTHING,
    order: Order,
) -> tuple[list[SummaryItem], bool, int]:
    """Return the rows of a list in an order that no index has, whether they are all, and how many were read.

    The list is read by its keys, up to COLLECTED rows of it, and sorted here: each ticket is in its place where the
    list has no more than that, and the page says so where it has. That costs what the list costs, at most 25 units for
    each status, in one round trip with one shard.
    """
    merged = MergedList(tenant, statuses, resolver, only)
    # The further round is for shards that had more than their share.
    stretch = merged.read(None, COLLECTED, (2 * COLLECTED,), fill=True)
    newest = {int(row.number): row for row in reversed(stretch.matches)}  # see `page`
    return sorted(newest.values(), key=order.key_of, reverse=order.is_reversed), stretch.complete, len(stretch.rows)


def _cut(rows: list[SummaryItem], pager: Pager, order: Order, after: str | None, size: int) -> TicketPage:
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
