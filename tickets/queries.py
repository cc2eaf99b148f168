"""Lists and single tickets, each at the price of its floor: one round trip, whatever the tenant's size.

A list is the merge of S index partitions (one per status shard), each read once and at the same time:
ceil(page / S) rows and some slack. Where one shard has more of the newest rows than was fetched from it, the
page ends early with a link to go on: a page may be short, but it never costs a second round trip.
"""

from __future__ import annotations

import heapq
import logging
import math
from dataclasses import dataclass
from typing import Any

from portal.dynamo import cursor, keys, tables
from portal.dynamo.client import fan_out
from portal.dynamo.repository import Page
from portal.errors import Invalid, NotFound
from tenants.context import TenantContext
from tickets.fields import Status
from tickets.items import ActivityItem, DetailItem, SummaryItem

log = logging.getLogger("pooldesk.isolation")

# As many rows as one bulk change can take; see bulk.LIMIT.
PAGE_SIZE = 50
ACTIVITY_PAGE = 50
# Bounds around every stamp, for BETWEEN, which takes no empty string.
_BEFORE_ALL, _BEHIND_ALL = " ", "~"


@dataclass(frozen=True, slots=True)
class Listed:
    """A ticket as an index shows it: what is projected there, under the names that the summary has.

    Read from the raw row, without PynamoDB's deserialisation, which is most of a list page's time in Python.
    """

    pk: str
    tenant_status: str
    number: int
    title: str
    status: str
    priority: str
    tags: list[str]
    resolver: str
    resolver_name: str
    requester_name: str
    created_at: str
    updated_at: str
    comment_count: int
    version: int

    @classmethod
    def of(cls, raw: dict[str, Any]) -> Listed:
        return cls(
            pk=raw["pk"]["S"],
            tenant_status=raw["tenant_status"]["S"],
            number=int(raw["number"]["N"]),
            title=raw["title"]["S"],
            status=raw["status"]["S"],
            priority=raw["priority"]["S"],
            tags=[tag["S"] for tag in raw["tags"]["L"]],
            resolver=raw["resolver"]["S"],
            resolver_name=raw["resolver_name"]["S"],
            requester_name=raw["requester_name"]["S"],
            created_at=raw["created_at"]["S"],
            updated_at=raw["updated_at"]["S"],
            comment_count=int(raw["comment_count"]["N"]),
            version=int(raw["version"]["N"]),
        )


@dataclass(frozen=True)
class TicketPage:
    """A page of a list, newest change first. The cursors are None at the ends."""

    rows: list[Listed]
    next: str | None
    previous: str | None


@dataclass(frozen=True)
class Ticket:
    """A ticket as its page shows it. `activity` is oldest first; `earlier` is a cursor to what came before it."""

    summary: SummaryItem
    description: str
    activity: list[ActivityItem]
    earlier: str | None


@dataclass(frozen=True)
class _Row:
    sort: str  # value of the index's sort key
    shard: int
    raw: dict[str, Any]


def page(
    tenant: TenantContext,
    *,
    status: Status,
    resolver: str | None = None,
    after: str | None = None,
    size: int = PAGE_SIZE,
) -> TicketPage:
    """Tickets of one status, of one resolver where `resolver` is a user id or "" for nobody.

    `after` is a cursor of a former page. Raises Invalid for a bad cursor. One round trip, S Queries.
    """
    listing = _Listing(tenant, status, resolver)
    position = listing.load(after) if after else None
    backwards = position is not None and position.backwards
    rows, complete = listing.fetch(position, size)
    if backwards:
        rows.reverse()
    has_next = bool(rows) if backwards else not complete
    has_previous = not complete if backwards else position is not None and bool(rows)
    return TicketPage(
        rows=[Listed.of(row.raw) for row in rows],
        next=listing.dump(rows[-1], backwards=False) if has_next else None,
        previous=listing.dump(rows[0], backwards=True) if has_previous else None,
    )


@dataclass(frozen=True)
class _Position:
    """The row next to which a page begins. Rows are in the total order (sort key, shard, the engine's own order)."""

    backwards: bool
    sort: str
    shard: int
    number: int


class _Listing:
    """One list: which partitions, which sort key, and how its cursors are bound."""

    def __init__(self, tenant: TenantContext, status: Status, resolver: str | None) -> None:
        if resolver and not keys.USER_ID.match(resolver):
            raise Invalid("There is no such person.")
        self.tenant, self.status = tenant, status
        self.index = tables.STATUS_UPDATED if resolver is None else tables.STATUS_RESOLVER
        self.prefix = "" if resolver is None else keys.resolver_prefix(resolver)
        self.bound = (self.index.name, status.value, resolver, tenant.shards, tenant.shard_epoch)

    def dump(self, row: _Row, *, backwards: bool) -> str:
        position = [int(backwards), row.sort.removeprefix(self.prefix), row.shard, int(row.raw["number"]["N"])]
        return cursor.dump(position, tenant_id=self.tenant.tenant_id, query=self.bound)

    def load(self, text: str) -> _Position:
        backwards, sort, shard, number = cursor.load(text, tenant_id=self.tenant.tenant_id, query=self.bound)
        return _Position(bool(backwards), self.prefix + sort, shard, number)

    def fetch(self, position: _Position | None, size: int) -> tuple[list[_Row], bool]:
        """Up to `size` rows from the position on, in reading direction, and whether these were the last ones."""
        shards = self.tenant.shards
        each = size + 1 if shards == 1 else _rows_per_shard(size + 1, shards)
        pages = fan_out([lambda s=s: self._query(s, position, each) for s in range(shards)])  # type: ignore[misc]
        backwards = position is not None and position.backwards
        merged = heapq.merge(
            *(rows for rows, _ in pages), key=lambda row: (row.sort, -row.shard), reverse=not backwards
        )
        # Behind the last row of a shard that has more, its unfetched rows may come before any other shard's next.
        # That row itself is left for the next page, which is then never empty.
        ends = [rows[-1] for rows, more in pages if more]
        rows: list[_Row] = []
        for row in merged:
            if len(rows) == size or any(row is end for end in ends):
                return rows, False
            rows.append(row)
        return rows, True

    def _query(self, shard: int, position: _Position | None, limit: int) -> tuple[list[_Row], bool]:
        """A shard's rows from the position on, at least two of them if it has more, and whether it has more."""
        start = None
        descending = position is None or not position.backwards
        low, high = self.prefix + _BEFORE_ALL, self.prefix + _BEHIND_ALL
        if position is not None:
            # Equal sort keys are ordered by shard: on one side of the position's shard they were shown already.
            if shard == position.shard:
                start = self._start_key(position)
            elif descending:
                high = position.sort if shard > position.shard else _just_before(position.sort)
            else:
                low = position.sort if shard < position.shard else position.sort + _BEHIND_ALL
        rows: list[_Row] = []
        while True:
            found = self.tenant.repository.query(
                tables.TICKETS,
                keys.tenant_status,
                self.status.value.upper(),
                shard,
                index=self.index,
                between=(low, high),
                descending=descending,
                limit=limit,
                start=start,
            )
            rows += [_Row(i[self.index.range]["S"], shard, i) for i in found.items if self._is_ours(i)]
            start = found.last_key
            if start is None or len(rows) > 1:  # else nearly all were planted: read on behind them
                return rows, start is not None

    def _start_key(self, position: _Position) -> dict[str, Any]:
        repository = self.tenant.repository
        partition = repository.key(keys.tenant_status, self.status.value.upper(), position.shard)
        return {
            "tenant_status": {"S": partition},
            self.index.range: {"S": position.sort},
            "pk": {"S": repository.key(keys.ticket, position.number)},
            "sk": {"S": keys.SUMMARY},
        }

    def _is_ours(self, raw: dict[str, Any]) -> bool:
        """Whether the row's base key is this tenant's: a row that another tenant planted in the index is dropped."""
        if keys.ticket_number(self.tenant.tenant_id, raw["pk"]["S"]) is not None:
            return True
        log.error("An index row of tenant %s belongs to another tenant; it was dropped.", self.tenant.tenant_id)
        return False


def _rows_per_shard(size: int, shards: int) -> int:
    """Each shard's share of a page and two standard deviations of slack, never the whole page."""
    share = size / shards
    slack = 2 * math.sqrt(share * (1 - 1 / shards))
    return max(2, min(size, math.ceil(share + slack)))


def _just_before(sort: str) -> str:
    """The bound that leaves out `sort` and nothing below it: stamps have one width and all end in Z."""
    return sort[:-1]


def ticket(tenant: TenantContext, number: int, *, before: str | None = None) -> Ticket:
    """A ticket with its latest activity: one Query. Raises NotFound, Invalid.

    With a cursor: with what came before it; summary and description then come by a Query of their own, sent at
    the same time. Internal notes are left out for viewers.
    """
    more_than_a_page = ACTIVITY_PAGE + 1  # one more, to know whether there is something earlier
    if before is None:
        found = _collection(tenant, number, more_than_a_page + 2)  # the summary and the detail come first
        heads = [i for i in found.items if not _is_activity(i)]
        rows = [i for i in found.items if _is_activity(i)]
    else:
        (sort,) = cursor.load(before, tenant_id=tenant.tenant_id, query=("activity", number)) or [""]
        head, found = fan_out(
            [
                lambda: _collection(tenant, number, 2),
                lambda: _collection(tenant, number, more_than_a_page, before=sort),
            ]
        )
        heads, rows = head.items, found.items
    by_sort_key = {i["sk"]["S"]: i for i in heads}
    if keys.SUMMARY not in by_sort_key:
        raise NotFound(f"There is no ticket {number}.")
    detail = by_sort_key.get(keys.DETAIL)
    # A Query also ends after 1 MB, which long comments reach before the page is full.
    more = len(rows) > ACTIVITY_PAGE or found.last_key is not None
    rows = rows[:ACTIVITY_PAGE]
    activity = [ActivityItem.from_raw_data(i) for i in reversed(rows)]
    earlier = [rows[-1]["sk"]["S"]] if more and rows else None
    return Ticket(
        summary=SummaryItem.from_raw_data(by_sort_key[keys.SUMMARY]),
        description=DetailItem.from_raw_data(detail).description if detail else "",
        activity=[a for a in activity if a.kind != "note" or tenant.is_agent],
        earlier=cursor.dump(earlier, tenant_id=tenant.tenant_id, query=("activity", number)) if earlier else None,
    )


def last_change(tenant: TenantContext, number: int) -> ActivityItem | None:
    """The newest entry of a ticket's timeline that changed a field: one Query, for the conflict page."""
    rows = [ActivityItem.from_raw_data(i) for i in _collection(tenant, number, 12).items if _is_activity(i)]
    return next((a for a in rows if a.kind == "event"), None)


def _collection(tenant: TenantContext, number: int, limit: int, *, before: str | None = None) -> Page:
    """A ticket's item collection, newest first. Consistent reading would double the price for what nobody misses."""
    pk = tenant.repository.key(keys.ticket, number)
    start = {"pk": {"S": pk}, "sk": {"S": before}} if before is not None else None
    return tenant.repository.query(tables.TICKETS, keys.ticket, number, descending=True, limit=limit, start=start)


def _is_activity(raw: dict[str, Any]) -> bool:
    return str(raw["sk"]["S"]).startswith(keys.ACTIVITY_PREFIX)
