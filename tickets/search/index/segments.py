"""Say what of a tenant's index lies where: what is new, and the header of each segment with its fences.

A segment is a sorted run of terms, cut into blocks. It is written once and never changed; merging makes one of several.
Its header holds the *fences*: for each block the shortest text that is greater than all terms before the block. So a
reader knows which blocks can hold a term without having read any.

A search reads all that is new and all headers in one Query. That is no snapshot, and yet nothing is missed: what is new
sorts before the headers, headers sort by id, and ids grow. A merge reads what exists and writes under a greater id, and
its inputs go after its output has appeared. A reader that no longer sees an input has read its place after the
deletion, and comes to the output's place still later. A reader that sees both reads the same postings twice, without
effect.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from portal import clock
from portal.dynamo.repository import TenantRepository
from tickets.search import stored
from tickets.search.index import postings
from tickets.search.index.index_store import IndexStore, block_overhead
from tickets.search.stored import SEARCH

Raw = Mapping[str, Any]

_END: Final = b"\xff"  # in no UTF-8, and so in no term
_CONTINUED: Final = b"\xfe"  # likewise
_UNREADABLE: Final = (KeyError, IndexError, TypeError, ValueError, zlib.error)
_REMEMBERED: Final = 512  # headers whose fences a process remembers, some 100 KB each at most


@dataclass(frozen=True)
class Header:
    """Describe one segment: its id, how many blocks and bytes it has, by which versions of the tokenizer its terms were
    made, and when it was born.

    `continued` are the blocks that begin with the term with which the one before ends.
    """

    segment: str
    blocks: int
    size: int
    versions: tuple[int, ...]
    fences: list[bytes] = field(repr=False)
    born: str
    continued: frozenset[int] = frozenset()

    def span(self, low: bytes, high: bytes) -> range:
        """Return the numbers of the blocks that can hold terms from `low` to `high`, both included."""
        first = bisect_left(self.fences, low)
        begins_there = first < self.blocks and self.fences[first] == low and first not in self.continued
        if not begins_there:
            first = max(0, first - 1)
        return range(first, max(first, bisect_right(self.fences, high)))

    def attributes(self) -> dict[str, Any]:
        """Return what is stored of it, without keys."""
        ends = [fence + _CONTINUED if n in self.continued else fence for n, fence in enumerate(self.fences)]
        return {
            "b": {"N": str(self.blocks)},
            "z": {"N": str(self.size)},
            "v": {"NS": [str(version) for version in self.versions]},
            "f": {"B": zlib.compress(_END.join(ends), 9)},
            "born": {"S": self.born},
        }

    @classmethod
    def of(cls, raw: Raw) -> Header:
        """Read what is stored of a segment."""
        fences, continued = _fences(bytes(raw["f"]["B"]), int(raw["b"]["N"]))
        return cls(
            segment=stored.segment_of(raw["sk"]["S"]),
            blocks=len(fences),
            size=int(raw["z"]["N"]),
            versions=tuple(sorted(int(version) for version in raw["v"]["NS"])),
            fences=fences,
            born=raw["born"]["S"],
            continued=continued,
        )


@lru_cache(maxsize=_REMEMBERED)
def _fences(packed: bytes, blocks: int) -> tuple[list[bytes], frozenset[int]]:
    ends = zlib.decompress(packed).split(_END) if blocks else []
    continued = frozenset(n for n, end in enumerate(ends) if end.endswith(_CONTINUED))
    return [end.removesuffix(_CONTINUED) for end in ends], continued


@dataclass(frozen=True)
class IndexState:
    """Hold what a search reads first: the blocks of all that is new, and the headers of the segments by id.

    `unreadable` are the sort keys of rows that nothing of ours has written so.
    """

    tail: list[bytes]
    headers: list[Header]
    versions: tuple[int, ...]
    unreadable: tuple[str, ...] = ()

    @classmethod
    def of(cls, rows: Iterable[Raw]) -> IndexState:
        """Read the rows between the bounds `keys.STATE`."""
        tail: list[bytes] = []
        headers: list[Header] = []
        versions: set[int] = set()
        unreadable: list[str] = []
        for raw in rows:
            try:
                if raw["sk"]["S"].startswith(stored.NEW):
                    block, version = bytes(raw["d"]["B"]), int(raw["v"]["N"])
                    tail.append(block)
                    versions.add(version)
                else:
                    header = Header.of(raw)
                    headers.append(header)
                    versions.update(header.versions)
            except _UNREADABLE:
                unreadable.append(raw["sk"]["S"])
        return cls(tail, headers, tuple(sorted(versions)), tuple(unreadable))


def read_state(repository: TenantRepository, consistent: bool = False) -> IndexState:
    """Read a tenant's index as it stands: one Query, more where its pages are full."""
    rows = repository.query_all(SEARCH, stored.directory, between=stored.STATE, consistent=consistent)
    return IndexState.of(rows)


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

    def __init__(self, store: IndexStore, segment: str, *, expected: int) -> None:
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
        self._store.put_blocks(self._segment, self._unwritten)
        self._unwritten = {}


def _raw_size(term: bytes, entry: bytes) -> int:
    return len(entry) + len(term) // 2 + 3
