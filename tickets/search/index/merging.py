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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Final

from portal.dynamo.store import chunked
from portal.errors import TransactionRefused
from tickets.search import stored
from tickets.search.index import postings, publishing
from tickets.search.index.index_store import IndexLock, IndexStore, LockLost, MissingBlock
from tickets.search.index.segments import IndexState, SegmentWriter, versions
from tickets.search.stored import DamageItem, NewItem, SegmentItem

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


class DamagedSource(Exception):
    """A source of a merge, by its number among them, cannot be read to its end."""

    def __init__(self, source: int) -> None:
        super().__init__(source)
        self.source = source


@dataclass(frozen=True)
class DueMerge:
    """Name what is to be merged: rows of what is new, and segments."""

    new: Sequence[NewItem] = ()
    headers: Sequence[SegmentItem] = field(default=())

    @property
    def size(self) -> int:
        return sum(len(row.block) for row in self.new) + sum(int(header.size) for header in self.headers)

    @property
    def rows(self) -> list[str]:
        return [str(one.sk) for one in (*self.new, *self.headers)]


def read(store: IndexStore) -> IndexState:
    """Read what can be merged, and which rows are damaged and not yet noted."""
    return IndexState.of(store.rows(stored.STATE_AND_DAMAGE)).sound


def plan(state: IndexState, *, largest: float = math.inf, frozen: str = "") -> DueMerge | None:
    """Choose what is to be merged next, None where nothing is. Segments that make more than `largest` bytes stay, and
    those up to `frozen`."""
    headers = [header for header in state.headers if header.segment > frozen]
    if _is_much(state.new):
        return _with_its_class(DueMerge(state.new), headers, largest)
    for level in sorted({size_class(header.size) for header in headers}):
        of_class = DueMerge(headers=[one for one in headers if size_class(one.size) == level][:_SEGMENTS_AT_ONCE])
        if len(of_class.headers) >= SEGMENTS and of_class.size <= largest:
            return _with_its_class(of_class, headers, largest)
    return None


def _is_much(new: Sequence[NewItem]) -> bool:
    return len(new) >= NEW_ITEMS or DueMerge(new).size >= NEW_BYTES


def _with_its_class(chosen: DueMerge, headers: Sequence[SegmentItem], largest: float) -> DueMerge:
    """Add the segments of the class that the merged one will be in, as long as they would be merged with it next."""
    while True:
        taken, level = {header.segment for header in chosen.headers}, size_class(chosen.size)
        others = [h for h in headers if h.segment not in taken and size_class(h.size) == level]
        more = DueMerge(chosen.new, [*chosen.headers, *others])
        if len(others) < SEGMENTS - 1 or len(more.headers) > _SEGMENTS_AT_ONCE or more.size > largest:
            return chosen
        chosen = more


def size_class(size: float) -> int:
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
    lock, state, done = IndexLock(store), read(store), 0
    if plan(state, largest=largest) is None or not lock.take():
        return 0

    def pause(at_work: DueMerge) -> None:
        meanwhile()
        new = [row for row in read(store).new if row.sk not in at_work.rows]
        if _is_much(new):
            _merge(store, DueMerge(new), lock)

    with lock:
        publishing.clear(store)
        note = store.frozen()
        for sort_key in state.unreadable:
            _note_damage(store, sort_key)
        while again() and (due := plan(read(store), largest=largest, frozen=str(note.through) if note else "")):
            try:
                done += _merge(store, due, lock, pause)
            except TransactionRefused:  # somebody took this process for dead
                log.info("A merge of segments of tenant %s was overtaken.", store.tenant_id)
                break
    return done


def clear_up(store: IndexStore) -> int:
    """Delete what nobody reads any more, where its time has come. Return how many graves are left, all of them where
    another process is at it. Raises Throttled, Unavailable."""
    graves, lock = len(store.graves()), IndexLock(store)
    if not graves or not lock.take():
        return graves
    with lock:
        return publishing.clear(store)


def merge_new(store: IndexStore, lock: IndexLock) -> None:
    """Make a segment of all that is new and not damaged, however little. Only for who has the lock."""
    while (new := read(store).new) and not _merge(store, DueMerge(new), lock):
        pass


def _merge(
    store: IndexStore, due: DueMerge, lock: IndexLock, pause: Callable[[DueMerge], object] = lambda at_work: None
) -> bool:
    """Merge these. False where one turned out to be damaged, and is noted now."""
    writer = SegmentWriter(store, publishing.begin(store, "merge"), expected=due.size)
    try:
        _write(store, due, writer, lock, pause)
        publishing.publish(store, "merge", writer.finish(versions(due.new, due.headers)), merged=due.headers)
    except DamagedSource as damaged:
        publishing.abandon(store, writer)
        _note_damage(store, due.rows[damaged.source])
        return False
    except (TransactionRefused, LockLost):
        publishing.abandon(store, writer)
        raise
    store.delete_rows(str(row.sk) for row in due.new)
    return True


def _note_damage(store: IndexStore, sort_key: str) -> None:
    """Keep a row out of all merges from now on, and say so in the log. Raises Throttled, Unavailable."""
    if not any(store.rows((sort_key, sort_key))):  # it has gone meanwhile, and its blocks with it
        return
    store.put(store.row(DamageItem, stored.damage(sort_key)))
    log.error(
        "%s of the index of tenant %s is damaged and merged no more. Run: manage.py rebuild_search",
        sort_key,
        store.tenant_id,
    )


def _write(
    store: IndexStore, due: DueMerge, writer: SegmentWriter, lock: IndexLock, pause: Callable[[DueMerge], object]
) -> None:
    sources = [postings.block_entries(bytes(row.block)) for row in due.new]
    sources += [entries_of(store, header) for header in due.headers]
    paused_at = time.monotonic()
    for count, (term, entries) in enumerate(joined(sources)):
        writer.add(term, entries)
        if count % _LOOK_EVERY == 0:
            lock.keep()
            if time.monotonic() - paused_at >= PAUSE_SECONDS:
                pause(due)
                paused_at = time.monotonic()


def entries_of(store: IndexStore, header: SegmentItem) -> Iterator[Entry]:
    """Yield all entries of a segment in order, reading a few blocks at a time. Raises MissingBlock."""
    for numbers in chunked(range(int(header.blocks)), _READ_AT_ONCE):
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


_DAMAGED: Final = (MissingBlock, *stored.UNREADABLE)


def _numbered(number: int, source: Iterator[Entry]) -> Iterator[tuple[bytes, int, bytes]]:
    """Yield a source's entries with its number. Terms that do not ascend would bring those of others out of order."""
    before = b""
    try:
        for term, entry in source:
            if term < before:
                raise DamagedSource(number)
            before = term
            yield term, number, entry
    except _DAMAGED as error:
        raise DamagedSource(number) from error


def _decoded(source: int, entry: bytes) -> dict[int, int]:
    try:
        return postings.decode(entry)
    except _DAMAGED as error:
        raise DamagedSource(source) from error
