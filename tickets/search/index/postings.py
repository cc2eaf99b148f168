"""Write down which tickets have a term, where, and how much it says about them: some two bytes for each ticket.

A posting is one byte for a ticket: the lower four bits are the places that have the term, the upper four its impact in
the best of them. Two postings of a ticket are merged by taking all places and the greater impact. In which order, and
how often, the same is merged makes no difference: so no order, repetition or death of a worker can falsify an index.

Layout: the number of tickets; the newest ticket; then the gaps to the older ones; then one byte for each ticket. Of
few tickets the gaps are varints. Of many they are split in planes, all lowest bytes first, because those compress well
and are read without a loop.
"""

from __future__ import annotations

import math
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping
from enum import IntFlag
from itertools import accumulate, pairwise
from typing import Final

ENTRY_LIMIT: Final = 500  # postings of one entry: a frequent term has several, so that its blocks are full
_FEW: Final = 8
_PLANES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}  # bytes of a gap: the array type that reads it
_LEVELS: Final = 15
_IMPACT_MASK: Final = 0xF0
_PLACES_MASK: Final = 0x0F
_NOTE_MARK: Final = b"\x00n"  # sorts right behind the word itself, before every longer one


class Places(IntFlag):
    """The parts of a ticket in which a term stands. A note counts as a comment, under a term of its own."""

    TITLE = 1
    DESCRIPTION = 2
    COMMENT = 4
    LABEL = 8


# Of each place its weight, and the number of distinct terms that is usual in it.
_WEIGHTS: Final = {
    Places.TITLE: (4.0, 6),
    Places.DESCRIPTION: (1.5, 25),
    Places.COMMENT: (1.0, 25),
    Places.LABEL: (3.0, 3),
}


def noted(term: bytes) -> bytes:
    """Return the term under which the same word of an internal note is kept: who may not read notes never asks it."""
    return term + _NOTE_MARK


def impact(place: Places, times: int, length: int) -> int:
    """Return 0 to 15: how much a term says that stands `times` times among `length` distinct terms of one place."""
    weight, usual = _WEIGHTS[place]
    level = 2 * math.log2(4 * weight * times / (0.4 + 0.6 * length / usual))
    return max(0, min(_LEVELS, round(level)))


def posting(place: Places, times: int, length: int) -> int:
    """Return the byte for one ticket."""
    return int(place) | impact(place, times, length) << 4


def merged(several: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Put postings of one term together: by ticket all places, and the greatest impact."""
    merged: dict[int, int] = {}
    for one in several:
        if not merged:
            merged = dict(one)
            continue
        for ticket, byte in one.items():
            known = merged.get(ticket)
            merged[ticket] = byte if known is None else _both(known, byte)
    return merged


def _both(one: int, other: int) -> int:
    return (one | other) & _PLACES_MASK | max(one & _IMPACT_MASK, other & _IMPACT_MASK)


def entries(postings: Mapping[int, int]) -> list[bytes]:
    """Encode any number of postings in as many entries as it takes, newest tickets first."""
    if len(postings) <= ENTRY_LIMIT:
        return [encode(postings)]
    tickets = sorted(postings, reverse=True)
    starts = range(0, len(tickets), ENTRY_LIMIT)
    return [encode({ticket: postings[ticket] for ticket in tickets[at : at + ENTRY_LIMIT]}) for at in starts]


def encode(postings: Mapping[int, int]) -> bytes:
    """Encode one entry: bytes by ticket, at least one."""
    tickets = sorted(postings, reverse=True)
    gaps = [newer - older for newer, older in pairwise(tickets)]
    out = bytearray()
    put_varint(out, len(tickets))
    put_varint(out, tickets[0])
    if len(tickets) < _FEW:
        for gap in gaps:
            put_varint(out, gap)
    else:
        width = next(width for width in _PLANES if max(gaps) < 1 << 8 * width)
        out.append(width)
        for plane in range(width):
            out += bytes([gap >> 8 * plane & 255 for gap in gaps])
    out += bytes([postings[ticket] for ticket in tickets])
    return bytes(out)


def decode(entry: bytes, lowering: bytes | None = None) -> dict[int, int]:
    """Return the postings of an entry, newest ticket first.

    `lowering` says what each byte counts instead, and 0 for one that does not count: in C, because a frequent word has
    thousands.
    """
    count, at = varint(entry, 0)
    ticket, at = varint(entry, at)
    if count < _FEW:
        tickets = [ticket]
        for _ in range(count - 1):
            gap, at = varint(entry, at)
            ticket -= gap
            tickets.append(ticket)
    else:
        gaps = _gaps(entry[at + 1 :], width=entry[at], many=count - 1)
        tickets = list(accumulate(gaps, int.__sub__, initial=ticket))
        at += 1 + entry[at] * (count - 1)
    found = entry[at : at + count]
    if lowering is None:
        return dict(zip(tickets, found, strict=True))
    return {number: byte for number, byte in zip(tickets, found.translate(lowering), strict=True) if byte}


def _gaps(planes: bytes, *, width: int, many: int) -> Iterable[int]:
    if width == 1:
        return planes[:many]
    mixed = bytearray(many * width)
    for plane in range(width):
        mixed[plane::width] = planes[plane * many : (plane + 1) * many]
    gaps = array(_PLANES[width], bytes(mixed))
    if sys.byteorder == "big":
        gaps.byteswap()
    return gaps


# --- numbers of any size, small ones in one byte ---


def put_varint(out: bytearray, number: int) -> None:
    """Append a whole number from 0: seven bits a byte, the lowest first."""
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def varint(data: bytes, at: int) -> tuple[int, int]:
    """Read a number at a position; return it, and the position behind it. Raises IndexError at the end."""
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number, at
        shift += 7


# --- blocks of entries ---


_LEVEL = 6


def pack_block(entries: Iterable[tuple[bytes, bytes]]) -> bytes:
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


def block_entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
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
