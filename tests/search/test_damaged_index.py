"""What is damaged in an index is named and left where it is, everything else is merged, and nothing stays half done."""

from __future__ import annotations

from typing import Any

import pytest

from portal.errors import TransactionRefused
from tests.search.memory_store import MemoryStore
from tests.search.test_merging import (
    LAST,
    PREPARED,
    everything,
    expected,
    headers,
    prepared_store,
    read_blocks,
    small,
    write,
)
from tickets.search import stored
from tickets.search.index import merging, postings

__all__ = ["small"]


def noted(store: MemoryStore) -> list[str]:
    return [key.removeprefix(stored.DAMAGE) for key in store.directory if key.startswith(stored.DAMAGE)]


def live_or_dead(store: MemoryStore) -> set[tuple[str, int]]:
    """The blocks that some header or grave names."""
    graves = [grave.of for grave in store.graves()]
    return read_blocks(store) | {(s, n) for dead in graves for s, many in dead.items() for n in range(many or 0)}


def test_a_segment_that_lacks_a_block_is_left_and_all_others_are_merged(caplog: pytest.LogCaptureFixture) -> None:
    store = prepared_store(PREPARED, LAST)
    lost = max(headers(store), key=lambda header: header.size)
    store.delete_blocks(lost.segment, [lost.blocks - 1])
    graves = len(store.graves())
    assert merging.merge_due(store) > 0
    left = [header.segment for header in headers(store)]
    assert (lost.segment in left, noted(store)) == (True, [stored.header(lost.segment)])
    assert not store.new()
    assert set(store.stored_blocks) <= live_or_dead(store), "what was written in vain is deleted"
    assert len(store.graves()) == graves, "nor is there a grave of it"
    writes = store.engine.writes
    assert merging.merge_due(store) == 0
    assert store.engine.writes == writes, "nothing is tried again"
    for number in range(40, 130):
        write(store, number)
        merging.merge_due(store)
    assert noted(store) == [stored.header(lost.segment)]
    del store.directory[stored.header(lost.segment)]
    assert everything(store)["all"] >= {*range(37, 130)}
    named = [record.getMessage() for record in caplog.records if "is damaged" in record.getMessage()]
    assert len(named) == 1
    assert stored.header(lost.segment) in named[0]


def block(*terms: bytes) -> dict[str, Any]:
    return {"B": postings.pack_block((term, postings.encode({7: 1})) for term in terms)}


@pytest.mark.parametrize(
    ("sort_key", "row"),
    [
        ("N#ff", {"d": {"B": b"no block"}, "v": {"N": "1"}}),
        ("N#ff", {"d": {"B": postings.pack_block([(b"red", b"\x7f")] * 2)}, "v": {"N": "1"}}),
        ("N#ff", {"d": block(b"yellow", b"all"), "v": {"N": "1"}}),
        ("N#ff", {"d": {"S": "text"}, "v": {"N": "1"}}),
        ("N#ff", {"v": {"N": "1"}}),
        ("N#ff", {"d": block()}),
        ("S#9999999999", {"b": {"N": "1"}, "f": {"B": b"no fences"}}),
        ("R", {}),
    ],
)
def test_a_row_that_cannot_be_read_stops_no_merge_and_is_named_once(
    sort_key: str, row: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    store = MemoryStore()
    store.put_raw(sort_key, row)
    for number in range(1, 40):
        write(store, number)
        merging.merge_due(store)
    assert sort_key in store.directory, "it is left where it is"
    assert len(store.new()) < merging.NEW_ITEMS + 1
    assert noted(store) == [sort_key]
    assert caplog.text.count("is damaged") == 1
    del store.directory[sort_key]
    assert everything(store) == expected(range(1, 40))


def test_a_merge_that_was_overtaken_leaves_nothing_of_its_own() -> None:
    """Somebody else has merged one of the segments while this process thought that it had the lock."""
    store = prepared_store(PREPARED, LAST)

    def overtaken(operation: str, request: dict[str, Any]) -> None:
        if operation == "TransactWriteItems":
            raise TransactionRefused([])

    graves = set(live_or_dead(store))
    store.engine.before_write = overtaken
    assert merging.merge_due(store) == 0
    assert set(store.stored_blocks) <= graves
    assert everything(store) == expected(range(1, 40))
