"""The process that indexes merges as well, beside the stream: each tenant for itself, the short before the long."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import ClientError

from portal import clock
from portal.dynamo.placement import Placement
from portal.errors import Throttled, Unavailable
from portal.streams import stream_source
from portal.streams.stream_source import POOLED, StreamSource
from tests.search.memory_store import MemoryStore
from tests.search.test_merging import everything, expected, headers, prepared_store, small, write
from tests.support.world import World
from tickets.search.index import merge_follower, merging, publishing
from tickets.search.index.index_store import IndexStore
from tickets.search.index.merge_follower import LOOK_ADDITIONS, LOOK_BYTES, WAIT_LIMIT, MergeFollower

A, B = "a" * 32, "b" * 32

__all__ = ["small"]


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> dict[str, MemoryStore]:
    """The index of each tenant in memory, with something to merge."""
    found = {A: prepared_store(range(1, 37), range(37, 40)), B: prepared_store(range(1, 4), range(4, 7))}
    monkeypatch.setattr(merge_follower, "IndexStore", found.__getitem__)
    return found


def test_an_index_is_looked_at_after_some_additions(stores: dict[str, MemoryStore]) -> None:
    follower = MergeFollower()
    for _ in range(LOOK_ADDITIONS):
        follower.note({A: 1})
    assert follower.turn() > 0
    assert len(headers(stores[A])) == 1
    assert len(headers(stores[B])) == 1, "nobody has added to it"


def test_an_index_is_looked_at_after_much_text(stores: dict[str, MemoryStore]) -> None:
    follower = MergeFollower()
    follower.note({B: LOOK_BYTES})
    assert follower.turn() > 0
    assert follower.turn() == 0, "until something is added"


def test_processes_that_live_for_one_batch_look_now_and_then(stores: dict[str, MemoryStore]) -> None:
    looks = 0
    for _ in range(40 * LOOK_ADDITIONS):
        follower = MergeFollower()
        follower.note({A: 1})
        looks += bool(follower._due)
    assert 10 < looks < 100


def test_a_tenant_whose_index_is_throttled_is_merged_later_and_the_others_now(
    stores: dict[str, MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: Any) -> Any:
        raise Throttled("made up")

    now = [0.0]
    follower = MergeFollower(now=lambda: now[0])
    follower.note({A: LOOK_BYTES, B: LOOK_BYTES})
    with monkeypatch.context() as patch:
        patch.setattr(stores[A], "put_blocks", busy)
        assert follower.turn() == 1
    assert follower.turn() == 0, "it waits"
    now[0] += 1
    assert follower.turn() > 0
    assert everything(stores[A]) == expected(range(1, 40))


@pytest.mark.parametrize("error", [Throttled("made up"), KeyError("made up")])
def test_a_tenant_whose_merge_fails_is_tried_less_and_less_often(
    stores: dict[str, MemoryStore], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    tries: list[float] = []

    def failing(*_: Any, **__: Any) -> int:
        tries.append(now[0])
        raise error

    monkeypatch.setattr(merging, "merge_due", failing)
    now = [0.0]
    follower = MergeFollower(now=lambda: now[0])
    follower.note({A: LOOK_BYTES})
    for _ in range(3600):
        follower.turn()
        now[0] += 0.5
    waits = [after - before for before, after in pairwise(tries)]
    assert waits[:4] == [1, 2, 4, 8]
    assert max(waits) == waits[-1] == WAIT_LIMIT
    assert not follower.is_idle


def test_a_merge_that_succeeds_ends_the_waiting(
    stores: dict[str, MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    follower = MergeFollower(now=lambda: now[0])
    outcomes: list[Any] = [Throttled("made up"), Throttled("made up"), 1, Throttled("made up"), 1]

    def merge_due(*_: Any, **__: Any) -> int:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return int(outcome)

    monkeypatch.setattr(merging, "merge_due", merge_due)
    done = []
    for wait in (0, 1, 2, 0, 1):
        follower.note({A: LOOK_BYTES})
        now[0] += wait
        done.append(follower.turn())
    assert done == [0, 0, 1, 0, 1]


def test_a_long_merge_lets_what_is_new_and_other_tenants_pass(
    stores: dict[str, MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(merging, "_LOOK_EVERY", 1)
    follower, store = MergeFollower(), stores[A]
    follower.note({A: LOOK_BYTES})
    put, published = store.put_blocks, []

    def meanwhile(segment: str, blocks: dict[int, bytes]) -> None:
        """When the first block of the long merge is written there is something new, and another tenant is due."""
        put(segment, blocks)
        if not published:
            published.append(segment)
            for number in range(50, 53):
                write(store, number)
            follower.note({B: LOOK_BYTES})

    monkeypatch.setattr("tickets.search.index.segments._AT_ONCE", 1)
    monkeypatch.setattr(store, "put_blocks", meanwhile)
    publish = publishing.publish
    order: list[tuple[str, str]] = []

    def noting(of: MemoryStore, writer: Any, header: Any, **more: Any) -> None:
        order.append((A if of is store else B, header.segment))
        publish(of, writer, header, **more)

    monkeypatch.setattr(publishing, "publish", noting)
    follower.turn()
    assert order[0][0] == B
    assert order[1][0] == order[2][0] == A
    assert order[1][1] > order[2][1], "what is new is published before the longer one that was begun first"
    assert everything(store)["all"] == {*range(1, 40), 50, 51, 52}


def test_what_was_merged_is_deleted_when_its_time_has_come_though_nobody_writes(
    stores: dict[str, MemoryStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    follower, store = MergeFollower(), stores[A]
    follower.note({A: LOOK_BYTES})
    follower.turn()
    graves = len(store.graves())
    assert graves, "readers may still need what was merged"
    follower.turn()
    assert len(store.graves()) == graves, "its time has not come"
    later = clock.now() + publishing.GRACE * 2
    monkeypatch.setattr(clock, "now", lambda: later)
    follower.turn()
    assert not store.graves()
    assert everything(store) == expected(range(1, 40))


def test_a_merge_of_more_than_is_allowed_is_left_to_others(stores: dict[str, MemoryStore]) -> None:
    follower, store = MergeFollower(), stores[A]
    largest = sum(header.size for header in headers(store)) // 2
    follower.note({A: LOOK_BYTES})
    follower.turn(largest=largest)
    assert not store.new(), "what is new is merged"
    assert len(headers(store)) > 1
    assert everything(store) == expected(range(1, 40))


def test_a_worker_merges_as_the_stream_worker(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the engine: what the policy does not allow would be refused."""
    monkeypatch.setattr(merging, "SEGMENTS", 2)
    store = IndexStore(world.context("alice", "acme").tenant_id)
    for number in range(1, 10):
        write(store, number)  # type: ignore[arg-type]
        merging.merge_due(store)
    publishing.clear(store, at_once=True)
    assert everything(store)["all"] == set(range(1, 10))  # type: ignore[arg-type]
    assert store.write_units > 10
    (header,) = headers(store)  # type: ignore[arg-type]
    assert store.block_numbers(header.segment) == list(range(int(header.blocks)))


def test_of_a_tenant_that_lies_in_two_places_the_index_is_merged_to_which_was_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = StreamSource(A, Placement("bridge"))
    found = {one: prepared_store(range(1, 37), range(37, 40)) for one in (POOLED, own)}
    monkeypatch.setattr(merge_follower, "IndexStore", lambda tenant_id: found[stream_source.current()])
    follower = MergeFollower()
    with own.entered():
        follower.note({A: LOOK_BYTES})
    assert follower.turn() > 0
    assert [len(headers(found[one])) > 1 for one in (POOLED, own)] == [True, False]


def test_an_index_whose_table_is_no_more_is_merged_never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "Query")
    own = StreamSource(A, Placement("bridge"))
    listed(monkeypatch, own)
    for source, is_over in ((own, True), (POOLED, False)):
        assert fails(monkeypatch, source, missing).is_idle == is_over


def test_an_index_at_a_place_that_is_listed_no_more_is_merged_never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    own, other = StreamSource(A, Placement("silo", "far")), StreamSource(B, Placement("silo", "far"))
    monkeypatch.setattr(StreamSource, "entered", nullcontext)
    listed(monkeypatch, other)
    for source, is_over in ((own, True), (other, False), (POOLED, False)):
        assert fails(monkeypatch, source, ConnectionRefusedError()).is_idle == is_over


def test_where_nobody_can_say_whether_a_place_is_listed_still_the_merge_is_due_still(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def away() -> list[StreamSource]:
        raise Unavailable("The database could not answer.")

    monkeypatch.setattr(stream_source, "placed", away)
    assert not fails(monkeypatch, StreamSource(A, Placement("bridge")), ConnectionRefusedError()).is_idle


def listed(monkeypatch: pytest.MonkeyPatch, *sources: StreamSource) -> None:
    monkeypatch.setattr(stream_source, "placed", lambda: list(sources))


def fails(monkeypatch: pytest.MonkeyPatch, source: StreamSource, why: Exception) -> MergeFollower:
    """A follower after one merge that failed for this reason."""

    def failing(*_: Any, **__: Any) -> int:
        raise Unavailable("The database could not answer.") from why

    monkeypatch.setattr(merging, "merge_due", failing)
    monkeypatch.setattr(stream_source, "current", lambda: source)
    follower = MergeFollower()
    follower.note({A: LOOK_BYTES})
    follower.turn()
    return follower
