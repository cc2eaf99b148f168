"""Declare the table of the search index, which tenants read and only the stream worker writes: keys, items, holdings.

The partition of a tenant's *directory* holds, in the order of the sort keys: notes of damaged rows, the note of a
rebuild, graves, the lock, new postings, and the headers of the segments. A search reads the last two. Their order is
part of the proof that no reader misses anything (`index/segments.py`): a merge reads what sorts before what it writes.
The blocks of each segment have a partition of their own.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from pynamodb.attributes import (
    Attribute,
    BinaryAttribute,
    NumberAttribute,
    NumberSetAttribute,
    UnicodeAttribute,
)
from pynamodb.constants import MAP

from portal.dynamo.client import Item
from portal.dynamo.models import Kinds
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from portal.schema.registry import Grant, Table, declare

LOCK: Final = "LOCK"
FROZEN: Final = "FROZEN"  # sort key of the note of a rebuild that is going on
_DIRECTORY: Final = "SEARCH"
_SEGMENT: Final = "SEGMENT"
_DAMAGE: Final = "D"
_GRAVE: Final = "G"
_NEW: Final = "N"
_HEADER: Final = "S"
_SEGMENT_DIGITS: Final = 10
_BLOCK_DIGITS: Final = 6
_UNKNOWN: Final = "?"

NEW: Final = keys.beginning(_NEW)
DAMAGE: Final = keys.beginning(_DAMAGE)
# Bounds, both included.
GRAVES: Final = (keys.beginning(_GRAVE), keys.joined(_GRAVE, "~"))
STATE: Final = (NEW, keys.joined(_HEADER, "~"))  # what a search reads
ALL_NEW: Final = (NEW, keys.joined(_NEW, "~"))
STATE_AND_DAMAGE: Final = (DAMAGE, STATE[1])
CHECK: Final = "SEARCH"  # sort key, beside the recounts, of how far a check of the index has come


def directory(tenant_id: str) -> str:
    """Return the partition key of what is new, of the headers of the segments, of graves and lock."""
    return keys.collection(tenant_id, _DIRECTORY)


def segment(tenant_id: str, segment_id: str) -> str:
    """Return the partition key of the blocks of one segment."""
    return keys.collection(tenant_id, _SEGMENT, segment_id)


def block(number: int) -> str:
    return f"{int(keys.whole_number(number, 'a block')):0{_BLOCK_DIGITS}}"


def new(digest: str) -> str:
    """Return the sort key of what one batch of the stream has added."""
    return keys.joined(_NEW, digest)


def header(segment_id: str) -> str:
    """Return the sort key of the header of a segment that is read."""
    return keys.joined(_HEADER, segment_id)


def grave(segment_id: str) -> str:
    """Return the sort key of the note that this segment is being written, or that it or others are to be deleted."""
    return keys.joined(_GRAVE, segment_id)


def damage(sort_key: str) -> str:
    """Return the sort key of the note that the row with this one is damaged."""
    return keys.labelled(_DAMAGE, sort_key)


def segment_id(number: int) -> str:
    """Return the id of a segment: ids sort as they were given out."""
    return f"{int(keys.whole_number(number, 'a segment', least=1)):0{_SEGMENT_DIGITS}}"


def segment_of(sort_key: str) -> str:
    """Return the segment id in what `header` or `grave` formed."""
    return keys.split(sort_key)[1]


# It has no stream: what indexing writes is nothing that has to be indexed.
SEARCH = Table("Support.Search", "tenant", "pk", "sk", leading_keys=keys.OWN_COLLECTIONS, placed=True)

declare(
    SEARCH,
    grants=(
        Grant("tenant", SEARCH, ("BatchGetItem", "Query")),
        Grant(
            "worker",
            SEARCH,
            ("BatchGetItem", "ConditionCheckItem", "DeleteItem", "PutItem", "Query", "UpdateItem"),
            "MaintainSearch",
            leading_keys=keys.ALL_COLLECTIONS,
        ),
    ),
)


# --- items ---


class SearchItem(Item):
    """Base of the items of the index."""

    table = SEARCH

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)

    def check(self) -> None:
        """Raise TypeError, ValueError or zlib.error where something is missing or is none of ours."""


class BlockItem(SearchItem):
    """Store one block of a segment, which lies in the segment's own partition."""

    block = BinaryAttribute(attr_name="d", legacy_encoding=False, default=b"")


class NewItem(SearchItem):
    """Store the postings that one batch of the stream has added, as one block. `version` is the tokenizer's."""

    block = BinaryAttribute(attr_name="d", legacy_encoding=False, default=b"")
    version = NumberAttribute(attr_name="v")

    def check(self) -> None:
        _ = int(self.version)


class SegmentItem(SearchItem):
    """Store the header of a segment: its blocks and their bytes, and the versions of the tokenizer in it.

    The *fences* say which blocks can hold a term: for each block the shortest text that is greater than all terms
    before the block. `continued` are the blocks that begin with the term with which the one before ends.
    """

    blocks = NumberAttribute(attr_name="b")
    size = NumberAttribute(attr_name="z")
    versions = NumberSetAttribute(attr_name="v")
    packed_fences = BinaryAttribute(attr_name="f", legacy_encoding=False, default=b"")
    born = UnicodeAttribute()

    @property
    def segment(self) -> str:
        return segment_of(str(self.sk))

    @property
    def fences(self) -> list[bytes]:
        return _fences(self.packed_fences, int(self.blocks))[0]

    @property
    def continued(self) -> frozenset[int]:
        return _fences(self.packed_fences, int(self.blocks))[1]

    def span(self, low: bytes, high: bytes) -> range:
        """Return the numbers of the blocks that can hold terms from `low` to `high`, both included."""
        fences = self.fences
        first = bisect_left(fences, low)
        if first == len(fences) or fences[first] != low or first in self.continued:
            first = max(0, first - 1)
        return range(first, max(first, bisect_right(fences, high)))

    def check(self) -> None:
        _ = int(self.size), {*self.versions}
        if len(self.fences) != self.blocks or not self.born:
            raise ValueError(f"{self.sk} is no header")


class DamageItem(SearchItem):
    """Note that the row whose sort key is in this one's is damaged, and merged no more."""


class SegmentsAttribute(Attribute[dict[str, int | None]]):
    """Hold numbers of blocks by segment, None where a writer died and nobody knows."""

    attr_type = MAP

    def serialize(self, value: dict[str, int | None]) -> dict[str, Any]:
        return {s: {"S": _UNKNOWN} if blocks is None else {"N": str(blocks)} for s, blocks in value.items()}

    def deserialize(self, value: dict[str, Any]) -> dict[str, int | None]:
        return {segment: int(blocks["N"]) if "N" in blocks else None for segment, blocks in value.items()}


class GraveItem(SearchItem):
    """Note a segment that is being written, and later which segments are to be deleted.

    Of three forms it has one: `writer` and `at` while the segment is written; `replaced` once it can be read instead
    of those that were merged into it; `of`, from `until` on to be deleted. Both maps have numbers of blocks by segment.
    """

    writer = UnicodeAttribute(null=True)
    at = UnicodeAttribute(null=True)
    replaced = SegmentsAttribute(null=True)
    of = SegmentsAttribute(null=True)
    until = UnicodeAttribute(null=True)


class LockItem(SearchItem):
    """Store the last number that a segment got, and which process may merge until when."""

    last = NumberAttribute(null=True)
    owner = UnicodeAttribute(null=True)
    until = UnicodeAttribute(null=True)


class FrozenItem(SearchItem):
    """Note how far a rebuild is. Segments up to `through` are frozen: merged no more, and removed at the end.

    Tickets up to `reached` are in new segments; `holder` is the process that rebuilds.
    """

    through = UnicodeAttribute()
    reached = NumberAttribute()
    version = NumberAttribute(attr_name="v")
    holder = UnicodeAttribute()
    at = UnicodeAttribute()


_END: Final = b"\xff"  # in no UTF-8, and so in no term
_CONTINUED: Final = b"\xfe"  # likewise
_REMEMBERED: Final = 512  # headers whose fences a process remembers, some 100 KB each at most


def pack_fences(fences: list[bytes], continued: set[int]) -> bytes:
    """Return the fences of a segment as its header holds them."""
    return zlib.compress(_END.join(f + _CONTINUED if n in continued else f for n, f in enumerate(fences)), 9)


@lru_cache(maxsize=_REMEMBERED)
def _fences(packed: bytes, blocks: int) -> tuple[list[bytes], frozenset[int]]:
    ends = zlib.decompress(packed).split(_END) if blocks else []
    continued = frozenset(n for n, end in enumerate(ends) if end.endswith(_CONTINUED))
    return [end.removesuffix(_CONTINUED) for end in ends], continued


class UnreadableRow:
    """A row of the directory that nothing of ours has written so."""

    def __init__(self, sort_key: str) -> None:
        self.sk = sort_key


DirectoryRow = NewItem | SegmentItem | DamageItem | UnreadableRow
UNREADABLE: Final = (KeyError, IndexError, TypeError, ValueError, zlib.error)


class _DirectoryRows:
    """Read the rows within STATE_AND_DAMAGE: one that is damaged stops no reader. Graves and the lock, which lie
    between, are unreadable here, too."""

    table: Final = SEARCH
    gsi: Final = None
    _kinds: Final = Kinds[NewItem | SegmentItem | DamageItem](
        {NEW: NewItem, keys.beginning(_HEADER): SegmentItem, DAMAGE: DamageItem}
    )

    def from_raw_data(self, data: dict[str, Any]) -> DirectoryRow:
        try:
            row = self._kinds.from_raw_data(data)
            row.check()
        except UNREADABLE:
            return UnreadableRow(data["sk"]["S"])
        return row


DIRECTORY_ROWS: Final = _DirectoryRows()


# --- holdings ---


_INDEXED_AGAIN = "the stream of the imported tickets makes it again"


def _directory(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(SEARCH, directory(reader.tenant_id))


def _blocks(reader: Reader) -> Iterator[StoredItem]:
    segments: dict[str, None] = {}
    for _, row, _ in _directory(reader):
        if row["sk"]["S"].startswith((keys.beginning(_HEADER), keys.beginning(_GRAVE))):
            segments[segment_of(row["sk"]["S"])] = None
        for attribute in ("of", "replaced"):
            segments |= dict.fromkeys(row.get(attribute, {}).get("M", {}))
    for named in segments:
        yield from reader.query(SEARCH, segment(reader.tenant_id, named))


declare_holding(
    Holding("search directory", (SEARCH,), _directory, Stage.BESIDE, left_out=_INDEXED_AGAIN),
    Holding("search blocks", (SEARCH,), _blocks, Stage.DERIVED, left_out=_INDEXED_AGAIN),
)


declare_keys(
    SEARCH,
    {
        "search directory": "TENANT#<tenant>|SEARCH, <part>",
        "search segment": "TENANT#<tenant>|SEGMENT#<segment>, <part>",
    },
)
