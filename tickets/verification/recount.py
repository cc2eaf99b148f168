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
from tickets.counting import aggregates
from tickets.counting.aggregates import Contribution
from tickets.ticket import keys as ticket_keys
from tickets.ticket.items import CounterItem
from tickets.ticket.tables import TICKETS

AT_ONCE: Final = 8  # groups of tickets that are read at the same time
# Read units of one ticket: a summary has less than 4 KB and is read consistently, and a number without a ticket costs
# the same.
UNITS_PER_NUMBER: Final = 1.0

Advance = Callable[[int], object]


@dataclass
class Recount:
    """The sum of what the stored tickets contribute. `uncountable` are those that hold what no rule of ours writes."""

    counts: Contribution = field(default_factory=lambda: defaultdict(Counter))
    tickets: int = 0
    uncountable: list[int] = field(default_factory=list)

    def add(self, image: dict[str, Any]) -> None:
        self.tickets += 1
        try:
            contributed = aggregates.contribution(plain(image) or {})
        except aggregates.UNCOUNTABLE:
            self.uncountable.append((ticket_keys.owner_of(image["pk"]["S"]) or ("", 0))[1])
            return
        for part, counts in contributed.items():
            self.counts[part].update(counts)


def last_number(repository: TenantRepository) -> int:
    """The highest ticket number that was given out, 0 before the first."""
    counter = repository.get(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, consistent=True)
    return int(counter.last) if counter else 0


def groups(last: int) -> Iterator[list[range]]:
    """The numbers from 1 to `last` in groups that one read takes, and as many groups as are read at the same time."""
    step = BATCH_GET_LIMIT * AT_ONCE
    for start in range(1, last + 1, step):
        end = min(start + step, last + 1)
        yield [range(n, min(n + BATCH_GET_LIMIT, end)) for n in range(start, end, BATCH_GET_LIMIT)]


def recount(repository: TenantRepository, *, advance: Advance = lambda numbers: None) -> Recount:
    """Add up all tickets: a consistent read for every 100 numbers. Memory depends on days and tags, not on tickets."""
    total = Recount()
    for several in groups(last_number(repository)):
        reads = [partial(repository.get_raw, TICKETS, ticket_keys.ticket, n, sort=ticket_keys.SUMMARY) for n in several]
        for images in fan_out(reads):
            for image in images:
                total.add(image)
        advance(sum(map(len, several)))
    return total
