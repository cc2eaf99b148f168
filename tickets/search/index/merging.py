"""Make large segments of small ones, and of what is new: so that a search has few places to look into.

What is new becomes a segment when it is too much to be read with every search. Four segments of one size class, or
three and what is being merged anyway, become one of the next class. So each posting is written once in a class, and
there are some four segments for each fourfold growth.
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

from portal.errors import TransactionRefused
from tickets.search import keys
from tickets.search.index import blocks, postings, publishing
from tickets.search.index.index_lock import IndexLock
from tickets.search.index.index_store import Raw, Store
from tickets.search.index.segment_writing import SegmentWriter
from tickets.search.index.segments import Header

log = logging.getLogger("pooldesk.stream")

NEW_ITEMS: Final = 64
NEW_BYTES: Final = 24 * 1024
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
    return max(0, round(math.log(max(1, size) / (NEW_BYTES / 2), SEGMENTS)))


def merge_due(
    store: Store,
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
    lock, done = IndexLock(store), 0
    if _planned(store, largest=largest) is None or not lock.take():
        return 0

    def pause(at_work: DueMerge) -> None:
        meanwhile()
        merged = {row["sk"]["S"] for row in at_work.new}
        new = [row for row in _stored(store)[0] if row["sk"]["S"] not in merged]
        if _is_much(new):
            _merge(store, DueMerge(new), lock)

    with lock:
        publishing.clear(store)
        frozen = frozen_through(store)
        while again() and (due := _planned(store, frozen, largest=largest)):
            try:
                _merge(store, due, lock, pause)
            except TransactionRefused:  # somebody took this process for dead
                log.info("A merge of segments of tenant %s was overtaken.", store.tenant_id)
                break
            done += 1
    return done


def clear_up(store: Store) -> int:
    """Delete what nobody reads any more, where its time has come. Return how many graves are left, all of them where
    another process is at it. Raises Throttled, Unavailable."""
    graves = len(list(store.rows(*keys.GRAVES)))
    lock = IndexLock(store)
    if not graves or not lock.take():
        return graves
    with lock:
        return publishing.clear(store)


def merge_new(store: Store, lock: IndexLock) -> None:
    """Make a segment of all that is new, however little. Only for who has the lock."""
    new, _ = _stored(store)
    if new:
        _merge(store, DueMerge(new), lock)


def frozen(store: Store) -> Raw | None:
    """Return the note of the rebuild that is going on, None where there is none."""
    return next(iter(store.rows(keys.FROZEN, keys.FROZEN)), None)


def frozen_through(store: Store) -> str:
    """Return the id of the last segment that a rebuild will remove: those up to it are merged no more."""
    note = frozen(store)
    return str(note["through"]["S"]) if note else ""


def _planned(store: Store, frozen: str = "", *, largest: float) -> DueMerge | None:
    new, headers = _stored(store)
    return plan(new, [header for header in headers if header.segment > frozen], largest=largest)


def _stored(store: Store) -> tuple[list[Raw], list[Header]]:
    rows = list(store.rows(*keys.STATE))
    new = [row for row in rows if row["sk"]["S"].startswith(keys.NEW)]
    return new, [Header.of(row) for row in rows[len(new) :]]


def _merge(
    store: Store, due: DueMerge, lock: IndexLock, pause: Callable[[DueMerge], object] = lambda at_work: None
) -> None:
    segment = publishing.begin(store, "merge")
    writer = SegmentWriter(store, segment, expected=due.size)
    sources = [blocks.entries(bytes(row["d"]["B"])) for row in due.new]
    sources += [entries_of(store, header) for header in due.headers]
    paused_at = time.monotonic()
    for count, (term, entries) in enumerate(joined(sources)):
        writer.add(term, entries)
        if count % _LOOK_EVERY == 0:
            lock.keep()
            if time.monotonic() - paused_at >= PAUSE_SECONDS:
                pause(due)
                paused_at = time.monotonic()
    publishing.publish(store, "merge", writer.finish(due.versions), merged=due.headers)
    store.delete_rows(row["sk"]["S"] for row in due.new)


def entries_of(store: Store, header: Header) -> Iterator[Entry]:
    """Return all entries of a segment in order, reading a few blocks at a time. Raises MissingBlock."""
    for first in range(0, header.blocks, _READ_AT_ONCE):
        numbers = range(first, min(first + _READ_AT_ONCE, header.blocks))
        for block in store.blocks(header.segment, numbers):
            yield from blocks.entries(block)


def joined(sources: Iterable[Iterator[Entry]]) -> Iterator[tuple[bytes, list[bytes]]]:
    """Return each term with its entries. Those of a term that only one source has are passed on as they are."""
    numbered = [_numbered(n, source) for n, source in enumerate(sources)]
    for term, group in groupby(heapq.merge(*numbered, key=itemgetter(0)), key=itemgetter(0)):
        several = list(group)
        entries = [entry for _, _, entry in several]
        if len({n for _, n, _ in several}) > 1:
            entries = postings.entries(postings.merged(map(postings.decode, entries)))
        yield term, entries


def _numbered(number: int, source: Iterator[Entry]) -> Iterator[tuple[bytes, int, bytes]]:
    return ((term, number, entry) for term, entry in source)


def _size(row: Raw) -> int:
    return len(row["d"]["B"])
