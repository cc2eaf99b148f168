"""Write a segment: cut sorted terms into blocks that are as full as they may be, and note the fences between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from portal import clock
from tickets.search.index import blocks
from tickets.search.index.index_store import IndexStorage, block_overhead
from tickets.search.index.segments import Header

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

    def __init__(self, store: IndexStorage, segment: str, *, expected: int) -> None:
        self._store, self._segment, self._limit = store, segment, block_limit(expected)
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
        """Return how many blocks have been written."""
        return len(self._fences) - len(self._unwritten)

    def add(self, term: bytes, entries: Iterable[bytes]) -> None:
        """Take the next term, which is greater than all before, with its entries. Raises Throttled, Unavailable."""
        for entry in entries:
            self._held.append((term, entry))
            self._held_bytes += _raw_size(term, entry)
            while self._held_bytes * self._ratio > self._limit and self._cut():
                pass

    def finish(self, versions: Sequence[int]) -> Header:
        """Write what is left, and return the header. Raises Throttled, Unavailable."""
        while self._held:
            self._cut(last=True)
        self._write()
        return Header(
            segment=self._segment,
            blocks=len(self._fences),
            size=self._size,
            versions=tuple(sorted(set(versions))),
            fences=self._fences,
            born=clock.stamp(),
            continued=frozenset(self._continued),
        )

    def _cut(self, *, last: bool = False) -> bool:
        """Make a block of as much as it takes. False where it would take more than there is."""
        many = len(self._held)
        block = blocks.pack(self._held)
        self._ratio = max(0.05, len(block) / max(1, self._held_bytes))
        if len(block) < _FULL * self._limit and not last:
            return False
        while len(block) > self._limit and many > 1:
            many = max(1, min(many - 1, int(many * 0.97 * self._limit / len(block))))
            block = blocks.pack(self._held[:many])
        self._keep(self._held[0][0], self._held[many - 1][0], block)
        self._held = self._held[many:]
        self._held_bytes = sum(_raw_size(term, entry) for term, entry in self._held)
        return True

    def _keep(self, first: bytes, last: bytes, block: bytes) -> None:
        number = len(self._fences)
        if number and first == self._last:
            self._continued.add(number)
        self._fences.append(first[: blocks.shared_length(self._last, first) + 1])
        self._unwritten[number] = block
        self._size += len(block)
        self._last = last
        if len(self._unwritten) == _AT_ONCE:
            self._write()

    def _write(self) -> None:
        self._store.put_blocks(self._segment, self._unwritten)
        self._unwritten = {}


def _raw_size(term: bytes, entry: bytes) -> int:
    return len(entry) + len(term) // 2 + 3
