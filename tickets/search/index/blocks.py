"""Pack sorted entries into a block: what the database stores, and a search reads, as one item.

An entry is a term and its postings. Of each term only what differs from the one before is written, and the whole is
compressed.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from tickets.search.index.postings import put_varint, varint

_LEVEL = 6


def pack(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the block of entries that are sorted by term. A term may have several."""
    out = bytearray()
    before = b""
    for term, postings in entries:
        shared = shared_length(before, term)
        put_varint(out, shared)
        put_varint(out, len(term) - shared)
        put_varint(out, len(postings))
        out += term[shared:]
        out += postings
        before = term
    return zlib.compress(bytes(out), _LEVEL)


def entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Return terms and their postings in order. Raises zlib.error and IndexError for what `pack` did not make."""
    data = zlib.decompress(block)
    at, term = 0, b""
    while at < len(data):
        shared, at = varint(data, at)
        more, at = varint(data, at)
        length, at = varint(data, at)
        term = term[:shared] + data[at : at + more]
        at += more
        yield term, data[at : at + length]
        at += length


def shared_length(one: bytes, other: bytes) -> int:
    """Return how many bytes two terms have in common at their beginnings."""
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    return next(i for i in range(most) if one[i] != other[i])
