"""Read and write a tenant's index as the stream worker, under its own policy and guard.

Errors: those of `portal.errors`, here also Rejected.

Writes keep below what a partition takes: the blocks of a segment share one, and a large merge could send thousands of
write units there in a second. AWS gives a partition 1,000; source: AWS, "Designing partition keys to distribute your
workload".
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Final, TypeVar

from portal import clock
from portal.dynamo import placement
from portal.dynamo.client import fan_out
from portal.dynamo.meter import item_size
from portal.dynamo.store import Action, Condition, Store, Transaction, chunked
from portal.errors import ConditionFailed, Throttled
from tickets.search import stored
from tickets.search.stored import (
    DIRECTORY_ROWS,
    BlockItem,
    DirectoryRow,
    FrozenItem,
    GraveItem,
    LockItem,
    NewItem,
)

UNITS_A_SECOND: Final = 600.0
# Write units that may come at once, beside what one group of requests takes: 16 blocks of 16 KB are 256.
BURST: Final = 120.0
_AT_ONCE: Final = 16  # blocks that are written or deleted side by side

_I = TypeVar("_I", bound=stored.SearchItem)


class MissingBlock(Throttled):
    """A block that a header names is not there: it was deleted meanwhile, and the header with it."""


class WritePace:
    """Count the write units that were sent, and wait where they would come too fast."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep):
        self._now, self._sleep = now, sleep
        self._sent_until = now()  # when all that was sent would have been sent at an even pace

    def spend(self, units: float) -> None:
        self._sent_until = max(self._sent_until, self._now()) + units / UNITS_A_SECOND

    def wait(self) -> None:
        """Return when there is room for a group of requests."""
        ahead = self._sent_until - self._now() - BURST / UNITS_A_SECOND
        if ahead > 0:
            self._sleep(ahead)


class IndexStore(Store):
    """The index of one tenant at the placement at hand. `write_units` is what the writes have cost."""

    def __init__(self, tenant_id: str) -> None:
        super().__init__("worker", tenant_id, placement.current())
        self.write_units = 0.0
        self._pace = WritePace()

    def send(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        answer = super().send(operation, request)
        if operation not in ("Query", "GetItem"):
            consumed = answer.get("ConsumedCapacity") or []
            several = consumed if isinstance(consumed, list) else [consumed]
            units = sum(float(one.get("CapacityUnits") or 0) for one in several)
            self.write_units += units
            self._pace.spend(units)
        return answer

    # --- the directory ---

    def row(self, model: type[_I], sort_key: str, **values: Any) -> _I:
        return model(self.key(stored.directory), sort_key, **values)

    def rows(self, bounds: tuple[str, str]) -> Iterator[DirectoryRow]:
        """Read headers, new postings and notes of damage between two sort keys, page by page."""
        return self.query_all(DIRECTORY_ROWS, stored.directory, between=bounds, consistent=True)

    def graves(self) -> list[GraveItem]:
        """Read all graves: some are deleted while a caller goes through them."""
        return [*self.query_all(GraveItem, stored.directory, between=stored.GRAVES, consistent=True)]

    def frozen(self) -> FrozenItem | None:
        """Read the note of the rebuild that is going on, None where there is none."""
        both = (stored.FROZEN, stored.FROZEN)
        return next(self.query_all(FrozenItem, stored.directory, between=both, consistent=True), None)

    def commit(self, transaction: Transaction) -> None:
        """Write all of the transaction or nothing. Raises TransactionRefused."""
        token = str(uuid.uuid4())
        self.send("TransactWriteItems", {"TransactItems": transaction.members, "ClientRequestToken": token})

    def delete_rows(self, sort_keys: Iterable[str]) -> None:
        """Delete rows of the directory, side by side. One that is not there is no error."""
        self._paced(partial(self.delete, self.row(NewItem, sort_key)) for sort_key in sort_keys)

    def next_segment(self) -> str:
        """Return an id that no segment of this tenant has had, greater than all of them: one UpdateItem."""
        return stored.segment_id(int(self.update(self.row(LockItem, stored.LOCK), [LockItem.last.add(1)]).last))

    # --- blocks ---

    def blocks(self, segment: str, numbers: Sequence[int]) -> list[bytes]:
        """Return these blocks in this order: one BatchGetItem for each hundred. Raises MissingBlock."""
        found = self.get_many(BlockItem, [(stored.segment, (segment,), stored.block(n)) for n in numbers])
        if None in found:
            raise MissingBlock(f"Segment {segment} lacks a block.")
        return [bytes(item.block) for item in found if item]

    def put_blocks(self, segment: str, blocks: Mapping[int, bytes]) -> None:
        """Write blocks of a segment, side by side, some at a time."""
        self._paced(partial(self.put, self._block(segment, number, block=data)) for number, data in blocks.items())

    def delete_blocks(self, segment: str, numbers: Iterable[int]) -> None:
        """Delete blocks of a segment, side by side. One that is not there is no error."""
        self._paced(partial(self.delete, self._block(segment, number)) for number in numbers)

    def block_numbers(self, segment: str) -> list[int]:
        """Return which blocks of a segment are stored, by reading all of them."""
        return [int(item.sk) for item in self.query_all(BlockItem, stored.segment, segment, consistent=True)]

    def _block(self, segment: str, number: int, **values: Any) -> BlockItem:
        return BlockItem(self.key(stored.segment, segment), stored.block(number), **values)

    def _paced(self, writes: Iterable[Callable[[], None]]) -> None:
        for some in chunked(writes, _AT_ONCE):
            self._pace.wait()
            fan_out(some)


def block_overhead() -> int:
    """Return the bytes that a block's item has beside the block."""
    empty = BlockItem(stored.segment("0" * 32, stored.segment_id(1)), stored.block(0), block=b"")
    return item_size(empty.serialize())


# --- the lock ---


SECONDS: Final = 60.0  # without a sign of life, after which another process may merge


class LockLost(Throttled):
    """Another process merges this tenant's segments: this one was silent for too long."""


class IndexLock:
    """The right to merge one tenant's segments, to be kept from time to time. As a context it ends with it.

    It saves work and decides nothing: what makes a merge safe is the condition of its commit (`publishing.py`). So it
    may rest on clocks.
    """

    def __init__(self, store: IndexStore) -> None:
        self._store, self._item = store, store.row(LockItem, stored.LOCK)
        self._me = uuid.uuid4().hex
        self._renew_at = ""

    def take(self) -> bool:
        """Take it. False where another process has it. Raises Throttled, Unavailable."""
        free = LockItem.owner.does_not_exist() | (LockItem.until < clock.stamp())
        return self._set(free | (LockItem.owner == self._me))

    def keep(self) -> None:
        """Renew it when it is time to. Raises LockLost, also where the whole index is gone: it is not made again."""
        if clock.stamp() > self._renew_at and not self._set(LockItem.owner == self._me):
            raise LockLost("Another process merges this tenant's segments.")

    def _set(self, condition: Condition) -> bool:
        now = clock.now()
        self._renew_at, until = (clock.stamp(now + timedelta(seconds=s)) for s in (SECONDS / 3, SECONDS))
        actions: list[Action] = [LockItem.owner.set(self._me), LockItem.until.set(until)]
        try:
            self._store.update(self._item, actions, condition=condition)
        except ConditionFailed:
            return False
        return True

    def __enter__(self) -> IndexLock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with suppress(ConditionFailed):  # another one has it by now
            remove: list[Action] = [LockItem.owner.remove(), LockItem.until.remove()]
            self._store.update(self._item, remove, condition=LockItem.owner == self._me)
