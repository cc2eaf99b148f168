"""Read all tickets of a tenant, each with all that it holds, in the order of their numbers.

By number and not by list: a list is sorted by what changes while it is read. So each ticket that existed when the
reading began comes exactly once, and memory holds GROUP tickets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from portal.dynamo.client import fan_out
from tenants.tenancy.context import TenantContext
from tickets.desk.timelines import Activity
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS, SummaryItem
from tickets.verification.recount import last_number

GROUP: Final = 8  # tickets that are read at the same time
_TRIES: Final = 3  # for a ticket that changes while it is read


@dataclass(frozen=True)
class WholeTicket:
    """Hold a ticket with all of its activity, oldest first."""

    summary: SummaryItem
    description: str
    activity: tuple[Activity, ...]

    @property
    def adds_up(self) -> bool:
        """Tell whether the summary and the history are of one moment: a change writes both, a reading may part them."""
        comments = sum(one.kind == "comment" for one in self.activity)
        versions = 1 + sum(bool(one.changes) for one in self.activity)
        return (comments, versions) == (int(self.summary.comment_count), self.summary.version_told)


def all_tickets(
    tenant: TenantContext, *, advance: Callable[[int], object] = lambda numbers: None
) -> Iterator[WholeTicket]:
    """Yield the tickets that there are now: a Query for each number that was given out, more for more than 1 MB.

    `advance` is called with the numbers that were read since the last call.
    """
    numbers = range(1, last_number(tenant.repository) + 1)
    for start in range(0, len(numbers), GROUP):
        group = numbers[start : start + GROUP]
        yield from (found for found in fan_out([partial(whole, tenant, n) for n in group]) if found)
        advance(len(group))


def whole(tenant: TenantContext, number: int) -> WholeTicket | None:
    """Return one ticket, or None where there is none. It is read again, consistently, where it does not add up."""
    found = _read(tenant, number, consistent=False)
    for _ in range(_TRIES - 1):
        if found is None or found.adds_up:
            break
        found = _read(tenant, number, consistent=True)
    return found


def _read(tenant: TenantContext, number: int, *, consistent: bool) -> WholeTicket | None:
    # Newest first, so that the summary comes first: what is added meanwhile is then in neither.
    items = tenant.repository.query_all(TICKETS, stored.ticket, number, descending=True, consistent=consistent)
    summary, description, activity = None, "", list[Activity]()
    for raw in items:
        sort = raw["sk"]["S"]
        if sort == stored.SUMMARY:
            summary = SummaryItem.from_raw_data(raw)
        elif sort == stored.DETAIL:
            description = raw.get("description", {}).get("S", "")
        elif sort.startswith(stored.ACTIVITY_PREFIX):
            activity.append(Activity.of(raw))
    return WholeTicket(summary, description, tuple(reversed(activity))) if summary else None
