"""Read the texts of stored tickets as the fragments that the index should hold of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from portal.dynamo.client import fan_out
from portal.dynamo.repository import TenantRepository
from tickets.search.index import fragments
from tickets.search.index.fragments import Fragment
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import TICKETS

AT_ONCE: Final = 8  # tickets that are read side by side

Advance = Callable[[int], object]  # is called with the numbers that were read since the last call


def read(repository: TenantRepository, numbers: Sequence[int]) -> Iterator[tuple[int, list[Fragment]]]:
    """Read the tickets of these numbers, some at a time: a consistent Query for each number.

    What lies under a number without a summary counts too: a ticket that is being imported is indexed piece by piece.
    """
    for start in range(0, len(numbers), AT_ONCE):
        several = numbers[start : start + AT_ONCE]
        yield from zip(several, fan_out([partial(_fragments, repository, n) for n in several]), strict=True)


def _fragments(repository: TenantRepository, number: int) -> list[Fragment]:
    stored = repository.query_all(TICKETS, ticket_keys.ticket, number, consistent=True)
    return [fragment for raw in stored for fragment in _of_item(raw)]


def _of_item(raw: dict[str, Any]) -> list[Fragment]:
    sort_key = raw["sk"]["S"]
    if sort_key == ticket_keys.SUMMARY:
        return fragments.of_summary(raw)
    if sort_key == ticket_keys.DETAIL:
        return fragments.of_detail(raw)
    return fragments.of_activity(raw) if sort_key.startswith(ticket_keys.ACTIVITY_PREFIX) else []
