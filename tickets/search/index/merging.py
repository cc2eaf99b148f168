"""Make large segments of small ones, and of what is new: so that a search has few places to look into.

New postings become a segment when they are too large to be read with every search. Four segments of one size class, or
three and what is being merged anyway, become one of the next class. So each posting is written once in a class, and
there are some four segments for each fourfold growth.

Damaged rows are recorded and no longer merged; the blocks already written for that merge are deleted at once.
"""

from __future__ import annotations

import heapq
import logging
import math
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Final

from portal.errors import TransactionRefused
from tickets.search import stored
from tickets.search.index import postings, publishing
from tickets.search.index.index_store import IndexLock, IndexStore, LockLost, MissingBlock, Raw, RowWrite
from tickets.search.index.segments import Header, SegmentWriter

log = logging.getLogger("pooldesk.stream")

UNREADABLE: Final = (MissingBlock, KeyError, IndexError, TypeError, ValueError, zlib.error)


class DamagedSource(Exception):
    """A source of a merge, by its number among them, cannot be read to its end."""

    def __init__(self, source: int) -> None:
        super().__init__(source)
        self.source = source


def note_damage(store: IndexStore, sort_key: str) -> None:
    """Keep a row out of all merges from now on, and say so in the log. Raises Throttled, Unavailable."""
    if not next(iter(store.rows(sort_key, sort_key)), None):  # it has gone meanwhile, and its blocks with it
        return
    store.write(RowWrite(stored.damage(sort_key), {}))
    log.error(
        "%s of the index of tenant %s is damaged and merged no more. Run: manage.py rebuild_search",
        sort_key,
        store.tenant_id,
    )


def damaged_rows(rows: Iterable[Raw]) -> set[str]:
    """Return the sort keys of the rows that notes among these are about."""
    names = (row["sk"]["S"] for row in rows)
    return {name.removeprefix(stored.DAMAGE) for name in names if name.startswith(stored.DAMAGE)}


# --- merges ---


log = logging.getLogger("pooldesk.stream")

# Every search reads all that is new, so it is little; but a merge costs some 20 write units, so it is not too little.
NEW_ITEMS: Final = 48
NEW_BYTES: Final = 8 * 1024
SEGMENTS: Final = 4  # of one class that are merged
_SEGMENTS_AT_ONCE: Final = 40  # that one transaction removes; a rebuild makes hundreds of one class
PAUSE_SECONDS: Final = 2.0  # between those that a long merge makes for shorter ones
_READ_AT_ONCE: Final = 16  # blocks of one segment
_LOOK_EVERY: Final = 500  # terms, between looks at the lock

Entry = tuple[bytes, bytes]


@dataclass(frozen=True)
class DueMerge:
    """Name what is to be merged: rows of what is new, and segments."""

    new: Sequence[Raw] = ()
    headers: Sequence[Header] = field(default=())

    @property
    def size(self) -> int:
        return sum(_size(row) for row in self.new) + sum(header.size for header in self.headers)

    @property
    def versions(self) -> list[int]:
        return [int(row["v"]["N"]) for row in self.new] + [v for header in self.headers for v in header.versions]

    @property
    def rows(self) -> list[str]:
        """Return the sort keys of the sources."""
        return [row["sk"]["S"] for row in self.new] + [stored.header(header.segment) for header in self.headers]


@dataclass(frozen=True)
class StoredIndex:
    """Hold what can be merged: rows of what is new, and segments. `unreadable` are the sort keys of rows that are none
    of these and not yet noted as damaged."""

    new: list[Raw] = field(default_factory=list)
    headers: list[Header] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, store: IndexStore) -> StoredIndex:
        rows = list(store.rows(*stored.STATE_AND_DAMAGE))
        noted, found = damaged_rows(rows), cls()
        for row in rows:
            sort_key = row["sk"]["S"]
            if sort_key < stored.NEW or sort_key in noted:
                continue
            try:
                if sort_key.startswith(stored.NEW):
                    _ = int(row["v"]["N"]), bytes(row["d"]["B"])
                    found.new.append(row)
                else:
                    found.headers.append(Header.of(row))
            except UNREADABLE:
                found.unreadable.append(sort_key)
        return found


def plan(new: Sequence[Raw], headers: Sequence[Header], *, largest: float = math.inf) -> DueMerge | None:
    """Choose what is to be merged next, None where nothing is. Segments that make more than `largest` bytes stay."""
    if _is_much(new):
        return _with_its_class(DueMerge(new), headers, largest)
    for level in sorted({size_class(header.size) for header in headers}):
        of_class = DueMerge(headers=[one for one in headers if size_class(one.size) == level][:_SEGMENTS_AT_ONCE])
        if len(of_class.headers) >= SEGMENTS and of_class.size <= largest:
            return _with_its_class(of_class, headers, largest)
    return None


def _is_much(new: Sequence[Raw]) -> bool:
    return len(new) >= NEW_ITEMS or sum(map(_size, new)) >= NEW_BYTES


def _with_its_class(chosen: DueMerge, headers: Sequence[Header], largest: float) -> DueMerge:
    """Add the segments of the class that the merged one will be in, as long as they would be merged with it next."""
    while True:
        taken = {header.segment for header in chosen.headers}
        level = size_class(chosen.size)
        others = [h for h in headers if h.segment not in taken and size_class(h.size) == level]
        more = DueMerge(chosen.new, [*chosen.headers, *others])
        if len(others) < SEGMENTS - 1 or len(more.headers) > _SEGMENTS_AT_ONCE or more.size > largest:
            return chosen
        chosen = more


def size_class(size: int) -> int:
    """Return 0 for segments of up to some 24 KB, and one more for each fourfold size."""
    return max(0, round(math.log(max(1, size) / (1.5 * NEW_BYTES), SEGMENTS)))


def merge_due(
    store: IndexStore,
    again: Callable[[], bool] = lambda: True,
    *,
    largest: float = math.inf,
    meanwhile: Callable[[], object] = lambda: None,
) -> int:
    """Merge what is due and clear up behind it, while `again` says so. Return how many merges were done.

    A merge of more than `largest` bytes is left to others. One that takes long lets `meanwhile` do something now and
    then, and does not keep waiting what is new. Nothing is done where another process is at it. Raises Throttled,
    Unavailable: then it is due still.
    """
    lock, index, done = IndexLock(store), StoredIndex.of(store), 0
    if plan(index.new, index.headers, largest=largest) is None or not lock.take():
        return 0

    def pause(at_work: DueMerge) -> None:
        meanwhile()
        merged = {row["sk"]["S"] for row in at_work.new}
        new = [row for row in StoredIndex.of(store).new if row["sk"]["S"] not in merged]
        if _is_much(new):
            _merge(store, DueMerge(new), lock)

    with lock:
        publishing.clear(store)
        frozen = frozen_through(store)
        for sort_key in index.unreadable:
            note_damage(store, sort_key)
        while again() and (due := _planned(store, frozen, largest=largest)):
            try:
                done += _merge(store, due, lock, pause)
            except TransactionRefused:  # somebody took this process for dead
                log.info("A merge of segments of tenant %s was overtaken.", store.tenant_id)
                break
    return done


def clear_up(store: IndexStore) -> int:
    """Delete what nobody reads any more, where its time has come. Return how many graves are left, all of them where
    another process is at it. Raises Throttled, Unavailable."""
    graves = len(list(store.rows(*stored.GRAVES)))
    lock = IndexLock(store)
    if not graves or not lock.take():
        return graves
    with lock:
        return publishing.clear(store)


def merge_new(store: IndexStore, lock: IndexLock) -> None:
    """Make a segment of all that is new and not damaged, however little. Only for who has the lock."""
    while new := StoredIndex.of(store).new:
        if _merge(store, DueMerge(new), lock):
            break


def frozen(store: IndexStore) -> Raw | None:
    """Return the note of the rebuild that is going on, None where there is none."""
    return next(iter(store.rows(stored.FROZEN, stored.FROZEN)), None)


def frozen_through(store: IndexStore) -> str:
    """Return the id of the last segment that a rebuild will remove: those up to it are merged no more."""
    note = frozen(store)
    return str(note["through"]["S"]) if note else ""


def _planned(store: IndexStore, frozen: str, *, largest: float) -> DueMerge | None:
    index = StoredIndex.of(store)
    return plan(index.new, [header for header in index.headers if header.segment > frozen], largest=largest)


def _merge(
    store: IndexStore, due: DueMerge, lock: IndexLock, pause: Callable[[DueMerge], object] = lambda at_work: None
) -> bool:
    """Merge these. False where one turned out to be damaged, and is noted now."""
    segment = publishing.begin(store, "merge")
    writer = SegmentWriter(store, segment, expected=due.size)
    try:
        _write(store, due, writer, lock, pause)
        publishing.publish(store, "merge", writer.finish(due.versions), merged=due.headers)
    except DamagedSource as damaged:
        publishing.abandon(store, "merge", segment, writer.written)
        note_damage(store, due.rows[damaged.source])
        return False
    except (TransactionRefused, LockLost):
        publishing.abandon(store, "merge", segment, writer.written)
        raise
    store.delete_rows(row["sk"]["S"] for row in due.new)
    return True


def _write(
    store: IndexStore, due: DueMerge, writer: SegmentWriter, lock: IndexLock, pause: Callable[[DueMerge], object]
) -> None:
    sources = [postings.block_entries(bytes(row["d"]["B"])) for row in due.new]
    sources += [entries_of(store, header) for header in due.headers]
    paused_at = time.monotonic()
    for count, (term, entries) in enumerate(joined(sources)):
        writer.add(term, entries)
        if count % _LOOK_EVERY == 0:
            lock.keep()
            if time.monotonic() - paused_at >= PAUSE_SECONDS:
                pause(due)
                paused_at = time.monotonic()


def entries_of(store: IndexStore, header: Header) -> Iterator[Entry]:
    """Yield all entries of a segment in order, reading a few blocks at a time. Raises MissingBlock."""
    for first in range(0, header.blocks, _READ_AT_ONCE):
        numbers = range(first, min(first + _READ_AT_ONCE, header.blocks))
        for block in store.blocks(header.segment, numbers):
            yield from postings.block_entries(block)


def joined(sources: Iterable[Iterator[Entry]]) -> Iterator[tuple[bytes, list[bytes]]]:
    """Yield each term with its entries. Those of a term that only one source has are passed on as they are.

    Raises DamagedSource.
    """
    numbered = [_numbered(n, source) for n, source in enumerate(sources)]
    for term, group in groupby(heapq.merge(*numbered, key=itemgetter(0)), key=itemgetter(0)):
        several = list(group)
        entries = [entry for _, _, entry in several]
        if len({n for _, n, _ in several}) > 1:
            entries = postings.entries(postings.merged(_decoded(n, entry) for _, n, entry in several))
        yield term, entries


def _numbered(number: int, source: Iterator[Entry]) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield a source's entries with its number. Terms that do not ascend would bring those of others out of order."""
    before = b""
    try:
        for term, entry in source:
            if term < before:
                raise DamagedSource(number)
            before = term
            yield term, number, entry
    except UNREADABLE as error:
        raise DamagedSource(number) from error


def _decoded(source: int, entry: bytes) -> dict[int, int]:
    try:
        return postings.decode(entry)
    except UNREADABLE as error:
        raise DamagedSource(source) from error


def _size(row: Raw) -> int:
    return len(row["d"]["B"])
