"""A batch is indexed and then counted, each tenant for itself, and what comes again changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from portal.dynamo import meter
from portal.errors import Rejected, Throttled
from portal.streams.batch import Batch
from tests.search.reading import looked_up, tickets_with
from tests.support.folding import Follower, numbers, remember_nothing
from tests.support.world import World
from tickets.counting import stored as counting_keys
from tickets.counting import stream_barrier, stream_handler
from tickets.desk import changing, commenting, creating
from tickets.following.ticket_stream import handle
from tickets.search import stored, tokenizer
from tickets.search.index import postings
from tickets.search.index.index_store import IndexStore
from tickets.search.index.postings import Places
from tickets.search.stored import SEARCH, NewItem
from tickets.ticket.fields import Priority


def following() -> Follower:
    return Follower(handler=handle)


@contextmanager
def throttled(tenant_id: str) -> Iterator[None]:
    """The index of one tenant takes nothing."""
    put = IndexStore.put

    def refusing(store: IndexStore, item: NewItem) -> None:
        if store.tenant_id == tenant_id:
            raise Throttled("made up")
        put(store, item)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IndexStore, "put", refusing)
        yield


def places(tenant_id: str, term: bytes) -> dict[int, Places]:
    return {number: Places(byte & 15) for number, byte in looked_up(IndexStore(tenant_id), term).items()}


def test_every_text_of_a_ticket_is_found_under_its_place(world: World) -> None:
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="Printer jams", description="The tray squeaks.", tags=["hardware"])
    commenting.comment(alice, number, body="Toner replaced.", request_id="1" * 32)
    following().fold()
    of = {word: places(alice.tenant_id, word.encode()) for word in ("jams", "squeaks", "toner", "hardware", "alice")}
    assert of == {
        "jams": {number: Places.TITLE},
        "squeaks": {number: Places.DESCRIPTION},
        "toner": {number: Places.COMMENT},
        "hardware": {number: Places.LABEL},
        "alice": {number: Places.LABEL},
    }
    assert places(alice.tenant_id, b"=tag:hardware") == {number: Places.LABEL}
    assert places(alice.tenant_id, f"=from:{alice.user_id}".encode()) == {number: Places.LABEL}


def test_the_words_of_an_internal_note_are_kept_apart(world: World) -> None:
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="Printer jams")
    commenting.comment(alice, number, body="Expects a refund.", request_id="1" * 32, internal=True)
    following().fold()
    assert places(alice.tenant_id, b"refund") == {}
    assert places(alice.tenant_id, postings.noted(b"refund")) == {number: Places.COMMENT}


def test_what_is_new_in_a_text_is_added_when_it_changes(world: World) -> None:
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="Printer jams")
    follower = following()
    follower.fold()
    changing.edit(alice, number, title="Scanner jams", description="", priority=Priority.NORMAL, tags=[], version=1)
    follower.fold()
    assert tickets_with(alice.tenant_id, "scanner") == {number}


def test_a_change_of_no_text_writes_nothing_into_the_index(world: World) -> None:
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="Printer jams")
    follower = following()
    follower.fold()
    changing.assign(alice, number, to=alice.user_id, version=1)
    assert follower.fold().counts["indexed"] == 0


def test_a_batch_that_comes_again_costs_the_index_nothing(world: World) -> None:
    world.tickets("acme", 3)
    follower = following()
    follower.fold()
    with meter.measure() as bill:
        follower.apply(follower.all)
    assert [call for call in bill.calls if SEARCH.full_name in call.table] == []


def test_a_process_that_knows_nothing_writes_the_same_item_again(world: World) -> None:
    alice = world.context("alice", "acme")
    world.tickets("acme", 3)
    follower = following()
    follower.fold()
    before = [row.__dict__ for row in IndexStore(alice.tenant_id).rows(stored.STATE)]
    remember_nothing()
    follower.apply(follower.all)
    assert len(before) == 1
    assert [row.__dict__ for row in IndexStore(alice.tenant_id).rows(stored.STATE)] == before


def test_who_comes_again_in_other_pieces_takes_nothing_away(world: World) -> None:
    alice = world.context("alice", "acme")
    numbers = set(world.tickets("acme", 4))
    follower = following()
    records = follower.new()
    for some in (records, records[:5], records[3:], records[::2]):
        remember_nothing()
        follower.apply(some)
    assert tickets_with(alice.tenant_id, "broke") == numbers


def test_a_tenant_whose_index_is_throttled_waits_and_nobody_else(world: World) -> None:
    alice, charlie = world.context("alice", "acme"), world.context("charlie", "globex")
    world.tickets("acme", 1)
    world.tickets("globex", 1)
    follower = following()
    with throttled(alice.tenant_id):
        result = follower.fold()
    assert {record.keys["pk"][7:39] for record in result.deferred} == {alice.tenant_id}
    assert numbers(charlie)["open.normal"] == 1
    assert tickets_with(charlie.tenant_id, "broke") == {1}
    assert numbers(alice) == {}
    follower.apply(result.deferred)
    assert numbers(alice)["open.normal"] == 1
    assert tickets_with(alice.tenant_id, "broke") == {1}


def test_a_barrier_is_not_passed_before_the_index_is(world: World) -> None:
    alice = world.context("alice", "acme")
    world.tickets("acme", 1)
    world.tickets("globex", 1)
    follower = following()
    stream_barrier._write(alice.repository, "b" * 32, 0)
    with throttled(alice.tenant_id):
        result = follower.fold()
    assert counting_keys.MARKER in {record.keys["sk"] for record in result.deferred}
    assert not list(stream_barrier._answers(alice.repository, "b" * 32))
    follower.apply(result.deferred)
    assert len(list(stream_barrier._answers(alice.repository, "b" * 32))) == 1


def test_where_every_index_is_throttled_the_whole_batch_comes_again(world: World) -> None:
    alice = world.context("alice", "acme")
    world.tickets("acme", 1)
    with throttled(alice.tenant_id), pytest.raises(Throttled):
        following().fold()
    assert numbers(alice) == {}


def test_who_cannot_be_counted_waits_beside_who_cannot_be_indexed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = world.context("alice", "acme")
    world.tickets("acme", 1)
    world.tickets("globex", 1)
    follower = following()

    def away(batch: Batch) -> Any:
        raise Throttled("made up")

    monkeypatch.setattr(stream_handler, "handle", away)
    with throttled(alice.tenant_id):
        result = follower.fold()
    assert len({record.keys["pk"][7:39] for record in result.deferred}) == 2


def test_a_large_batch_is_a_segment_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    alice = world.context("alice", "acme")
    monkeypatch.setattr("tickets.search.index.indexing.LARGE", 20)
    world.tickets("acme", 4)
    following().fold()
    (row,) = IndexStore(alice.tenant_id).rows(stored.STATE)
    assert str(row.sk) == stored.header(stored.segment_id(1))
    assert IndexStore(alice.tenant_id).graves() == []
    assert tickets_with(alice.tenant_id, "broke") == {1, 2, 3, 4}


def test_a_planted_image_is_not_indexed_and_holds_nobody_up(world: World) -> None:
    alice = world.context("alice", "acme")
    creating.create(alice, title="Printer jams")
    follower = following()
    (record, *_) = follower.new()
    for image in ({"title": {"N": "7"}, "tags": {"S": "x"}}, {"title": {}, "tags": {"L": [{"N": "1"}]}}, {}):
        record.raw["dynamodb"]["NewImage"] = image
        remember_nothing()
        assert handle(Batch(follower.arn, follower.shard_id, (record,))).deferred == ()


def test_a_text_that_can_never_be_indexed_holds_up_neither_the_counting_nor_other_texts(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alice = world.context("alice", "acme")
    terms = tokenizer.terms

    def broken(text: str) -> dict[str, int]:
        if "poison" in text:
            raise RecursionError("made up")
        return terms(text)

    monkeypatch.setattr(tokenizer, "terms", broken)
    creating.create(alice, title="Fine", description="poison")
    assert following().fold().deferred == ()
    assert numbers(alice)["open.normal"] == 1
    assert tickets_with(alice.tenant_id, "fine") == {1}
    assert "rebuild_search" in caplog.text


def test_an_index_that_never_takes_a_batch_does_not_stop_the_counting(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alice = world.context("alice", "acme")
    world.tickets("acme", 1)

    def never(store: IndexStore, item: object) -> None:
        raise Rejected("made up")

    monkeypatch.setattr(IndexStore, "put", never)
    assert following().fold().deferred == ()
    assert numbers(alice)["open.normal"] == 1
    assert "rebuild_search" in caplog.text
