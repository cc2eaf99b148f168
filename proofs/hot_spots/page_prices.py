"""Measure what a page of the queue costs when a tenant's tickets lie in 1, 2, 4, 8 and 16 partitions.

Tickets of a tenant that exists for this alone are written to the running engine, once for each number of shards, and
the whole list is read page after page by the rules that serve the queue. The meter counts round trips and read units.

The items are summaries but for their sort key, so that they stand in the indexes, and stream workers pass them over.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import mean
from typing import Final

from portal import clock
from portal.dynamo import meter
from proofs import cleanup
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tickets.desk import lists, summaries
from tickets.ticket import keys
from tickets.ticket.fields import Priority, Status
from tickets.ticket.items import SummaryItem

SHARDS: Final = (1, 2, 4, 8, 16)
TICKETS: Final = 500
_SORT_KEY: Final = "MEASURE"  # as long as that of a summary
_TITLE_CHARACTERS: Final = (20, 90)
_ASSIGNED: Final = 0.6  # of the tickets
_COMMENTED: Final = 0.5
_SEED: Final = 7


@dataclass(frozen=True)
class PagePrice:
    """Say what the pages of the list cost. `trips` are sequential ones, on average and at most."""

    shards: int
    pages: int
    rows_per_page: float
    row_bytes: int
    read_units: float
    most_read_units: float
    trips: float
    most_trips: int


def measured(*, tickets: int = TICKETS, done: Callable[[], object] = lambda: None) -> list[PagePrice]:
    """Return the prices for each number of shards. What was written is deleted again, whatever happens.

    Raises Forbidden without DEBUG or with a real DynamoDB, and Unavailable.
    """
    cleanup.refuse_in_production()
    tenant_id, found = uuid.uuid4().hex, []
    try:
        for shards in SHARDS:
            _write(_desk(tenant_id, shards), tickets)
            found.append(_price(tenant_id, shards))
            done()
    finally:
        cleanup.delete_tickets(tenant_id, range(1, tickets + 1))
    return found


def _desk(tenant_id: str, shards: int) -> TenantContext:
    return TenantContext(tenant_id, "Measured", "measured", Role.AGENT, "a" * 32, "Alex Example", shards=shards)


def _write(desk: TenantContext, tickets: int) -> None:
    rng = random.Random(_SEED)  # noqa: S311  # it has to be repeatable
    items = []
    for number in range(1, tickets + 1):
        at = clock.stamp(offset=rng.randrange(10**9))
        resolver = desk.user_id if rng.random() < _ASSIGNED else ""
        values = summaries.derived(desk, number, status=Status.OPEN.value, resolver=resolver, updated_at=at)
        items.append(
            SummaryItem(
                desk.repository.key(keys.ticket, number),
                _SORT_KEY,
                number=number,
                title="x" * rng.randint(*_TITLE_CHARACTERS),
                priority=Priority.NORMAL.value,
                tags=["billing", "printer"][: rng.randrange(3)],
                requester=desk.user_id,
                requester_name=desk.user_name,
                created_at=at,
                resolver_name=desk.user_name if resolver else "",
                commented_at=at if rng.random() < _COMMENTED else None,
                **values,
            )
        )
    desk.repository.put_all(items)


def _price(tenant_id: str, shards: int) -> PagePrice:
    bills: list[meter.Meter] = []
    rows: list[int] = []
    after: str | None = None
    while after is not None or not bills:
        with meter.measure() as bill:
            # A context of each request's own, whose layout is as it was made.
            page = lists.page(_desk(tenant_id, shards), status=Status.OPEN, after=after)
        bills.append(bill)
        rows.append(len(page.rows))
        after = page.next
    # The last page is short, and its partitions are at their ends.
    full = bills[:-1] or bills
    read = [call for bill in full for call in bill.calls]
    return PagePrice(
        shards=shards,
        pages=len(full),
        rows_per_page=round(mean(rows[: len(full)]), 1),
        row_bytes=round(sum(call.size for call in read) / sum(call.items for call in read)),
        read_units=round(mean(bill.read_units for bill in full), 2),
        most_read_units=max(bill.read_units for bill in full),
        trips=round(mean(bill.trips for bill in full), 2),
        most_trips=max(bill.trips for bill in full),
    )


def ratio(prices: Iterable[PagePrice], shards: int) -> float:
    """Return what a row costs in so many shards, 1 being its price in one."""
    each = {price.shards: price.read_units / price.rows_per_page for price in prices}
    return round(each[shards] / each[1], 2)
