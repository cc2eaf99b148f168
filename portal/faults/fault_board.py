"""Write down the errors that a process has noted, and read those of all processes.

A process writes at most `AT_ONCE` items at a time, one for each fingerprint. The operators' page reads all items: there
are as many as ways to fail within `KEPT_DAYS`.
"""

from __future__ import annotations

import time
from typing import Any, Final

from portal import clock, logs
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store
from portal.errors import ConditionFailed, PortalError
from portal.faults.stored import FAULTS, FaultItem
from portal.logs import NotedFault
from portal.schema.registry import Role

KEPT_DAYS: Final = 30  # after an error came last
SHOWN: Final = 100
AT_ONCE: Final = 20


def write(kind: str, role: Role) -> int:
    """Write down what this process has noted, and return how many items that took: an UpdateItem for each, and one more
    where another process has noted a later error of the same fingerprint.

    Raises PortalError where the database does not take one; the rest is noted again.
    """
    taken = logs.notes.take(AT_ONCE)
    for number, noted in enumerate(taken):
        try:
            _write(noted, kind, role)
        except PortalError:
            for left in taken[number:]:
                logs.notes.put_back(left)
            raise
    return len(taken)


def _write(noted: NotedFault, kind: str, role: Role) -> None:
    first, last, store = clock.stamp(noted.first_at), clock.stamp(noted.last_at), Store(role)
    item, times = FaultItem(FAULTS, noted.fault.fingerprint), FaultItem.times.add(noted.count)
    actions: list[Any] = [
        FaultItem.type.set(noted.fault.kind),
        FaultItem.places.set("\n".join(noted.fault.places)),
        FaultItem.route.set(noted.route),
        FaultItem.request.set(noted.request),
        FaultItem.process.set(kind),
        times,
        FaultItem.first_at.set(FaultItem.first_at | first),
        FaultItem.last_at.set(last),
        FaultItem.expires_at.set(int(time.time()) + KEPT_DAYS * 86400),
    ]
    try:
        store.update(item, actions, condition=FaultItem.last_at.does_not_exist() | (FaultItem.last_at <= last))
    except ConditionFailed:  # another process has written down a later one
        store.update(item, [times])


def latest() -> list[FaultItem]:
    """Return the hundred errors that came last, the last one first: a Query."""
    found = (item for item in PLATFORM.query_all(FaultItem, FAULTS) if item.expires_at > time.time())
    return sorted(found, key=lambda item: item.last_at, reverse=True)[:SHOWN]
