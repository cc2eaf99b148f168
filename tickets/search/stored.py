"""Declare the table of the search index, which tenants read and only the stream worker writes, and form its keys.

The items that a search reads first are adjacent: new postings, then the headers of the segments. The order is part of
the proof that no reader misses anything, see `index/segments.py`: what a merge reads sorts before what it writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from portal.schema import keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

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

NEW: Final = keys.beginning(_NEW)
DAMAGE: Final = keys.beginning(_DAMAGE)
# Bounds, both included: of all graves, of what a search reads, of what is new in that, and of all with the notes of
# damage before it.
GRAVES: Final = (keys.beginning(_GRAVE), keys.joined(_GRAVE, "~"))
CHECK: Final = "SEARCH"  # sort key, beside the recounts, of how far a check of the index has come
STATE: Final = (NEW, keys.joined(_HEADER, "~"))
ALL_NEW: Final = (NEW, keys.joined(_NEW, "~"))
STATE_AND_DAMAGE: Final = (DAMAGE, STATE[1])
LAST_BLOCK: Final = "9" * _BLOCK_DIGITS


def directory(tenant_id: str) -> str:
    """Return the partition key of what is new, of the headers of the segments, of graves and lock."""
    return keys.collection(tenant_id, _DIRECTORY)


def segment(tenant_id: str, segment_id: str) -> str:
    """Return the partition key of the blocks of one segment."""
    return keys.collection(tenant_id, _SEGMENT, segment_id)


def block(number: int) -> str:
    """Return the sort key of a block, which is counted from 0 within its segment."""
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


def segment_named(sort_key: str) -> str:
    """Return the segment id in what `header` or `grave` formed, "" in any other sort key of the directory."""
    return segment_of(sort_key) if sort_key.startswith((keys.beginning(_HEADER), keys.beginning(_GRAVE))) else ""


def block_of(partition_key: str, sort_key: str) -> tuple[str, int]:
    """Return the segment id and the number of a block, from keys that `segment` and `block` formed."""
    return keys.split(partition_key)[-1], int(sort_key)


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

_INDEXED_AGAIN = "the stream of the imported tickets makes it again"


def _directory(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(SEARCH, directory(reader.tenant_id))


def _blocks(reader: Reader) -> Iterator[StoredItem]:
    segments: dict[str, None] = {}
    for _, row, _ in _directory(reader):
        if own := segment_named(row["sk"]["S"]):
            segments[own] = None
        for attribute in ("of", "replaced"):
            segments |= dict.fromkeys(row.get(attribute, {}).get("M", {}))
    for named in segments:
        yield from reader.query(SEARCH, segment(reader.tenant_id, named))


declare_holding(
    Holding("search directory", (SEARCH,), _directory, Stage.BESIDE, left_out=_INDEXED_AGAIN),
    Holding("search blocks", (SEARCH,), _blocks, Stage.DERIVED, left_out=_INDEXED_AGAIN),
)
