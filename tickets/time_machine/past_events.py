"""Go through what happened to the tickets of a desk: each entry of a history, with the ticket as it stood after it.

First the numbers of the tickets that have changed since a moment (`changed_since`), then one ticket at a time
(`of_ticket`), so that whoever goes through a desk can pause between two tickets and go on later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from portal import clock
from tenants.tenancy.context import TenantContext
from tickets.desk import lists
from tickets.desk.filters import EVERYTHING
from tickets.desk.lists import MergedList
from tickets.ticket.fields import Status
from tickets.ticket.stored import ActivityItem, SummaryItem
from tickets.time_machine import whole_tickets

PAGE: Final = 500  # rows of a list that are read together
_LATE: Final = 10_000  # tickets that change while the list is read


@dataclass(frozen=True)
class PastEvent:
    """An entry of a ticket's history as it was made, and the ticket after it. The first entry opens the ticket.

    An entry and the change that was written with it have the same ticket: with a comment that closed its ticket, the
    ticket is closed.
    """

    number: int
    entry: ActivityItem
    ticket: SummaryItem
    description: str
    is_first: bool


def changed_since(
    tenant: TenantContext, since: str, *, look_up: Callable[[], object] = lambda: None
) -> Iterator[SummaryItem]:
    """Yield each ticket of the lists that has changed since this moment, the newest change first.

    A list is read page by page, a Query for each status and shard, and `look_up` is called between two pages. A ticket
    that changes meanwhile comes once. Spam and merged tickets are in no list.
    """
    statuses = tuple(Status)
    begun, after, met = clock.stamp(), None, set[int]()
    while True:
        page = lists.page(tenant, status=statuses, after=after, size=PAGE)
        for row in page.rows:
            if row.updated_at < since:
                after = None
                break
            if row.number not in met:
                met.add(int(row.number))
                yield row
        else:
            after = page.next
        if after is None:
            break
        look_up()
    late = MergedList(tenant, statuses, None, EVERYTHING, newer_than=begun)
    yield from (row for row in late.read(None, _LATE, ()).matches if row.number not in met)


def of_ticket(tenant: TenantContext, number: int, *, since: str, until: str) -> Iterator[PastEvent]:
    """Yield what happened to a ticket between two moments, oldest first: one Query, of more than 1 MB several.

    Values that the history did not keep are those of now.
    """
    now = whole_tickets.read(tenant, number)
    if now is None:
        return
    entries = now.activity
    for place, entry in enumerate(entries):
        if not since <= entry.at <= until:
            continue
        then = whole_tickets.as_of(tenant, now, at=_moment_of_all(entries, place))
        if then is not None:
            yield PastEvent(number, then.activity[place], then.summary, then.description, place == 0)


def _moment_of_all(entries: tuple[ActivityItem, ...], place: int) -> str:
    """Return when the last entry was made of those that were written together with this one."""
    at = entries[place].at
    for later in entries[place + 1 :]:
        if later.kind != "event" or later.at != clock.stamp(clock.parse(at), offset=1):
            break
        at = later.at
    return at


def days_ago(days: int) -> str:
    """Return the stamp of a moment some days ago."""
    return clock.stamp(clock.now() - timedelta(days=days))
