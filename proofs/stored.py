"""Read the tickets of a tenant as they are stored, by their numbers and without any index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.repository import TenantRepository
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS
from tickets.verification import recount

Raw = dict[str, Any]
_AT_ONCE: Final = 16


def summaries(repository: TenantRepository) -> Iterator[Raw]:
    """Yield the summary of every ticket, which are read in batches."""
    for several in recount.groups(recount.last_number(repository)):
        for numbers in several:
            yield from repository.get_raw(TICKETS, stored.ticket, numbers, sort=stored.SUMMARY)


def collections(
    repository: TenantRepository, read: Callable[[int], list[Raw]] | None = None
) -> Iterator[tuple[int, list[Raw]]]:
    """Yield all items of every number that was given out. `read` reads them elsewhere than where the tenant lies."""

    def here(number: int) -> list[Raw]:
        return list(repository.query_all(TICKETS, stored.ticket, number, consistent=True))

    last = recount.last_number(repository)
    for start in range(1, last + 1, _AT_ONCE):
        numbers = range(start, min(start + _AT_ONCE, last + 1))
        yield from zip(numbers, fan_out([partial(read or here, number) for number in numbers]), strict=True)
