"""Read how a tenant's index stands, and write segments.

A segment is a sorted run of terms, cut into blocks. It is written once and never changed; merging makes one of several.

A search reads all that is new and all headers in one Query. That is no snapshot, and yet nothing is missed: what is new
sorts before the headers, headers sort by id, and ids grow. A merge reads what exists and writes under a greater id, and
its inputs go after its output has appeared. A reader that no longer sees an input has read its place after the
deletion, and comes to the output's place still later. A reader that sees both reads the same postings twice, without
effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from portal import clock
from portal.dynamo.store import Store
from tickets.search import stored
from tickets.search.index import postings
from tickets.search.index.index_store import IndexStore, block_overhead
from tickets.search.stored import DIRECTORY_ROWS, DamageItem, DirectoryRow, NewItem, SegmentItem


@dataclass(frozen=True)
class IndexState:
    """Hold how an index stands: what is new, the headers of the segments by id, and by which versions of the tokenizer
    both were made.

    `unreadable` are the sort keys of rows that nothing of ours has written so, `noted` those of rows that are known to
    be damaged.
    """

    new: tuple[NewItem, ...] = ()
    headers: tuple[SegmentItem, ...] = ()
    versions: tuple[int, ...] = ()
    unreadable: tuple[str, ...] = ()
    noted: frozenset[str] = frozenset()

    @classmethod
    def of(cls, rows: Iterable[DirectoryRow]) -> IndexState:
        rows = list(rows)
        new = tuple(row for row in rows if isinstance(row, NewItem))
        headers = tuple(row for row in rows if isinstance(row, SegmentItem))
        others = {str(row.sk) for row in rows} - {str(row.sk) for row in (*new, *headers)}
        return cls(
            new,
            headers,
            tuple(sorted(versions(new, headers))),
            tuple(sorted(name for name in others if name >= stored.NEW)),
            frozenset(str(row.sk).removeprefix(stored.DAMAGE) for row in rows if isinstance(row, DamageItem)),
        )

    @property
    def sound(self) -> IndexState:
        """Return the same without the rows that are noted as damaged."""
        return replace(
            self,
            new=tuple(row for row in self.new if row.sk not in self.noted),
            headers=tuple(header for header in self.headers if header.sk not in self.noted),
            unreadable=tuple(name for name in self.unreadable if name not in self.noted),
        )


def versions(new: Iterable[NewItem], headers: Iterable[SegmentItem]) -> set[int]:
    """Return the versions of the tokenizer by which these were made."""
    return {int(row.version) for row in new} | {int(version) for header in headers for version in header.versions}


def read_state(store: Store, *, consistent: bool = False) -> IndexState:
    """Read a tenant's index as searches do: one Query, more where its pages are full."""
    return IndexState.of(store.query_all(DIRECTORY_ROWS, stored.directory, between=stored.STATE, consistent=consistent))


# --- writing ---


# Bytes of a block's item, its key included, by the bytes that the segment will have at most. Large blocks keep the
# headers of large segments short, which every search reads; small ones make a rare word cheap.
_LIMITS: Final = ((8 << 20, 4096), (32 << 20, 8192))
_LARGEST: Final = 16_000
_FULL: Final = 0.92  # of the limit: a block that has less takes more, if there is more
_AT_ONCE: Final = 16  # blocks that are written side by side


def block_limit(expected: int) -> int:
    """Return the bytes that a block may have in a segment of some `expected` bytes."""
    limit = next((limit for size, limit in _LIMITS if expected <= size), _LARGEST)
    return limit - block_overhead()


class SegmentWriter:
    """Write one segment to a store, term by term, and then say what its header is. Nobody reads it before that."""

    def __init__(self, store: IndexStore, segment: str, *, expected: int = 0) -> None:
        self._store, self.segment, self._limit = store, segment, block_limit(expected)
        self._held: list[tuple[bytes, bytes]] = []
        self._held_bytes = 0
        self._ratio = 0.7  # of compressed to raw bytes, as the last block had it
        self._unwritten: dict[int, bytes] = {}
        self._fences: list[bytes] = []
        self._continued: set[int] = set()
        self._last = b""
        self._size = 0

    @property
    def written(self) -> int:
        return len(self._fences) - len(self._unwritten)

    def add(self, term: bytes, entries: Iterable[bytes]) -> None:
        """Take the next term, which is greater than all before, with its entries. Raises Throttled, Unavailable."""
        for entry in entries:
            self._held.append((term, entry))
            self._held_bytes += _raw_size(term, entry)
            while self._held_bytes * self._ratio > self._limit and self._cut():
                pass

    def finish(self, versions: Iterable[int]) -> SegmentItem:
        """Write what is left, and return the header. Raises Throttled, Unavailable."""
        while self._held:
            self._cut(last=True)
        self._write()
        return self._store.row(
            SegmentItem,
            stored.header(self.segment),
            blocks=len(self._fences),
            size=self._size,
            versions={*versions},
            packed_fences=stored.pack_fences(self._fences, self._continued),
            born=clock.stamp(),
        )

    def _cut(self, *, last: bool = False) -> bool:
        """Make a block of as much as it takes. False where it would take more than there is."""
        many = len(self._held)
        block = postings.pack_block(self._held)
        self._ratio = max(0.05, len(block) / max(1, self._held_bytes))
        if len(block) < _FULL * self._limit and not last:
            return False
        while len(block) > self._limit and many > 1:
            many = max(1, min(many - 1, int(many * 0.97 * self._limit / len(block))))
            block = postings.pack_block(self._held[:many])
        self._keep(self._held[0][0], self._held[many - 1][0], block)
        self._held = self._held[many:]
        self._held_bytes = sum(_raw_size(term, entry) for term, entry in self._held)
        return True

    def _keep(self, first: bytes, last: bytes, block: bytes) -> None:
        number = len(self._fences)
        if number and first == self._last:
            self._continued.add(number)
        self._fences.append(first[: postings.shared_length(self._last, first) + 1])
        self._unwritten[number] = block
        self._size += len(block)
        self._last = last
        if len(self._unwritten) == _AT_ONCE:
            self._write()

    def _write(self) -> None:
        self._store.put_blocks(self.segment, self._unwritten)
        self._unwritten = {}


def _raw_size(term: bytes, entry: bytes) -> int:
    return len(entry) + len(term) // 2 + 3
