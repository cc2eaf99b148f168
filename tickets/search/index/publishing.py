"""Make a segment that has been written readable, exactly once, and delete what nobody reads any more.

Before its first block a segment has a note: it is being written, and by what. One transaction writes the header and
replaces the note by one that names the segments that it was merged from. It is refused where the note is not there any
more as it was, or one of those segments: so of two merges of the same one is done, and a worker that was taken for dead
publishes nothing when it wakes.

Only then the headers of those segments go, by whoever comes to it first. Within the transaction would not do: a Query
may see one of its writes before another one, and a reader that finds neither the old nor the new misses something. One
that finds both reads the same twice.

The remains of dead segments stay for a while, in a *grave*: a reader may hold a header that was just deleted. One that
misses a block reads the headers anew, so the time is there to make that rare, and nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Literal

from portal import clock
from portal.dynamo.store import Condition, Transaction
from portal.errors import ConditionFailed
from tickets.search import stored
from tickets.search.index.index_store import IndexStore
from tickets.search.index.segments import SegmentWriter
from tickets.search.stored import GraveItem, SegmentItem

# A merge works under the lock, so whoever has the lock knows that the merges of all others are dead. A batch of the
# stream is written without it.
Writer = Literal["merge", "batch"]

GRACE: Final = timedelta(seconds=60)  # for readers of headers that have gone
DEAD_AFTER: Final = timedelta(hours=1)  # a batch that is not published; and a dead writer may write for as long


def begin(store: IndexStore, writer: Writer) -> str:
    """Note that a segment is being written, and return its id: greater than that of every segment there is."""
    segment = store.next_segment()
    store.put(_grave(store, segment, writer=writer, at=clock.stamp()))
    return segment


def publish(store: IndexStore, writer: Writer, header: SegmentItem, *, merged: Sequence[SegmentItem] = ()) -> None:
    """Let the segment be read, and those that it was merged from no longer.

    Raises TransactionRefused where one of these has gone, or the writer was taken for dead.
    """
    grave, change = _grave(store, header.segment), Transaction()
    if merged:
        grave = _grave(store, header.segment, replaced={one.segment: int(one.blocks) for one in merged})
        change.put(grave, condition=GraveItem.writer == writer)
    else:
        change.delete(grave, condition=GraveItem.writer == writer)
    change.put(header)
    for one in merged:
        change.check(one, SegmentItem.sk.exists())
    store.commit(change)
    if merged:
        _remove_replaced(store, grave)


def write(store: IndexStore, entries: Iterable[tuple[bytes, list[bytes]]], version: int, *, expected: int = 0) -> int:
    """Write terms with their entries as one segment that is read from now on, and return its bytes."""
    writer = SegmentWriter(store, begin(store, "batch"), expected=expected)
    for term, some in entries:
        writer.add(term, some)
    header = writer.finish([version])
    publish(store, "batch", header)
    return int(header.size)


def abandon(store: IndexStore, writer: SegmentWriter) -> None:
    """Delete at once what a merge of this process has written of a segment that it will not publish.

    Only where no write of it can still be on its way. Raises Throttled, Unavailable.
    """
    grave = _dead(store, writer.segment, {writer.segment: writer.written}, timedelta())
    if _put_if(store, grave, GraveItem.writer == "merge"):
        _delete(store, grave)
    else:  # it was taken for dead; or the tenant was purged, and nobody else knows of these blocks
        store.delete_blocks(writer.segment, range(writer.written))


def discard(store: IndexStore, headers: Iterable[SegmentItem]) -> None:
    """Let segments no longer be read that nothing replaces. Raises TransactionRefused where one has gone."""
    for header in headers:
        change = Transaction()
        change.delete(header, condition=SegmentItem.sk.exists())
        change.put(_dead(store, header.segment, {header.segment: int(header.blocks)}, GRACE))
        store.commit(change)


def clear(store: IndexStore, *, at_once: bool = False) -> int:
    """Delete the blocks that nobody reads any more, and return how many graves are left.

    Only for who has the lock, and writes nothing at the moment. With `at_once` no time is given: readers read anew, and
    whoever writes is taken for dead.
    """
    left = 0
    for found in store.graves():
        grave: GraveItem | None = found
        if found.replaced:
            grave = _remove_replaced(store, found)
        elif not found.of:
            grave = _taken_for_dead(store, found, at_once=at_once)
        if grave is not None and (at_once or str(grave.until) < clock.stamp()):
            _delete(store, grave)
        else:
            left += 1
    return left


def _remove_replaced(store: IndexStore, grave: GraveItem) -> GraveItem | None:
    """Remove the headers of segments that another one holds, and note that their blocks are to be deleted: the new
    grave, None where somebody else was faster."""
    store.delete_rows(map(stored.header, grave.replaced))
    dead = _dead(store, stored.segment_of(str(grave.sk)), grave.replaced, GRACE)
    return dead if _put_if(store, dead, GraveItem.replaced.exists()) else None


def _taken_for_dead(store: IndexStore, grave: GraveItem, *, at_once: bool) -> GraveItem | None:
    """Refuse a writer for ever, if it is time to: its grave, None while it may be alive or where it has just published
    its segment."""
    if grave.writer == "batch" and not at_once and clock.parse(str(grave.at)) + DEAD_AFTER > clock.now():
        return None
    segment = stored.segment_of(str(grave.sk))
    dead = _dead(store, segment, {segment: None}, DEAD_AFTER)
    return dead if _put_if(store, dead, GraveItem.writer.exists()) else None


def _put_if(store: IndexStore, grave: GraveItem, condition: Condition) -> bool:
    try:
        store.put(grave, condition=condition)
    except ConditionFailed:
        return False
    return True


def _delete(store: IndexStore, grave: GraveItem) -> None:
    for segment, blocks in grave.of.items():
        store.delete_blocks(segment, store.block_numbers(segment) if blocks is None else range(blocks))
    store.delete(grave)


def _dead(store: IndexStore, segment: str, blocks: Mapping[str, int | None], keep: timedelta) -> GraveItem:
    return _grave(store, segment, of=dict(blocks), until=clock.stamp(clock.now() + keep))


def _grave(store: IndexStore, segment: str, **values: Any) -> GraveItem:
    return store.row(GraveItem, stored.grave(segment), **values)
