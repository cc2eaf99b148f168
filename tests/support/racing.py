"""Call several functions at the same moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from portal.errors import Conflict, Forbidden, Invalid


def which_succeed(calls: Sequence[Callable[[], object]]) -> list[bool]:
    """Call all of these at the same moment, and return of each whether no rule refused it."""

    def attempt(call: Callable[[], object]) -> bool:
        try:
            call()
        except (Conflict, Forbidden, Invalid):
            return False
        return True

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(attempt, calls))


def succeed(calls: Sequence[Callable[[], object]]) -> int:
    """Call all of these at the same moment, and return how many succeed."""
    return sum(which_succeed(calls))
