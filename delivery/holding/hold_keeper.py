"""Bring the rows of the outbox in line with the holds: let go what no longer waits, and close what is dropped.

A row that waits lies in a partition of its own tenant in the index of pending rows, so that it costs nothing while it
waits and the dispatcher does not meet it. When the hold is over, it is put back. Any number of dispatchers may do this
at the same time: each row is moved once. A tenant's rows may stand in several outboxes: in that of all, in one of its
own, and in the one that it had before it was moved.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from delivery.holding import holds
from delivery.holding.items import HoldItem
from delivery.outbox import keys as outbox_keys
from delivery.outbox import progress
from delivery.outbox.items import OutboxItem
from delivery.outbox.tables import PENDING
from portal import clock
from portal.errors import ConditionFailed, Unavailable
from portal.streams import stream_source, worker
from portal.streams.stream_source import POOLED, StreamSource

log = logging.getLogger("pooldesk.delivery")

# Those who have not read a new hold yet may still put rows aside under the old one.
_SETTLED: Final = timedelta(seconds=10 * holds.REFRESH_SECONDS)


class HoldKeeper:
    """Carries out what operators have asked for since the last time."""

    def __init__(self) -> None:
        self._done: set[tuple[str, str]] = set()  # tenant and the moment of a change that leaves nothing to do
        self._first = 0

    def step(self, *, seconds: float = float("inf")) -> int:
        """Work through all holds that changed, for so many seconds at most. Return how many rows were moved or closed.

        Raises Unavailable.
        """
        until = time.monotonic() + seconds
        changed = 0
        todo = [hold for hold in holds.read().values() if (hold.name, hold.changed_at) not in self._done]
        self._first = (self._first + 1) % max(1, len(todo))  # so that a long one does not keep the others waiting
        for hold in [*todo[self._first :], *todo[: self._first]]:
            settled = clock.parse(hold.changed_at) + _SETTLED < clock.now()
            for source in stream_source.of_tenant(hold.name):
                moved, is_through = _carry_out_all(hold, source, until)
                changed, settled = changed + moved, settled and is_through
                if time.monotonic() > until:
                    return changed
            if settled:
                _finish(hold)
                self._done.add((hold.name, hold.changed_at))
        return changed


def _carry_out_all(hold: HoldItem, source: StreamSource, until: float) -> tuple[int, bool]:
    """Work through the rows of one outbox. Return how many changed, and whether it came to the end."""
    changed = 0
    try:
        with source.entered():
            for row in _rows(hold.name, everywhere=bool(hold.dropped_until)):
                changed += carry_out(hold, row)
                if time.monotonic() > until:
                    return changed, False
    except Unavailable as error:
        if source == POOLED:
            raise
        log.warning("What is held in the outbox of %s is looked at later: %s", source, error.message)
        return changed, False
    return changed, True


def carry_out(hold: HoldItem, row: OutboxItem) -> bool:
    """Do with a row of the index what the hold says. Tell whether there was anything to do."""
    verdict = holds.verdict_on(hold, row.timestamp)
    if verdict == "drop":
        progress.drop(row)
        return True
    if verdict == "go" and row.pending == outbox_keys.held(hold.name):
        progress.release(row)
        return True
    return False


def _rows(tenant_id: str, *, everywhere: bool) -> Iterator[OutboxItem]:
    """Yield the tenant's rows that are set aside and, with `everywhere`, its pending ones: keys, nothing else."""
    yield from _in(outbox_keys.held(tenant_id))
    for shard in range(outbox_keys.SHARDS if everywhere else 0):
        yield from (r for r in _in(outbox_keys.pending(shard)) if outbox_keys.row_parts(r.event_id)[0] == tenant_id)


def _in(partition: str) -> Iterator[OutboxItem]:
    return worker.items(OutboxItem, partition, index=PENDING)


def _finish(hold: HoldItem) -> None:
    """Forget what has been carried out, unless the hold was changed meanwhile."""
    unchanged = HoldItem.changed_at == hold.changed_at
    item = HoldItem(hold.kind, hold.name)
    try:
        if hold.waits_from and hold.dropped_until:
            worker.change(item, [HoldItem.dropped_until.remove()], condition=unchanged)
        elif not hold.waits_from:
            worker.remove(item, condition=unchanged)
    except ConditionFailed:
        return
