"""Fill a desk in bulk with tickets that nobody works on. Most are closed, as in a desk that has years behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import timedelta
from functools import partial
from typing import Final

from portal import clock
from portal.dynamo.client import Item
from tenants.tenancy.context import TenantContext
from tickets.desk.history import History, changed, collection, opened
from tickets.ticket import keys
from tickets.ticket.fields import Status
from tickets.ticket.items import CounterItem

OPEN: Final = 200  # the latest, at most
_BLOCK: Final = 100  # tickets
_PARALLEL: Final = 4  # blocks on their way at the same time


def fill(tenant: TenantContext, tickets: int, advance: Callable[[int], object]) -> None:
    """Write so many tickets of a desk that has none. `advance` gets numbers of tickets."""
    blocks = [range(first, min(first + _BLOCK, tickets + 1)) for first in range(1, tickets + 1, _BLOCK)]

    def write(numbers: range) -> int:
        items = [item for number in numbers for item in _items(tenant, number, tickets)]
        tenant.repository.put_all(items)
        return len(numbers)

    with ThreadPoolExecutor(_PARALLEL) as pool:
        for done in [pool.submit(copy_context().run, partial(write, block)) for block in blocks]:
            advance(done.result())
    tenant.repository.put_all([CounterItem(tenant.repository.key(keys.counter), keys.COUNTER_TICKET, last=tickets)])


def _items(tenant: TenantContext, number: int, tickets: int) -> Iterator[Item]:
    at = clock.now() - timedelta(minutes=tickets + 1 - number)
    closed = number <= tickets - OPEN
    entries = [opened(at, "", "Somebody")]
    if closed:
        entries.append(changed(at + timedelta(seconds=30), "", "Somebody", ("status", "open", "closed")))
    history = History(
        identity=f"quiet {number}",
        title=f"Quiet {number}",
        description=f"What ticket {number} is about.",
        status=Status.CLOSED if closed else Status.OPEN,
        created_at=at,
        updated_at=entries[-1].at,
        requester="",
        requester_name="Somebody",
        entries=tuple(entries),
    )
    made = collection(tenant, number, history)
    yield from (made.detail, *made.activity, made.summary)
