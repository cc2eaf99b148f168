"""What lies in a block comes out as it went in, and merging does not depend on order, repetition or grouping."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tickets.search.index import postings
from tickets.search.index.postings import ENTRY_LIMIT, Places

POSTINGS = st.dictionaries(st.integers(1, 1 << 31), st.integers(0, 255), min_size=1, max_size=40)
NEIGHBOURS = st.dictionaries(st.integers(1, 300), st.integers(0, 255), min_size=1, max_size=120)
TERMS = st.binary(max_size=300)
GAPS = [{1 + n * gap: n for n in range(9)} for gap in (1, 255, 256, 65_535, 65_536, 16_777_216, 1 << 40)]


@given(st.one_of(POSTINGS, NEIGHBOURS, st.sampled_from(GAPS)))
@example(GAPS[-1])
def test_postings_come_out_as_they_went_in_the_newest_first(known: dict[int, int]) -> None:
    found = postings.decode(postings.encode(known))
    assert found == known
    assert list(found) == sorted(known, reverse=True)


def test_a_frequent_term_has_several_entries_of_limited_length_and_two_bytes_a_ticket() -> None:
    known = dict.fromkeys(range(1, 2 * ENTRY_LIMIT + 2), 1)
    entries = postings.entries(known)
    several = [postings.decode(entry) for entry in entries]
    assert [len(one) for one in several] == [ENTRY_LIMIT, ENTRY_LIMIT, 1]
    assert postings.merged(several) == known
    assert sum(map(len, entries)) < 2.1 * len(known)


@given(st.lists(NEIGHBOURS, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_merging_is_the_same_in_any_order_and_however_often(several: list[dict[int, int]], chance) -> None:  # type: ignore[no-untyped-def]
    once = postings.merged(several)
    again = [*several, *several]
    chance.shuffle(again)
    half = len(again) // 2
    assert postings.merged([postings.merged(again[:half]), postings.merged(again[half:])]) == once


def test_merging_takes_all_places_and_the_greater_impact() -> None:
    assert postings.merged([{7: Places.TITLE | 9 << 4}, {7: Places.COMMENT | 3 << 4}]) == {7: 5 | 9 << 4}
    assert postings.impact(Places.TITLE, 1, 6) > postings.impact(Places.COMMENT, 1, 100)


@given(st.lists(st.tuples(TERMS, TERMS), max_size=30))
def test_a_block_gives_back_its_entries(entries: list[tuple[bytes, bytes]]) -> None:
    entries.sort(key=lambda entry: entry[0])
    assert list(postings.block_entries(postings.pack_block(entries))) == entries
