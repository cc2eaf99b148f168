"""Measure what an index of very many tickets weighs: the product's own code over a store in memory.

Two trials. One writes tickets and comments at a given rate, a batch a second, and merges as the worker does; it says
what a change costs, how large items and headers get, and how much comes to one partition in one second. The other one
writes a single segment as large as the index of a million tickets, from made-up entries of the measured size, because
making it change by change takes an hour: it says how large the items and the header of that are.

Words are drawn as people's are: a few very often, and the more text, the more words that were never there before.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from portal.dynamo.meter import item_size
from proofs.search.weighing_store import TENANT, WeighingStore
from tickets.search import keys
from tickets.search.index import indexing, merging, publishing
from tickets.search.index.fragments import Fragment
from tickets.search.index.postings import Places
from tickets.search.index.segment_writing import SegmentWriter
from tickets.search.index.segments import IndexState

ITEM_LIMIT: Final = 16 * 1024  # bytes
HEADER_LIMIT: Final = 64 * 1024  # bytes
PARTITION_LIMIT: Final = 1000  # write units a second; AWS, "Designing partition keys to distribute your workload"
TITLE_WORDS, TEXT_WORDS, COMMENTS = 6, 40, 1.7  # of a ticket: terms in each text, and comments on average
_LETTERS: Final = "etaoinshrdlucmfw"
_ENTRY_BYTES: Final = (4, 4000)  # of postings, from a word that one ticket has to a full entry


@dataclass(frozen=True)
class Weighed:
    """Hold what writing `tickets` with `changes` changes came to; sizes in bytes.

    `busiest` is the most write units that came to one partition in one second, `query_units` what the first Query of
    a search reads, eventually consistently.
    """

    tickets: int
    changes: int
    postings: int
    segments: int
    blocks: int
    index_bytes: int
    largest_item: int
    largest_header: int
    write_units: int
    busiest: int
    query_units: float

    @property
    def units_a_change(self) -> float:
        return self.write_units / self.changes


def grow(tickets: int, *, rate: int, seed: int, advance: Callable[[int], object] = lambda steps: None) -> Weighed:
    """Write so many tickets and their comments, `rate` changes a second, and merge beside it."""
    store, changes, postings = WeighingStore(), 0, 0
    for batch in _batches(tickets, rate=rate, rng=random.Random(seed)):  # noqa: S311  # it has to be repeatable
        indexing.add(store, f"{changes:024x}", batch)
        changes += len(batch)
        postings += sum(len(fragment.terms) for fragment in batch)
        merging.merge_due(store)
        store.second = int(store.second) + 1.0
        advance(sum(1 for fragment in batch if fragment.place is Places.TITLE))
    publishing.clear(store, at_once=True)
    state = IndexState.of(store.rows(*keys.STATE))
    read = sum(map(len, state.tail)) + sum(item_size(row) for row in store.rows(keys.header("0"), keys.STATE[1]))
    return Weighed(
        tickets=tickets,
        changes=changes,
        postings=postings,
        segments=len(state.headers),
        blocks=sum(header.blocks for header in state.headers),
        index_bytes=sum(header.size for header in state.headers),
        largest_item=store.largest_item,
        largest_header=store.largest_header,
        write_units=store.write_units,
        busiest=max(store.by_second.values()),
        query_units=-(-read // 4096) / 2,
    )


@dataclass(frozen=True)
class LargestSegment:
    """One segment of `index_bytes` bytes in `blocks` blocks: its largest item, its header, and the most write units
    that came to its partition in one second."""

    index_bytes: int
    blocks: int
    largest_item: int
    header_bytes: int
    busiest: int


def largest_segment(
    index_bytes: int, *, seed: int, advance: Callable[[int], object] = lambda steps: None
) -> LargestSegment:
    """Write one segment of so many bytes. `advance` gets bytes."""
    rng, store = random.Random(seed), WeighingStore()  # noqa: S311  # it has to be repeatable
    writer = SegmentWriter(store, keys.segment_id(1), expected=index_bytes)
    for term, entry in _entries(index_bytes, rng):
        writer.add(term, [entry])
        advance(len(entry))
    header = writer.finish([1])
    row: dict[str, Any] = {"pk": {"S": keys.directory(TENANT)}, "sk": {"S": keys.header(header.segment)}}
    return LargestSegment(
        index_bytes=header.size,
        blocks=header.blocks,
        largest_item=store.largest_item,
        header_bytes=item_size({**row, **header.attributes()}),
        busiest=max(store.by_second.values()),
    )


def limits(grown: Weighed, largest: LargestSegment) -> tuple[dict[str, int], list[str]]:
    """Return what is bounded, and the names of what is out of bounds."""
    found = {
        "largest item": max(grown.largest_item, largest.largest_item),
        "largest header": max(grown.largest_header, largest.header_bytes),
        "write units of one partition in one second": max(grown.busiest, largest.busiest),
    }
    bounds = (ITEM_LIMIT, HEADER_LIMIT, PARTITION_LIMIT)
    return found, [name for (name, value), bound in zip(found.items(), bounds, strict=True) if value > bound]


def _batches(tickets: int, *, rate: int, rng: random.Random) -> Iterator[list[Fragment]]:
    """Give what comes second by second: each ticket is title and description, and a comment goes to a new one."""
    held: list[Fragment] = []
    for number in range(1, tickets + 1):
        held.append(Fragment(number, Places.TITLE, False, _terms(TITLE_WORDS, number, rng)))
        held.append(Fragment(number, Places.DESCRIPTION, False, _terms(TEXT_WORDS, number, rng)))
        for _ in range(int(COMMENTS) + (rng.random() < COMMENTS % 1)):
            at = max(1, number - int(rng.expovariate(1 / 200)))
            held.append(Fragment(at, Places.COMMENT, rng.random() < 0.1, _terms(TEXT_WORDS, number, rng)))
        if len(held) >= rate:
            yield held
            held = []
    if held:
        yield held


def _terms(many: int, number: int, rng: random.Random) -> dict[str, int]:
    """Return words by Zipf's law out of a vocabulary that grows by Heaps' law."""
    vocabulary = 3000 + 40 * number**0.7
    return {_word(int(vocabulary ** rng.random())): rng.choice((1, 1, 1, 2, 3)) for _ in range(many)}


def _word(rank: int) -> str:
    """Return the word of a rank: rare ones are longer."""
    letters = [_LETTERS[(rank * 7919 >> 4 * n) % len(_LETTERS)] for n in range(5)]
    return "".join(letters) + format(rank, "x").translate(str.maketrans("0123456789", "aeiourstln"))


def _entries(index_bytes: int, rng: random.Random) -> Iterator[tuple[bytes, bytes]]:
    """Yield terms in order whose compressed postings have so many bytes together; most are of rare words."""
    average = (_ENTRY_BYTES[1] - _ENTRY_BYTES[0]) / math.log(_ENTRY_BYTES[1] / _ENTRY_BYTES[0])
    many = int(index_bytes / (average + 6))
    words = sorted({_word(rank) for rank in range(1, many + 1)})
    for word in words:
        size = int(_ENTRY_BYTES[0] * (_ENTRY_BYTES[1] / _ENTRY_BYTES[0]) ** rng.random())
        yield word.encode(), rng.randbytes(size)
