"""Form the keys of the search index.

What a search reads first lies together: what is new, then the headers of the segments. The order is part of the proof
that no reader misses anything, see `index/segments.py`: what a merge reads sorts before what it writes.
"""

from __future__ import annotations

from typing import Final

from portal.schema import keys

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
