"""Lists of tickets: index partitions, one per status and shard, read at the same time and merged, newest change first.

What a key serves, status and resolver, costs one round trip: each shard is asked for its share of a page and some
slack. Where one has more of the newest rows than was fetched from it, the page ends early with a link to go on: such a
page may be short, but it never costs a second round trip. Several statuses are not spread as evenly as shards are,
so each of them is asked for a whole page: "unresolved" reads twice as many rows as "open", in the same round trip.

Priority, tag and days are served by no key: they are asked of the rows that were read, and where a page is not full,
further rounds read on, up to READ_LIMIT rows. That is 500: ten pages, some 200 KB and 25 read units, in at most
three rounds, so that even a filter that nothing matches answers in a fraction of a second; the page then says how
far it looked and links to the rest. The days bound the read itself wherever they can (`Filter.since`).

No FilterExpression: it takes the same capacity, for DynamoDB charges what it reads and not what it returns. It would
save bytes on the wire, but the merge needs the place of each row that was passed over, and the meter, which prices
what comes back, would no longer see what a page costs.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.pager import Links, Pager, Place
from portal.errors import Invalid
from portal.schema import keys
from portal.schema.tables import Index
from tenants.tenancy.context import TenantContext
from tickets.desk.filters import EVERYTHING, Filter
from tickets.desk.rows import TicketRow
from tickets.ticket import keys as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.tables import STATUS_RESOLVER, STATUS_UPDATED, TICKETS

log = logging.getLogger("pooldesk.isolation")

# As many rows as one bulk change can take; see bulk.LIMIT.
PAGE_SIZE: Final = 50
# Rows that a filtered page reads at most, and how many of them the rounds after the first ask for.
READ_LIMIT: Final = 500
_ROUNDS: Final = (150, READ_LIMIT)
# Bounds around every stamp, for BETWEEN, which takes no empty string.
_BEFORE_ALL, _BEHIND_ALL = " ", "~"


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
    only: Filter = EVERYTHING,
    after: str | None = None,
    size: int = PAGE_SIZE,
) -> TicketPage:
    """Tickets of one status or several, of one resolver where `resolver` is a user id or "" for nobody.

    `only` leaves out the others of these. `after` is a cursor of a former page of the same list. Raises Invalid for a
    bad cursor or resolver. One Query for each status and shard, at the same time; with `only` up to two rounds more.
    """
    statuses = (status,) if isinstance(status, Status) else tuple(status)
    listing = _Listing(tenant, statuses, resolver, only)
    place = listing.pager.place(after, size=3) if after else None
    position = listing.position(place) if place else None
    backwards = position is not None and position.backwards
    stretch = listing.read(position, size)
    rows, matches = (stretch.rows[::-1], stretch.matches[::-1]) if backwards else (stretch.rows, stretch.matches)
    begin, end = (listing.signed(row) for row in (stretch.rows[0], stretch.rows[-1])) if rows else ((), ())
    links = listing.pager.links(place, begin=begin, end=end, more=not stretch.complete) if rows else Links()
    # An index lags behind by a moment, in which a ticket that changed may stand in it twice: the newer row is right.
    newest = {item.number: item for item in reversed(matches)}
    return TicketPage(
        rows=[item for item in matches if newest[item.number] is item],
        next=links.next,
        previous=links.previous,
        looked_at=len(rows),
        stopped=bool(only) and not stretch.complete and len(matches) < size,
    )


def binding(
    tenant: TenantContext, *, statuses: Sequence[Status], resolver: str | None, only: Filter = EVERYTHING
) -> tuple[object, ...]:
    """What a cursor of this list is bound to, beside the tenant: it means nothing in another list or shard layout."""
    words = tuple(s.value for s in statuses)
    return (_index(resolver).name, words, resolver, *only.params.items(), tenant.shards, tenant.shard_epoch)


def _index(resolver: str | None) -> Index:
    return STATUS_UPDATED if resolver is None else STATUS_RESOLVER


@dataclass(frozen=True, slots=True)
class _Row:
    sort: str  # value of the index's sort key
    place: int  # of its partition in the list
    raw: dict[str, Any]


@dataclass(frozen=True)
class _Position:
    """The row next to which a page begins. Rows are in the total order (sort key, place, the engine's own order)."""

    backwards: bool
    sort: str
    place: int
    number: int


@dataclass
class _Stretch:
    """A piece of the list without gaps, in reading order: its rows, those that match, whether no match follows."""

    rows: list[_Row] = field(default_factory=list)
    matches: list[TicketRow] = field(default_factory=list)
    complete: bool = False


@dataclass
class _Partition:
    """One index partition: rows that wait to be merged, where its next Query starts, and whether it has more."""

    status: Status
    shard: int
    place: int
    between: tuple[str, str]
    start: dict[str, Any] | None
    rows: deque[_Row] = field(default_factory=deque)
    more: bool = True

    @property
    def is_dry(self) -> bool:
        """Whether it must be read on before its next row is shown. The last row of a Query with more behind it bounds
        what may come, and is left for the next page, which is then never empty."""
        return self.more and len(self.rows) < 2


class _Listing:
    """One list: which partitions, which sort key, and how its cursors are bound."""

    def __init__(self, tenant: TenantContext, statuses: Sequence[Status], resolver: str | None, only: Filter) -> None:
        if resolver and not keys.USER_ID.match(resolver):
            raise Invalid("There is no such person.")
        self.tenant, self.only = tenant, only
        self.statuses = only.possible(tuple(statuses))
        self.index = _index(resolver)
        self.prefix = "" if resolver is None else ticket_keys.resolver_prefix(resolver)
        bound = binding(tenant, statuses=statuses, resolver=resolver, only=only)
        self.pager = Pager(tenant.tenant_id, bound)

    def signed(self, row: _Row) -> list[Any]:
        """The position of a row as its cursor holds it: without the prefix, which would name the person."""
        return [row.sort.removeprefix(self.prefix), row.place, int(row.raw["number"]["N"])]

    def position(self, place: Place) -> _Position:
        sort, partition, number = place.position
        return _Position(place.backwards, self.prefix + sort, partition, number)

    def read(self, position: _Position | None, size: int) -> _Stretch:
        """From the position on, up to `size` matches or as far as may be read."""
        partitions = self._partitions(position)
        descending = position is None or not position.backwards
        self._fill(partitions, _share(size + 1, self.tenant.shards), descending)
        read = sum(len(p.rows) for p in partitions)
        rounds = iter(_ROUNDS if self.only else ())
        found = _Stretch()
        while len(found.matches) < size and (heads := [p for p in partitions if p.rows]):
            first = (max if descending else min)(heads, key=lambda p: (p.rows[0].sort, -p.place))
            if first.is_dry:
                dry = [p for p in heads if p.is_dry]
                each = min(next(rounds, 0), READ_LIMIT - read) // len(dry)
                if each < 1:
                    break
                self._fill(dry, each, descending)
                read += each * len(dry)
                continue
            row = first.rows.popleft()
            found.rows.append(row)
            item = TicketRow.from_raw(row.raw)
            if self.only.matches(item):
                found.matches.append(item)
        found.complete = not any(p.more for p in partitions) and not any(
            self.only.matches(TicketRow.from_raw(row.raw)) for p in partitions for row in p.rows
        )
        return found

    def _partitions(self, position: _Position | None) -> list[_Partition]:
        """Those of the list, each with the bounds of what lies on the right side of the position."""
        partitions: list[_Partition] = []
        for status in self.statuses:
            for shard in range(self.tenant.shards):
                place = len(partitions)
                start = None
                low, high = self.prefix + (self.only.since or _BEFORE_ALL), self.prefix + _BEHIND_ALL
                if position is not None:
                    # Equal sort keys are ordered by place: on one side of the position's they were shown already.
                    if place == position.place:
                        start = self._start_key(position, status, shard)
                    elif not position.backwards:
                        high = position.sort if place > position.place else _just_before(position.sort)
                    else:
                        low = position.sort if place < position.place else position.sort + _BEHIND_ALL
                partitions.append(_Partition(status, shard, place, (low, high), start))
        return partitions

    def _fill(self, partitions: list[_Partition], each: int, descending: bool) -> None:
        """Read on in these partitions, in all at the same time."""
        if partitions:
            fan_out([lambda p=p: self._query(p, each, descending) for p in partitions])  # type: ignore[misc]

    def _query(self, partition: _Partition, limit: int, descending: bool) -> None:
        while True:
            found = self.tenant.repository.query(
                TICKETS,
                ticket_keys.tenant_status,
                partition.status.value.upper(),
                partition.shard,
                index=self.index,
                between=partition.between,
                descending=descending,
                limit=limit,
                start=partition.start,
            )
            ours = (i for i in found.items if self._is_ours(i))
            partition.rows += (_Row(i[self.index.range]["S"], partition.place, i) for i in ours)
            partition.start, partition.more = found.last_key, found.last_key is not None
            if not partition.is_dry:  # else nearly all were planted: read on behind them
                return

    def _start_key(self, position: _Position, status: Status, shard: int) -> dict[str, Any]:
        repository = self.tenant.repository
        return {
            "tenant_status": {"S": repository.key(ticket_keys.tenant_status, status.value.upper(), shard)},
            self.index.range: {"S": position.sort},
            "pk": {"S": repository.key(ticket_keys.ticket, position.number)},
            "sk": {"S": ticket_keys.SUMMARY},
        }

    def _is_ours(self, raw: dict[str, Any]) -> bool:
        """Whether the row's base key is this tenant's: a row that another tenant planted in the index is dropped."""
        if ticket_keys.ticket_number(self.tenant.tenant_id, raw["pk"]["S"]) is not None:
            return True
        log.error("An index row of tenant %s belongs to another tenant; it was dropped.", self.tenant.tenant_id)
        return False


def _share(size: int, shards: int) -> int:
    """Each shard's share of a page and two standard deviations of slack, never the whole page."""
    if shards == 1:
        return size
    share = size / shards
    slack = 2 * math.sqrt(share * (1 - 1 / shards))
    return max(2, min(size, math.ceil(share + slack)))


def _just_before(sort: str) -> str:
    """The bound that leaves out `sort` and nothing below it: stamps have one width and all end in Z."""
    return sort[:-1]
