"""Say what of a tenant's index lies where: what is new, and the header of each segment with its fences.

A segment is a sorted run of terms, cut into blocks. It is written once and never changed; merging makes one of several.
Its header holds the *fences*: for each block the shortest text that is greater than all terms before the block. So a
reader knows which blocks can hold a term without having read any.

A search reads all that is new and all headers in one Query. That is no snapshot, and yet nothing is missed: what is new
sorts before the headers, headers sort by id, and ids grow. A merge reads what exists and writes under a greater id, and
its inputs go after its output has appeared. Whoever does not see an input any more has read its place after that, and
comes to the output's place still later. Whoever sees both reads the same postings twice, which changes nothing.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from portal.dynamo.repository import TenantRepository
from tickets.search import keys
from tickets.search.tables import SEARCH

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
            segment=keys.segment_of(raw["sk"]["S"]),
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
                if raw["sk"]["S"].startswith(keys.NEW):
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
    rows = repository.query_all(SEARCH, keys.directory, between=keys.STATE, consistent=consistent)
    return IndexState.of(rows)
