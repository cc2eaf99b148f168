"""Go through what happened to the tickets of a desk: each entry of a history, with the ticket as it stood after it.

First the numbers of the tickets that have changed since a moment (`changed_since`), then one ticket at a time
(`of_ticket`), so that whoever goes through a desk can pause between two tickets and go on later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from portal import clock
from tenants.tenancy.context import TenantContext
from tickets.desk import comment_changes, lists
from tickets.desk.filters import EVERYTHING
from tickets.desk.lists import MergedList
from tickets.ticket.fields import Status
from tickets.ticket.stored import ActivityItem, SummaryItem
from tickets.time_machine import whole_tickets

PAGE: Final = 500  # rows of a list that are read together
_LATE: Final = 10_000  # tickets that change while the list is read


@dataclass(frozen=True)
class PastEvent:
    """An entry of a ticket's history as it was made. `written` are the entries of its transaction, and
    `ticket` is the ticket after all of these: with a comment that closed its ticket, the ticket is closed."""

    entry: ActivityItem
    written: tuple[ActivityItem, ...]
    ticket: SummaryItem


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
    for written in _transactions(now.activity):
        if not since <= written[0].at <= until:
            continue
        then = whole_tickets.as_of(tenant, now, at=written[-1].at)
        if then is not None:
            made = tuple(comment_changes.as_of(one, written[-1].at) for one in written)
            yield from (PastEvent(one, made, then.summary) for one in made)


def _transactions(entries: Sequence[ActivityItem]) -> list[list[ActivityItem]]:
    """Put together what was written together: the event of a comment's change is told a microsecond after it."""
    found: list[list[ActivityItem]] = []
    for entry in entries:
        former = found[-1][-1] if found else None
        if (
            former
            and entry.kind == "event" != former.kind
            and entry.at == clock.stamp(clock.parse(former.at), offset=1)
        ):
            found[-1].append(entry)
        else:
            found.append([entry])
    return found


def days_ago(days: int) -> str:
    return clock.stamp(clock.now() - timedelta(days=days))
