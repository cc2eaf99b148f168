"""Read the tickets of a tenant as they are stored, by their numbers and without any index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from portal.dynamo.client import fan_out
from portal.dynamo.models import Kinds
from portal.dynamo.store import Store
from tickets.ticket import stored
from tickets.ticket.stored import ActivityItem, DetailItem, SummaryItem
from tickets.verification import recount

TicketItem = SummaryItem | DetailItem | ActivityItem
TICKET_ITEMS: Final = Kinds[TicketItem](
    {stored.SUMMARY: SummaryItem, stored.DETAIL: DetailItem, stored.ACTIVITY_PREFIX: ActivityItem}
)
_AT_ONCE: Final = 16


def summaries(repository: Store) -> Iterator[SummaryItem]:
    """Yield the summary of every ticket, which are read in batches."""
    for several in recount.groups(recount.last_number(repository)):
        for numbers in several:
            wanted = [(stored.ticket, (number,), stored.SUMMARY) for number in numbers]
            yield from (one for one in repository.get_many(SummaryItem, wanted, consistent=True) if one)


def collections(repository: Store) -> Iterator[tuple[int, Sequence[TicketItem]]]:
    """Yield all items of every number that was given out, those of a timeline in its order."""

    def read(number: int) -> Sequence[TicketItem]:
        return list(repository.query_all(TICKET_ITEMS, stored.ticket, number, consistent=True))

    last = recount.last_number(repository)
    for start in range(1, last + 1, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, last + 1))
        yield from zip(numbers, fan_out([partial(read, number) for number in numbers]), strict=True)
