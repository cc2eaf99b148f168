"""Merging changes nothing that is found, whatever dies in the midst of it and whoever reads meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal import clock
from portal.errors import TransactionRefused
from tests.search.memory_engine import Died
from tests.search.memory_store import MemoryStore
from tests.search.reading import looked_up
from tickets.search import stored
from tickets.search.index import indexing, merging, postings, publishing, segments
from tickets.search.index.fragments import Fragment
from tickets.search.index.index_store import IndexLock, LockLost
from tickets.search.index.postings import Places
from tickets.search.index.segments import SegmentWriter
from tickets.search.stored import GraveItem, SegmentItem

WORDS = ("blue", "green", "red", "yellow", "zinc")


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is due early, so that few writes make many merges."""
    monkeypatch.setattr(merging, "NEW_ITEMS", 3)
    monkeypatch.setattr(merging, "NEW_BYTES", 300)
    monkeypatch.setattr(segments, "block_limit", lambda expected: 90)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Let time go by."""
    now, gone = clock.now, [timedelta()]
    monkeypatch.setattr(clock, "now", lambda: now() + gone[0])

    def go(**by: float) -> None:
        gone[0] += timedelta(**by)

    return go


def text(number: int, *words: str) -> Fragment:
    return Fragment(number, Places.TITLE, False, dict.fromkeys(words, 1))


def ticket(number: int) -> Fragment:
    """Each ticket has its own word, the words of its colours, and one that all have."""
    return text(number, f"own{number}", WORDS[number % 5], WORDS[number % 3], "all")


def write(store: MemoryStore, number: int) -> None:
    indexing.add(store, f"{number:024x}", [ticket(number)])


def filled(tickets: range) -> MemoryStore:
    store = MemoryStore()
    for number in tickets:
        write(store, number)
        merging.merge_due(store)
    return store


def everything(store: MemoryStore) -> dict[str, set[int]]:
    return {word: set(looked_up(store, word.encode())) for word in (*WORDS, "all")}


def expected(tickets: range) -> dict[str, set[int]]:
    return {word: {n for n in tickets if word in ticket(n).terms} for word in (*WORDS, "all")}


def headers(store: MemoryStore) -> list[SegmentItem]:
    return [row for row in store.rows(stored.STATE) if isinstance(row, SegmentItem)]


def empty(store: MemoryStore, segment: str) -> SegmentItem:
    """The header of a segment without blocks."""
    writer = SegmentWriter(store, segment)
    return writer.finish([1])


def read_blocks(store: MemoryStore) -> set[tuple[str, int]]:
    return {(header.segment, n) for header in headers(store) for n in range(int(header.blocks))}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=60))
def test_what_is_found_is_what_was_added_however_it_was_merged(tickets: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "NEW_ITEMS", 3)
        patch.setattr(segments, "block_limit", lambda expected: 90)
        store = MemoryStore()
        for number in tickets:
            write(store, number)
            merging.merge_due(store)
        for number in set(tickets):
            assert looked_up(store, f"own{number}".encode()) == {
                number: postings.posting(Places.TITLE, 1, 4 - (number % 15 < 3))
            }
        assert set(looked_up(store, b"all")) == set(tickets)


def test_segments_are_few_and_what_is_new_is_little() -> None:
    store = filled(range(1, 130))
    new = [row for row in store.rows(stored.STATE) if str(row.sk).startswith(stored.NEW)]
    classes = [merging.size_class(header.size) for header in headers(store)]
    assert len(new) < merging.NEW_ITEMS
    assert max(classes.count(level) for level in classes) < merging.SEGMENTS
    assert everything(store) == expected(range(1, 130))


def test_blocks_of_merged_segments_are_deleted_after_a_while(later: Any) -> None:
    store = filled(range(1, 60))
    assert set(store.stored_blocks) > read_blocks(store), "a reader may still hold the headers of before"
    later(seconds=61)
    write(store, 60), write(store, 61), write(store, 62)
    merging.merge_due(store)
    publishing.clear(store, at_once=True)
    assert set(store.stored_blocks) == read_blocks(store)
    assert store.graves() == []
    assert everything(store) == expected(range(1, 63))


def prepared_store(prepared: range, last: range) -> MemoryStore:
    """As many segments as a merge needs, all but the last tickets merged into them."""
    store = filled(prepared)
    for number in last:
        write(store, number)
    return store


PREPARED, LAST = range(1, 37), range(37, 40)


def test_a_death_after_any_write_loses_nothing_and_leaves_nothing(later: Any) -> None:
    all_tickets = range(1, 40)
    whole = prepared_store(PREPARED, LAST)
    begun, graves = whole.engine.writes, len(whole.graves())
    later(seconds=61)
    merging.merge_due(whole)
    in_all = whole.engine.writes - begun
    assert graves
    assert in_all > 20
    assert len(headers(whole)) == 1
    for writes in range(in_all):
        store = prepared_store(PREPARED, LAST)
        later(seconds=61)
        store.engine.writes_left = store.engine.writes + writes
        with pytest.raises(Died):
            merging.merge_due(store)
        store.engine.writes_left = float("inf")
        assert everything(store) == expected(all_tickets), f"after {writes} writes"
        later(seconds=61)  # the lock of the dead runs out
        merging.merge_due(store)
        assert everything(store) == expected(all_tickets), f"after {writes} writes and another merge"
        later(hours=2)
        with IndexLock(store) as lock:
            assert lock.take()
            publishing.clear(store)
        assert set(store.stored_blocks) == read_blocks(store), f"after {writes} writes"
        assert store.graves() == []


def test_a_large_batch_that_dies_at_any_write_comes_again_and_leaves_nothing(
    later: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "LARGE", 1)
    whole = MemoryStore()
    write(whole, 7)
    for writes in range(whole.engine.writes):
        store = MemoryStore()
        store.engine.writes_left = writes
        with pytest.raises(Died):
            write(store, 7)
        store.engine.writes_left = float("inf")
        write(store, 7)
        assert looked_up(store, b"own7")
        later(hours=1, seconds=1)
        publishing.clear(store)
        later(hours=1, seconds=1)
        publishing.clear(store)
        assert set(store.stored_blocks) == read_blocks(store)


def test_a_reader_on_its_way_misses_nothing_whatever_is_merged_meanwhile() -> None:
    """The Query takes its rows one by one, and after one of them a merge happens."""
    for stop in range(6):
        store, pages = prepared_store(PREPARED, LAST), iter(range(100))

        def merge_once(store: MemoryStore = store, pages: Iterator[int] = pages, stop: int = stop) -> None:
            if next(pages) == stop:
                store.engine.after_query_page, store.engine.page = lambda: None, 1_000
                merging.merge_due(store)
                store.engine.page = 1

        store.engine.page, store.engine.after_query_page = 1, merge_once
        assert set(looked_up(store, b"all")) == expected(range(1, 40))["all"]
        assert next(pages) > stop


def test_a_worker_that_was_taken_for_dead_publishes_nothing() -> None:
    store = prepared_store(PREPARED, LAST)
    before = headers(store)
    segment = publishing.begin(store, "merge")
    publishing.clear(store)
    header = empty(store, segment)
    with pytest.raises(TransactionRefused):
        publishing.publish(store, "merge", header, merged=before)
    assert [header.sk for header in headers(store)] == [header.sk for header in before]


def test_what_was_merged_is_read_until_what_holds_it_is() -> None:
    """A Query may see one write of a transaction before another: so the old goes after the new has come."""
    seen: list[set[str]] = []

    store = MemoryStore()
    store.engine.before_write = lambda *_: seen.append({header.segment for header in headers(store)})
    for number in range(1, 40):
        write(store, number)
        merging.merge_due(store)
    seen.append({header.segment for header in headers(store)})
    gone = [(before, after) for before, after in pairwise(seen) if after - before]
    assert len(gone) > 5
    assert all(before < after for before, after in gone)


def test_of_two_merges_of_the_same_segments_one_is_done() -> None:
    store = filled(PREPARED)
    before = headers(store)
    one, other = publishing.begin(store, "merge"), publishing.begin(store, "merge")
    publishing.publish(store, "merge", empty(store, one), merged=before)
    with pytest.raises(TransactionRefused):
        publishing.publish(store, "merge", empty(store, other), merged=before)
    assert [header.segment for header in headers(store)] == [one]


def test_a_batch_that_is_being_written_is_left_alone_by_who_clears() -> None:
    store = MemoryStore()
    segment = publishing.begin(store, "batch")
    publishing.clear(store)
    publishing.publish(store, "batch", empty(store, segment))
    assert [header.segment for header in headers(store)] == [segment]


def test_while_one_process_merges_another_does_not_until_the_first_was_silent_for_too_long(later: Any) -> None:
    store = prepared_store(PREPARED, LAST)
    lock = IndexLock(store)
    assert lock.take()
    for _ in range(3):
        later(seconds=50)
        lock.keep()
        assert merging.merge_due(store) == 0
    later(seconds=61)
    assert merging.merge_due(store) > 0
    store.engine.partitions.clear()
    later(seconds=50)
    with pytest.raises(LockLost):
        lock.keep()
    assert store.directory == {}, "nor is a lock made again that was deleted with its index"


def test_a_merge_whose_index_is_deleted_meanwhile_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    store = prepared_store(PREPARED, LAST)
    write = store.put_blocks

    def deleted_first(segment: str, blocks: Any) -> None:
        store.engine.partitions.clear()
        write(segment, blocks)

    monkeypatch.setattr(store, "put_blocks", deleted_first)
    merging.merge_due(store)
    assert (store.directory, store.stored_blocks) == ({}, {})


def test_terms_of_several_tokenizers_are_said_in_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    write(store, 1)
    monkeypatch.setattr("tickets.search.tokenizer.VERSION", 2)
    write(store, 2), write(store, 3)
    merging.merge_due(store)
    assert [header.versions for header in headers(store)] == [{1, 2}]


def test_a_writer_that_publishes_while_somebody_takes_it_for_dead_keeps_its_blocks() -> None:
    class Publishing(MemoryStore):
        """The writer is done just when its note has been read."""

        def graves(self) -> list[GraveItem]:
            found = super().graves()
            publishing.publish(self, "merge", writer.finish([1]))
            return found

    store = Publishing()
    segment = publishing.begin(store, "merge")
    writer = SegmentWriter(store, segment)
    store.put_blocks(segment, {0: b"red"})
    publishing.clear(store, at_once=True)
    assert (segment, 0) in store.stored_blocks
