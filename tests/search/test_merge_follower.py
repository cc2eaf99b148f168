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


@pytest.mark.parametrize("added", [[1] * LOOK_ADDITIONS, [LOOK_BYTES]])
def test_an_index_is_looked_at_after_some_additions_or_much_text(
    stores: dict[str, MemoryStore], added: list[int]
) -> None:
    follower = MergeFollower()
    for size in added:
        follower.note({A: size})
    assert follower.turn() > 0
    assert follower.turn() == 0, "until something is added"
    assert [len(headers(stores[one])) for one in (A, B)] == [1, 1], "nobody has added to B"
    assert stores[B].new()


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
def test_a_tenant_whose_merge_fails_is_tried_less_and_less_often_until_one_succeeds(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    now, tries, outcomes = [0.0], [], [error] * 20
    follower = MergeFollower(now=lambda: now[0])

    def merge_due(*_: Any, **__: Any) -> int:
        tries.append(now[0])
        if outcomes:
            raise outcomes.pop()
        return 1

    monkeypatch.setattr(merging, "merge_due", merge_due)
    follower.note({A: LOOK_BYTES})
    while not follower.turn():
        now[0] += 0.5
        assert not follower.is_idle
    waits = [after - before for before, after in pairwise(tries)]
    assert waits[:4] == [1, 2, 4, 8]
    assert max(waits) == waits[-1] == WAIT_LIMIT
    outcomes.append(error)
    follower.note({A: LOOK_BYTES})
    assert follower.turn() == 0
    now[0] += 1
    assert follower.turn() == 1, "it waits no longer than at first"


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
        write(store, number)
        merging.merge_due(store)
    publishing.clear(store, at_once=True)
    assert everything(store)["all"] == set(range(1, 10))
    assert store.write_units > 10
    (header,) = headers(store)
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


MISSING = ClientError({"Error": {"Code": "ResourceNotFoundException"}}, "Query")
BRIDGE = StreamSource(A, Placement("bridge"))
FAR, OTHER = StreamSource(A, Placement("silo", "far")), StreamSource(B, Placement("silo", "far"))


@pytest.mark.parametrize(
    ("source", "why", "listed", "is_over"),
    [
        (BRIDGE, MISSING, [BRIDGE], True),
        (POOLED, MISSING, [BRIDGE], False),
        (FAR, ConnectionRefusedError(), [OTHER], True),
        (OTHER, ConnectionRefusedError(), [OTHER], False),
        (POOLED, ConnectionRefusedError(), [OTHER], False),
        (BRIDGE, ConnectionRefusedError(), None, False),
    ],
)
def test_an_index_that_is_no_more_is_merged_never_again(
    monkeypatch: pytest.MonkeyPatch,
    source: StreamSource,
    why: Exception,
    listed: list[StreamSource] | None,
    *,
    is_over: bool,
) -> None:
    """Its table is no more, or its place is listed no more; if nobody can say, it is due still."""

    def failing(*_: Any, **__: Any) -> int:
        raise Unavailable("The database could not answer.") from why

    def placed() -> list[StreamSource]:
        if listed is None:
            raise Unavailable("The database could not answer.")
        return listed

    monkeypatch.setattr(StreamSource, "entered", nullcontext)
    monkeypatch.setattr(stream_source, "placed", placed)
    monkeypatch.setattr(stream_source, "current", lambda: source)
    monkeypatch.setattr(merging, "merge_due", failing)
    follower = MergeFollower()
    follower.note({A: LOOK_BYTES})
    follower.turn()
    assert follower.is_idle == is_over
