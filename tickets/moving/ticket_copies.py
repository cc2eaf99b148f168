"""Make collections at one place what they are at another: what differs is written, what is too much is deleted.

That is right however often it is done, so whoever carries a move out can die anywhere. Each write passes a gate at the
destination, whose key is changed when somebody else goes on and whenever a write was left without an answer: what comes
late by an older key is refused. So nothing old is ever written over something newer.

Aggregates and the search's index are not copied: the destination's own stream makes them of the tickets.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final

from portal import clock
from portal.dynamo import fencing
from portal.dynamo.client import fan_out
from portal.dynamo.models import RawItems
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Condition, Store, Transaction
from portal.errors import ConditionFailed, PortalError, Throttled, TransactionRefused
from portal.schema.registry import Table
from tickets.moving.stored import FenceItem
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS

GATES: Final = 4  # as many writes at the same time, where there is hurry
_AT_ONCE: Final = 4  # collections that are read at the same time, at both places, where there is none
# Of one transaction, beside the gate. AWS takes 100; an engine that writes one after the other lets all others wait.
_MEMBERS: Final = 25
_BYTES: Final = 2 * 1024 * 1024  # of one transaction; AWS takes 4 MB
_TRIES: Final = 6
_REQUESTS: Final = timedelta(days=2)  # the record of a form goes after one
_HASH, _RANGE = TICKETS.hash, str(TICKETS.range)
_SUMMARY: Final = {"S": stored.SUMMARY}

Raw = dict[str, Any]


def raw_collection(store: Store, partition: str) -> list[Raw]:
    """Return the raw items of a partition of the tables that a move copies, consistently."""
    return [*store.query_all(RawItems(_table_of(partition)), partition, consistent=True)]


def _table_of(partition: str) -> Table:
    return fencing.table_of(partition) or TICKETS


class GateClosed(PortalError):
    """Somebody else carries the move out, and has changed the key of the gates."""

    code = "gate_closed"


class TicketCopies:
    """Copies collections of one tenant from one placement to another, as one part of one move."""

    def __init__(
        self,
        source: Store,
        destination: Store,
        move_id: str,
        between: Callable[[], object] = lambda: None,
    ) -> None:
        self.source, self.destination, self._between = source, destination, between
        self._tenant_id, self._move_id = source.tenant_id, move_id
        self._key, self._attempt = "", 0

    # --- gates ---

    def open(self, attempt: int) -> None:
        """Take the gates for an attempt of the move: nobody else's writes pass them from here on, and none that was
        sent before. Raises GateClosed after a switch of this or a later attempt.
        """
        self._key, self._attempt = uuid.uuid4().hex, attempt
        self._at_gates(FenceItem.holder.set(self._key))

    def close(self) -> None:
        """Let nothing pass any more by this attempt: no late write of anybody's, this process included."""
        self._at_gates(FenceItem.closed.set(self._attempt))

    def _gate(self, number: int) -> FenceItem:
        return FenceItem(fencing.move_key(self._tenant_id), fencing.gate_key(self._move_id, number))

    @property
    def _still_open(self) -> Condition:
        is_open: Condition = FenceItem.closed.does_not_exist() | (FenceItem.closed < self._attempt)
        return is_open

    def _at_gates(self, action: Action) -> None:
        def turn(number: int) -> None:
            _patiently(lambda: self.destination.update(self._gate(number), [action], condition=self._still_open))

        try:
            fan_out([partial(turn, number) for number in range(GATES)])
        except ConditionFailed as failed:
            raise GateClosed("Somebody else has carried this move out.") from failed

    # --- collections ---

    def sync(self, partitions: Sequence[str], *, hurried: bool = False) -> int:
        """Make these collections equal, and the records of the requests that made them. Return how many items were
        written or deleted. Raises GateClosed, Unavailable; then the gates have to be opened anew.

        Unless it is `hurried`, few requests are under way at a time, and `between` is called between them: people's
        are to find the engine idle, and whoever looks on is to see that somebody is at work.
        """
        wanted = list(dict.fromkeys(partitions))
        at_once = len(wanted) if hurried else _AT_ONCE
        changes, made = self._differences(wanted, at_once)
        more, _ = self._differences([one for one in made if one not in wanted], at_once)
        # The records first: who goes on after a kill asks for those of what it finds missing, and of nothing else.
        gates = GATES if hurried else GATES // 2
        between = _nothing_between if hurried else self._between
        self._write_all(more, gates, between)
        self._write_all(changes, gates, between)
        return len(changes) + len(more)

    def _write_all(self, changes: list[tuple[str, Raw]], gates: int, between: Callable[[], object]) -> None:
        parts = list(_parts(changes))
        for start in range(0, len(parts), gates):
            some = parts[start : start + gates]
            fan_out([partial(self._write, part, gate) for gate, part in enumerate(some)])
            between()

    def sync_tickets(self, numbers: Iterable[int]) -> int:
        return self.sync([stored.ticket(self._tenant_id, number) for number in numbers])

    def _differences(self, partitions: list[str], at_once: int) -> tuple[list[tuple[str, Raw]], list[str]]:
        """Return what has to be written so that these collections are equal, and the requests that made it."""
        changes: list[tuple[str, Raw]] = []
        made: dict[str, None] = {}
        for start in range(0, len(partitions), at_once):
            for left, there in self._read(partitions[start : start + at_once]):
                here = [_opened(raw) for raw in left]
                some = differences(here, there)
                changes += some
                made |= dict.fromkeys(self._requests(here, [raw for kind, raw in some if kind == "Put"]))
        return changes, list(made)

    def _read(self, partitions: list[str]) -> list[tuple[list[Raw], list[Raw]]]:
        """Return these collections as they are at both places."""
        # The record of a request is written once, so whether it is there already need not be asked.
        known = {one for one in partitions if stored.is_request(one)}
        reads: list[Callable[[], list[Raw]]] = [partial(raw_collection, self.source, one) for one in partitions]
        reads += [list if one in known else partial(raw_collection, self.destination, one) for one in partitions]
        found = fan_out(reads)
        return list(zip(found[: len(partitions)], found[len(partitions) :], strict=True))

    def _requests(self, collection: list[Raw], missing: list[Raw]) -> Iterator[str]:
        """Yield the partitions of the records that keep the forms which made these items from being sent twice."""
        young = clock.stamp(clock.now() - _REQUESTS)
        created = max((raw["created_at"]["S"] for raw in collection if raw.get(_RANGE) == _SUMMARY), default="")
        for raw in missing:
            if "request" in raw and raw.get("at", {}).get("S", created) > young:
                yield stored.request(self._tenant_id, raw["request"]["S"])

    def _write(self, changes: Sequence[tuple[str, Raw]], gate: int) -> None:
        transaction = Transaction()
        transaction.check(self._gate(gate), (FenceItem.holder == self._key) & self._still_open)
        for kind, raw in changes:
            table = _table_of(raw[_HASH]["S"])
            of = {"Item": raw} if kind == "Put" else {"Key": {name: raw[name] for name in table.key_names}}
            transaction.add(kind, {"TableName": table.full_name, **of})
        try:
            _patiently(lambda: self.destination.transact(transaction))
        except TransactionRefused as refused:
            raise GateClosed("Somebody else carries this move out.") from refused


def _nothing_between() -> None:
    """Let those who are held wait for nothing else."""


def differences(here: Iterable[Raw], there: Iterable[Raw]) -> list[tuple[str, Raw]]:
    """Return the members of a transaction that make what is there what is here: ("Put" or "Delete", item)."""
    wanted, present = _by_key(here), _by_key(there)
    puts = [("Put", raw) for key, raw in wanted.items() if present.get(key) != raw]
    return puts + [("Delete", raw) for key, raw in present.items() if key not in wanted]


def _by_key(items: Iterable[Raw]) -> dict[tuple[str, str], Raw]:
    return {(raw[_HASH]["S"], raw[_RANGE]["S"] if _RANGE in raw else ""): raw for raw in items}


def _opened(raw: Raw) -> Raw:
    """Return a counter without what closes it at the place that is left."""
    return {name: value for name, value in raw.items() if name != fencing.CLOSED}


def _parts(changes: list[tuple[str, Raw]]) -> Iterator[list[tuple[str, Raw]]]:
    """Cut changes into what one transaction takes, beside the gate."""
    part: list[tuple[str, Raw]] = []
    size = 0
    for change in changes:
        weight = len(json.dumps(change[1], default=_length))
        if part and (len(part) == _MEMBERS or size + weight > _BYTES):
            yield part
            part, size = [], 0
        part.append(change)
        size += weight
    if part:
        yield part


def _length(value: Any) -> str:
    return "." * 2 * len(value) if isinstance(value, bytes | bytearray) else str(value)


def _patiently(write: Callable[[], object]) -> None:
    """Send what may meet somebody else's transaction on the same item, until it has passed."""
    retrying(
        write,
        again=lambda error: (
            isinstance(error, Throttled) or (isinstance(error, TransactionRefused) and error.is_passing())
        ),
        attempts=_TRIES,
        first=0.02,
    )
