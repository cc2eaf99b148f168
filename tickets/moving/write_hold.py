"""Fence the place that a move leaves, read what was changed behind the fences, and close them for the switch.

A hold belongs to an attempt of the move. A writer that waits for too long raises the attempt in the tenant's own item.
Then closed fences of the older attempt let writes pass again, and its switch, which is conditional on the attempt,
cannot happen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from portal.dynamo import fencing
from portal.dynamo import keys as move_keys
from portal.dynamo.batches import batch_write
from portal.dynamo.client import fan_out
from portal.dynamo.retry import retrying
from portal.errors import ConditionFailed, Throttled
from tickets.moving.placed_store import PlacedStore, Raw, member
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS

PAGE: Final = 1000  # entries of the log that are read together: what several of them name is copied once
_TRIES: Final = 12
_EXISTS: Final = "attribute_exists(#pk)"


@dataclass(frozen=True)
class Changes:
    """Entries of the log as they were read, and the collections that they name."""

    entries: list[Raw]

    @property
    def partitions(self) -> list[str]:
        return list(dict.fromkeys(name for entry in self.entries for name in entry[fencing.CHANGED]["SS"]))


@dataclass(frozen=True)
class WriteHold:
    """The fences and the log of one move, at the place that it leaves."""

    source: PlacedStore
    move_id: str

    @property
    def counter(self) -> str:
        """Return the partition of the counters, which nobody raises while writes are held."""
        return stored.counter(self.source.tenant_id)

    @property
    def _partition(self) -> str:
        return move_keys.move(self.source.tenant_id)

    def fence(self) -> None:
        """Put up the fences, open. Existing items stay."""
        self._at_fences("SET #raised = :one", {"one": {"N": "1"}})

    def close(self, attempt: int) -> None:
        """Close fences and counter on behalf of an attempt: after this nothing passes that any writer sends."""
        values: dict[str, Raw] = {"attempt": {"N": str(attempt)}}
        closing = "SET #closed = :attempt"
        fan_out(
            [
                partial(self._at_counter, closing, values),
                partial(self._at_fences, closing, values, condition=_EXISTS),
            ]
        )

    def open_counter(self) -> None:
        """Let those pass who know of no move: there is none any more."""
        self._at_counter("REMOVE #closed")

    def changes(self, limit: int | None = PAGE) -> Changes:
        """Return the part of the log that comes first by its keys, without a limit all of it: consistent Queries.

        Behind closed fences that is all there will ever be.
        """
        return Changes(
            self.source.collection(self._partition, begins_with=move_keys.changes(self.move_id), limit=limit)
        )

    def forget(self, changes: Changes) -> None:
        """Drop entries of the log that have been copied."""
        self._drop(changes.entries)

    def tear_down(self) -> None:
        """Drop the fences, and what is left of the log and of the gates (see ticket_copies.py)."""
        self._drop(self.source.collection(self._partition))

    def _at_fences(self, expression: str, values: dict[str, Raw], *, condition: str = "") -> None:
        def at_fence(number: int) -> None:
            sort = move_keys.fence(self.move_id, number)
            _through(lambda: self.source.update(self._partition, sort, expression, values=values, condition=condition))

        fan_out([partial(at_fence, number) for number in range(fencing.FENCES)])

    def _at_counter(self, expression: str, values: dict[str, Raw] | None = None) -> None:
        counter, sort = self.counter, stored.COUNTER_TICKET

        def at_counter() -> None:
            try:
                self.source.update(counter, sort, expression, values=values, condition=_EXISTS)
            except ConditionFailed:  # no ticket was ever opened: the counter begins with the switch
                if values:
                    none: dict[str, Raw] = {"none": {"N": "0"}}
                    self.source.update(counter, sort, f"{expression}, #last = :none", values=values | none)

        _through(at_counter)

    def _drop(self, items: list[Raw]) -> None:
        dropped = [(TICKETS.full_name, {"DeleteRequest": {"Key": member(raw)["Key"]}}) for raw in items]
        with self.source.connection() as connection:
            batch_write(connection, dropped)


def _through(write: Callable[[], None]) -> None:
    """Repeat a write to an item that writers' transactions touch as well, until it gets through between two of them."""
    retrying(write, again=lambda error: isinstance(error, Throttled), attempts=_TRIES, first=0.005, longest=0.05)
