"""A header says which blocks can hold a term: never too few, and rarely one too many."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.search.memory_store import MemoryStore
from tickets.search import stored
from tickets.search.index import postings, segments
from tickets.search.index.index_store import block_overhead
from tickets.search.index.segments import IndexState, SegmentWriter
from tickets.search.stored import SegmentItem

TERMS = st.sets(st.binary(max_size=6).filter(lambda term: not {0xFE, 0xFF} & set(term)), min_size=1, max_size=60)


def written(store: MemoryStore, index: dict[bytes, list[bytes]], *, expected: int = 0) -> SegmentItem:
    writer = SegmentWriter(store, stored.segment_id(1), expected=expected)
    for term in sorted(index):
        writer.add(term, index[term])
    header = writer.finish([1])
    store.put(header)
    return IndexState.of(store.rows(stored.STATE)).headers[0]


def words(many: int) -> dict[bytes, list[bytes]]:
    chance = random.Random(7)  # noqa: S311  # the same words in every run
    names = {"".join(chance.choices("etaoinshrdlu", k=chance.randint(3, 11))) for _ in range(many)}
    return {
        name.encode(): [postings.encode({chance.randint(1, 30_000): 33 for _ in range(3)})] for name in sorted(names)
    }


@given(TERMS, st.binary(max_size=3), st.binary(max_size=3), st.data())
def test_all_that_lies_between_two_terms_lies_in_the_span(
    terms: set[bytes], low: bytes, high: bytes, data: st.DataObject
) -> None:
    index = {term: [data.draw(st.binary(min_size=30, max_size=60)) for _ in range(1 + len(term) % 4)] for term in terms}
    store = MemoryStore()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "block_limit", lambda expected: 120)
        header = written(store, index)
    low, high = min(low, high), max(low, high)
    for first, last in [(low, high), *((term, term) for term in terms)]:
        span = header.span(first, last)
        found = [
            e
            for n in span
            for e in postings.block_entries(store.stored_blocks[header.segment, n])
            if first <= e[0] <= last
        ]
        assert found == [(term, entry) for term in sorted(terms) if first <= term <= last for entry in index[term]]


def test_a_rare_word_is_in_one_block_and_a_word_that_fills_blocks_in_as_many_as_it_fills() -> None:
    index = words(4_000)
    index[b"sea"] = [random.Random(n).randbytes(2000) for n in range(8)]  # noqa: S311  # nothing to compress
    store = MemoryStore()
    header = written(store, index)
    assert {len(header.span(term, term)) for term in index if term != b"sea"} == {1}
    holding = [
        n
        for (_, n), block in store.stored_blocks.items()
        if any(term == b"sea" for term, _ in postings.block_entries(block))
    ]
    assert len(holding) > 3
    assert list(header.span(b"sea", b"sea")) == holding


@pytest.mark.parametrize(("expected", "limit"), [(0, 4096), (20 << 20, 8192), (100 << 20, 16_384)])
def test_blocks_are_full_and_larger_in_larger_segments_and_fences_are_short(expected: int, limit: int) -> None:
    store = MemoryStore()
    header = written(store, words(16_000), expected=expected)
    sizes = [len(block) + block_overhead() for block in store.stored_blocks.values()]
    assert 0.85 * limit < sum(sizes[:-1]) / len(sizes[:-1]) <= max(sizes) <= limit
    assert sum(map(len, header.fences)) / header.blocks < 6
    assert all(one <= other for one, other in pairwise(header.fences))


def test_what_is_new_sorts_before_the_headers_and_nothing_else_is_read_with_them() -> None:
    low, high = stored.STATE
    assert low < stored.new("ff") < stored.header(stored.segment_id(1)) < stored.header(stored.segment_id(10)) < high
    assert not any(low <= key <= high for key in (stored.LOCK, stored.grave(stored.segment_id(1))))
