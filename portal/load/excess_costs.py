"""Count requests that took more than their route declares, and show operators those of all processes.

Each process counts in memory, and writes once a minute one item for each route that took too much. An item has no
tenant and no person.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any, Final

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store
from portal.errors import ConditionFailed, PortalError
from portal.faults.stored import EXCESSES, ExcessItem
from portal.schema.access_patterns import Bill, Cost, in_words
from portal.schema.registry import Role

KEPT_DAYS: Final = 30  # after a route took too much last

_lock = threading.Lock()


@dataclass
class Excess:
    """Count for one route. `factor` is how often the worst request took its bound, in its worst figure."""

    bound: str
    worst: str = ""
    factor: float = 0
    count: int = 0


_noted: dict[str, Excess] = {}  # by method and route


def note(route: str, bound: Cost, bill: Bill) -> None:
    """Count a request that took more than its bound."""
    factor = max(took / max(most, 0.5) for took, most in zip(bill, bound.bill, strict=True))
    with _lock:
        excess = _noted.setdefault(route, Excess(bound.bound()))
        excess.count += 1
        if factor > excess.factor:
            excess.factor, excess.worst = factor, in_words(bill)


def take() -> dict[str, Excess]:
    """Return what was counted since the last call."""
    global _noted
    with _lock:
        taken, _noted = _noted, {}
    return taken


def write(role: Role) -> int:
    """Write down what this process has counted, and return how many routes that were: an UpdateItem for each, and one
    more where another process has seen worse.

    Raises PortalError where the database does not take one; that route and the rest are counted again.
    """
    taken, written = take(), 0
    for written, (route, excess) in enumerate(taken.items(), start=1):
        try:
            _write(route, excess, Store(role))
        except PortalError:
            with _lock:
                for left, kept in [*taken.items()][written - 1 :]:
                    kept.count += _noted[left].count if left in _noted else 0
                    _noted[left] = kept
            raise
    return written


def _write(route: str, excess: Excess, store: Store) -> None:
    item, now = ExcessItem(EXCESSES, route), clock.stamp()
    times: list[Any] = [
        ExcessItem.times.add(excess.count),
        ExcessItem.first_at.set(ExcessItem.first_at | now),
        ExcessItem.last_at.set(now),
        ExcessItem.expires_at.set(int(time.time()) + KEPT_DAYS * 86400),
    ]
    factor = round(excess.factor, 2)
    worst = [
        ExcessItem.bound.set(excess.bound),
        ExcessItem.worst.set(excess.worst),
        ExcessItem.factor.set(factor),
    ]
    try:
        store.update(
            item, [*times, *worst], condition=ExcessItem.factor.does_not_exist() | (ExcessItem.factor < factor)
        )
    except ConditionFailed:  # another process has seen worse
        store.update(item, times)


def latest() -> list[ExcessItem]:
    """Return the routes that took too much in the last KEPT_DAYS, the worst first: a Query."""
    found = (item for item in PLATFORM.query_all(ExcessItem, EXCESSES) if item.expires_at > time.time())
    return sorted(found, key=lambda item: -item.factor)
