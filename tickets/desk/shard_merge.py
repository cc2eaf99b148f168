"""Merge the index partitions of one list: read them at the same time, show their rows in one order.

A list is spread over one partition for each of its statuses and shards. Rows are in the total order (sort key, place of
the partition, the engine's own order), from which each page and each cursor follows.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from portal.dynamo.client import fan_out
from portal.dynamo.pager import Pager, Place
from portal.errors import Invalid
from portal.schema import keys
from portal.schema.tables import Index
from tenants.tenancy.context import TenantContext
from tickets.desk.filters import EVERYTHING, TicketFilter
from tickets.desk.ticket_rows import TicketRow
from tickets.ticket import keys as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.tables import STATUS_RESOLVER, STATUS_UPDATED, TICKETS

log = logging.getLogger("pooldesk.isolation")

# Bounds around every stamp, for BETWEEN, which takes no empty string.
_BEFORE_ALL, _BEHIND_ALL = " ", "~"


def binding(
    tenant: TenantContext, *, statuses: Sequence[Status], resolver: str | None, only: TicketFilter = EVERYTHING
) -> tuple[object, ...]:
    """Bind a cursor to this list, beside the tenant: it means nothing in another list or shard layout."""
    words = tuple(s.value for s in statuses)
    return (_index(resolver).name, words, resolver, *only.params.items(), tenant.shards, tenant.shard_epoch)


def _index(resolver: str | None) -> Index:
    return STATUS_UPDATED if resolver is None else STATUS_RESOLVER


@dataclass(frozen=True, slots=True)
class IndexRow:
    sort: str  # value of the index's sort key
    place: int  # of its partition in the list
    raw: dict[str, Any]


@dataclass(frozen=True)
class Position:
    """The row next to which a page begins. Rows are in the total order (sort key, place, the engine's own order)."""

    backwards: bool
    sort: str
    place: int
    number: int


@dataclass
class Stretch:
    """A piece of the list without gaps, in reading order: its rows, those that match, whether no match follows."""

    rows: list[IndexRow] = field(default_factory=list)
    matches: list[TicketRow] = field(default_factory=list)
    complete: bool = False


@dataclass
class IndexPartition:
    """One index partition: rows that wait to be merged, where its next Query starts, and whether it has more."""

    status: Status
    shard: int
    place: int
    between: tuple[str, str]
    start: dict[str, Any] | None
    rows: deque[IndexRow] = field(default_factory=deque)
    more: bool = True

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
    ) -> None:
        if resolver and not keys.USER_ID.match(resolver):
            raise Invalid("There is no such person.")
        self.tenant, self.only = tenant, only
        self.statuses = only.possible(tuple(statuses))
        self.index = _index(resolver)
        self.prefix = "" if resolver is None else ticket_keys.resolver_prefix(resolver)
        # No stamp extends another, so this bound leaves out the moment itself.
        self.low = self.prefix + (f"{newer_than}{_BEHIND_ALL}" if newer_than else only.since or _BEFORE_ALL)
        bound = binding(tenant, statuses=statuses, resolver=resolver, only=only)
        self.pager = Pager(tenant.tenant_id, bound)

    def signed(self, row: IndexRow) -> list[Any]:
        """The position of a row as its cursor holds it: without the prefix, which would name the person."""
        return [row.sort.removeprefix(self.prefix), row.place, int(row.raw["number"]["N"])]

    def position(self, place: Place) -> Position:
        sort, partition, number = place.position
        return Position(place.backwards, self.prefix + sort, partition, number)

    def read(self, position: Position | None, size: int, rounds: Sequence[int]) -> Stretch:
        """From the position on, up to `size` matches or as far as may be read.

        `rounds` says for each further round up to how many rows it may take all of them together.
        """
        partitions = self._partitions(position)
        descending = position is None or not position.backwards
        self._fill(partitions, _share(size + 1, self.tenant.shards), descending)
        read = sum(len(p.rows) for p in partitions)
        most, further = rounds[-1] if rounds else 0, iter(rounds)
        found = Stretch()
        while len(found.matches) < size and (heads := [p for p in partitions if p.rows]):
            first = (max if descending else min)(heads, key=lambda p: (p.rows[0].sort, -p.place))
            if first.is_dry:
                dry = [p for p in heads if p.is_dry]
                each = min(next(further, 0), most - read) // len(dry)
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

    def _partitions(self, position: Position | None) -> list[IndexPartition]:
        """Return those of the list, each with the bounds of what lies on the right side of the position."""
        partitions: list[IndexPartition] = []
        for status in self.statuses:
            for shard in range(self.tenant.shards):
                place = len(partitions)
                start = None
                low, high = self.low, self.prefix + _BEHIND_ALL
                if position is not None:
                    # Equal sort keys are ordered by place: on one side of the position's they were shown already.
                    if place == position.place:
                        start = self._start_key(position, status, shard)
                    elif not position.backwards:
                        high = position.sort if place > position.place else _just_before(position.sort)
                    else:
                        low = position.sort if place < position.place else position.sort + _BEHIND_ALL
                partitions.append(IndexPartition(status, shard, place, (low, high), start))
        return partitions

    def _fill(self, partitions: list[IndexPartition], each: int, descending: bool) -> None:
        """Read on in these partitions, in all at the same time."""
        if partitions:
            fan_out([lambda p=p: self._query(p, each, descending) for p in partitions])  # type: ignore[misc]

    def _query(self, partition: IndexPartition, limit: int, descending: bool) -> None:
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
            cut = len(found.items) < limit  # by the megabyte that a Query returns at most
            if found.last_key and not cut and not self._is_ours(found.last_key):
                # Behind a planted row nothing can be read on: the guard refuses its key. So the row must not be last.
                limit *= 2
                continue
            ours = (i for i in found.items if self._is_ours(i))
            partition.rows += (IndexRow(i[self.index.range]["S"], partition.place, i) for i in ours)
            partition.start, partition.more = found.last_key, found.last_key is not None
            if not partition.is_dry:  # else nearly all were planted: read on behind them
                return

    def _start_key(self, position: Position, status: Status, shard: int) -> dict[str, Any]:
        repository = self.tenant.repository
        return {
            "tenant_status": {"S": repository.key(ticket_keys.tenant_status, status.value.upper(), shard)},
            self.index.range: {"S": position.sort},
            "pk": {"S": repository.key(ticket_keys.ticket, position.number)},
            "sk": {"S": ticket_keys.SUMMARY},
        }

    def _is_ours(self, raw: dict[str, Any]) -> bool:
        """Tell whether the row's base key is this tenant's: a row that another tenant planted is dropped."""
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
