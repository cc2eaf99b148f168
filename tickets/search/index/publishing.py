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
from portal.errors import ConditionFailed
from tickets.search import stored
from tickets.search.index.index_store import IndexStore, Raw, RowWrite
from tickets.search.index.segments import Header

# A merge works under the lock, so whoever has the lock knows that the merges of all others are dead. A batch of the
# stream is written without it.
Writer = Literal["merge", "batch"]

GRACE: Final = timedelta(seconds=60)  # for readers of headers that have gone
DEAD_AFTER: Final = timedelta(hours=1)  # a batch that is not published; and a dead writer may write for as long
_UNKNOWN: Final = "?"  # number of blocks


def begin(store: IndexStore, writer: Writer) -> str:
    """Note that a segment is being written, and return its id: greater than that of every segment there is."""
    segment = stored.segment_id(store.next_number())
    store.write(RowWrite(stored.grave(segment), {**_note(writer), "at": {"S": clock.stamp()}}))
    return segment


def publish(store: IndexStore, writer: Writer, header: Header, *, merged: Sequence[Header] = ()) -> None:
    """Let the segment be read, and those that it was merged from no longer.

    Raises TransactionRefused where one of these has gone, or the writer was taken for dead.
    """
    replaced = _replaced(merged) if merged else None
    store.write(
        RowWrite(stored.grave(header.segment), replaced, unchanged=_note(writer)),
        RowWrite(stored.header(header.segment), header.attributes()),
        *(RowWrite(stored.header(one.segment), unchanged={}, is_check=True) for one in merged),
    )
    if replaced:
        _remove_replaced(store, stored.grave(header.segment), replaced)


def abandon(store: IndexStore, writer: Writer, segment: str, blocks: int) -> None:
    """Delete at once what this process has written of a segment that it will not publish: so many blocks, and the note.

    Only where no write of it can still be on its way. Raises Throttled, Unavailable.
    """
    grave = _grave({segment: {"N": str(blocks)}}, timedelta())
    try:
        store.write(RowWrite(stored.grave(segment), grave, unchanged=_note(writer)))
    except ConditionFailed:  # it was taken for dead; or the tenant was purged, and nobody else knows of these blocks
        store.delete_blocks(segment, range(blocks))
    else:
        _delete(store, {**grave, "sk": {"S": stored.grave(segment)}})


def discard(store: IndexStore, headers: Iterable[Header]) -> None:
    """Let segments no longer be read that nothing replaces. Raises TransactionRefused where one has gone."""
    for header in headers:
        dead = {header.segment: {"N": str(header.blocks)}}
        store.write(
            RowWrite(stored.header(header.segment), unchanged={}),
            RowWrite(stored.grave(header.segment), _grave(dead, GRACE)),
        )


def clear(store: IndexStore, *, at_once: bool = False) -> int:
    """Delete the blocks that nobody reads any more, and return how many graves are left.

    Only for who has the lock, and writes nothing at the moment. With `at_once` no time is given: readers read anew, and
    whoever writes is taken for dead.
    """
    left = 0
    for row in list(store.rows(*stored.GRAVES)):
        if "replaced" in row:
            grave = _remove_replaced(store, row["sk"]["S"], row)
        else:
            grave = row if "of" in row else _taken_for_dead(store, row, at_once=at_once)
        if grave and (at_once or _stamp(grave, "until") < clock.stamp()):
            _delete(store, grave)
        else:
            left += 1
    return left


def _replaced(merged: Sequence[Header]) -> dict[str, Any]:
    return {"replaced": {"M": {one.segment: {"N": str(one.blocks)} for one in merged}}}


def _remove_replaced(store: IndexStore, sort_key: str, row: Mapping[str, Any]) -> Raw | None:
    """Remove the headers of segments that another one holds, and note that their blocks are to be deleted: the row of
    the grave, None where somebody else was faster."""
    store.delete_rows(stored.header(segment) for segment in row["replaced"]["M"])
    grave = _grave(row["replaced"]["M"], GRACE)
    try:
        store.write(RowWrite(sort_key, grave, unchanged={"replaced": row["replaced"]}))
    except ConditionFailed:
        return None
    return {**grave, "sk": {"S": sort_key}}


def _taken_for_dead(store: IndexStore, row: Raw, *, at_once: bool) -> Raw | None:
    """Refuse a writer for ever, if it is time to: the row of its grave, None while it may be alive."""
    segment = stored.segment_of(row["sk"]["S"])
    is_batch = row.get("writer") == _note("batch")["writer"]
    if is_batch and not at_once and clock.parse(_stamp(row, "at")) + DEAD_AFTER > clock.now():
        return None
    grave = _grave({segment: {"S": _UNKNOWN}}, DEAD_AFTER)
    try:
        store.write(RowWrite(stored.grave(segment), grave, unchanged={"writer": row["writer"]}))
    except ConditionFailed:  # it has just published
        return None
    return {**grave, "sk": row["sk"]}


def _delete(store: IndexStore, row: Raw) -> None:
    for segment, blocks in row["of"]["M"].items():
        numbers = range(int(blocks["N"])) if "N" in blocks else store.block_numbers(segment)
        store.delete_blocks(segment, numbers)
    store.delete_rows([row["sk"]["S"]])


def _note(writer: Writer) -> dict[str, Any]:
    return {"writer": {"S": writer}}


def _grave(dead: dict[str, Any], keep: timedelta) -> dict[str, Any]:
    return {"of": {"M": dead}, "until": {"S": clock.stamp(clock.now() + keep)}}


def _stamp(row: Raw, name: str) -> str:
    return str(row[name]["S"])
