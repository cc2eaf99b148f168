"""Add up what the stored tickets contribute: the truth that aggregates are held against."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from portal.dynamo.batches import BATCH_GET_LIMIT
from portal.dynamo.client import fan_out
from portal.dynamo.repository import TenantRepository
from portal.streams.batch import plain
from tickets.counting import contributions
from tickets.counting.contributions import Contribution
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS, CounterItem

AT_ONCE: Final = 8  # reads of tickets that are sent at the same time
GROUP: Final = AT_ONCE * BATCH_GET_LIMIT  # ticket numbers that are read together
# Read units of one ticket: a summary has less than 4 KB and is read consistently, and a number without a ticket costs
# the same.
UNITS_PER_NUMBER: Final = 1.0

Advance = Callable[[int], object]  # is called with the numbers that were read since the last call


@dataclass
class Recount:
    """The sum of what the stored tickets contribute. `uncountable` are those that hold what no rule of ours writes."""

    counts: Contribution = field(default_factory=lambda: defaultdict(Counter))
    tickets: int = 0
    uncountable: list[int] = field(default_factory=list)

    def add(self, image: dict[str, Any]) -> None:
        self.tickets += 1
        try:
            contributed = contributions.contribution(plain(image) or {})
        except contributions.UNCOUNTABLE:
            self.uncountable.append((ticket_keys.owner_of(image["pk"]["S"]) or ("", 0))[1])
            return
        self.add_counts(contributed)

    def add_counts(self, counts: Contribution) -> None:
        for part, some in counts.items():
            self.counts[part].update(some)

    def merge(self, other: Recount) -> None:
        """Add what others contribute."""
        self.tickets += other.tickets
        self.uncountable += other.uncountable
        self.add_counts(other.counts)


def last_number(repository: TenantRepository) -> int:
    """Return the highest ticket number that was given out, 0 before the first."""
    counter = repository.get(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, consistent=True)
    return int(counter.last) if counter else 0


def groups(last: int, *, behind: int = 0) -> Iterator[list[range]]:
    """Yield the numbers after `behind` up to `last` in groups of GROUP, each of them as ranges that one read takes."""
    for start in range(behind + 1, last + 1, GROUP):
        end = min(start + GROUP, last + 1)
        yield [range(n, min(n + BATCH_GET_LIMIT, end)) for n in range(start, end, BATCH_GET_LIMIT)]


def recount(
    repository: TenantRepository,
    *,
    total: Recount | None = None,
    behind: int = 0,
    keep: Callable[[int, Recount], object] = lambda number, part: None,
    advance: Advance = lambda numbers: None,
) -> Recount:
    """Add up all tickets: a consistent read for every 100 numbers. Memory depends on days and tags, not on tickets.

    With `behind` those up to this number are in `total` already. `keep` is called with the last number and the sum of
    each whole group.
    """
    total = total or Recount()
    for several in groups(last_number(repository), behind=behind):
        reads = [partial(repository.get_raw, TICKETS, ticket_keys.ticket, n, sort=ticket_keys.SUMMARY) for n in several]
        part = Recount()
        for images in fan_out(reads):
            for image in images:
                part.add(image)
        total.merge(part)
        numbers = sum(map(len, several))
        if numbers == GROUP:
            keep(several[-1][-1], part)
        advance(numbers)
    return total
