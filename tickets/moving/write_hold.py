"""Fence the place that a move leaves, read what was changed behind the fences, and close them for the switch.

A hold belongs to an attempt of the move. A writer that waits for too long raises the attempt in the tenant's own item.
Then closed fences of the older attempt let writes pass again, and its switch, which is conditional on the attempt,
cannot happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from portal.dynamo import fencing
from portal.dynamo.client import fan_out
from portal.dynamo.models import RawItems
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Condition, Store
from portal.errors import ConditionFailed, Throttled
from tickets.moving.stored import FenceItem
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS, CounterItem

PAGE: Final = 1000  # entries of the log that are read together: what several of them name is copied once
_TRIES: Final = 12


def partitions(entries: Iterable[FenceItem]) -> list[str]:
    return list(dict.fromkeys(name for entry in entries for name in sorted(entry.changed)))


@dataclass(frozen=True)
class WriteHold:
    """The fences and the log of one move, at the place that it leaves."""

    source: Store
    move_id: str

    @property
    def counter(self) -> str:
        """Return the partition of the counters, which nobody raises while writes are held."""
        return stored.counter(self.source.tenant_id)

    @property
    def _partition(self) -> str:
        return fencing.move_key(self.source.tenant_id)

    def fence(self) -> None:
        """Put up the fences, open. Existing items stay."""
        self._at_fences(FenceItem.raised.set(1))

    def close(self, attempt: int) -> None:
        """Close fences and counter on behalf of an attempt: after this nothing passes that any writer sends."""
        fences = partial(self._at_fences, FenceItem.closed.set(attempt), condition=FenceItem.pk.exists())
        fan_out([partial(self._at_counter, CounterItem.closed.set(attempt), CounterItem.last.set(0)), fences])

    def open_counter(self) -> None:
        """Let those pass who know of no move: there is none any more."""
        self._at_counter(CounterItem.closed.remove())

    def changes(self, limit: int | None = PAGE) -> list[FenceItem]:
        """Return the entries of the log that come first by their keys, without a limit all: consistent Queries.

        Behind closed fences that is all there will ever be.
        """
        how: Any = {"begins_with": fencing.changes_key(self.move_id), "consistent": True}
        if limit is not None:
            return self.source.query(FenceItem, self._partition, limit=limit, **how).items
        return [*self.source.query_all(FenceItem, self._partition, **how)]

    def forget(self, entries: Iterable[FenceItem]) -> None:
        """Drop entries of the log that have been copied."""
        self.source.delete_raw(TICKETS, [entry.serialize() for entry in entries])

    def tear_down(self) -> None:
        """Drop the fences, and what is left of the log and of the gates (see ticket_copies.py)."""
        self.source.delete_raw(TICKETS, self.source.query_all(RawItems(TICKETS), self._partition, consistent=True))

    def _at_fences(self, action: Action, *, condition: Condition | None = None) -> None:
        def at_fence(number: int) -> None:
            fence = FenceItem(self._partition, fencing.fence_key(self.move_id, number))
            _through(lambda: self.source.update(fence, [action], condition=condition))

        fan_out([partial(at_fence, number) for number in range(fencing.FENCES)])

    def _at_counter(self, action: Action, *where_none_is: Action) -> None:
        counter = CounterItem(self.counter, stored.COUNTER_TICKET)

        def at_counter() -> None:
            try:
                self.source.update(counter, [action], condition=CounterItem.pk.exists())
            except ConditionFailed:  # no ticket was ever opened: the counter begins with the switch
                if where_none_is:
                    self.source.update(counter, [action, *where_none_is])

        _through(at_counter)


def _through(write: Callable[[], object]) -> None:
    """Repeat a write to an item that writers' transactions touch as well, until it gets through between two of them."""
    retrying(write, again=lambda error: isinstance(error, Throttled), attempts=_TRIES, first=0.005, longest=0.05)
