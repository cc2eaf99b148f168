"""`rebuild_search` and `verify_search`: the index is made anew while people work, and held against the texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from portal.errors import Conflict
from tenants.tenancy.context import TenantContext
from tests.search.reading import looked_up, tickets_with
from tests.support import commands
from tests.support.folding import Follower, in_background
from tests.support.world import World
from tickets.counting import stream_barrier
from tickets.desk import changing, commenting, creating
from tickets.desk.changing import Wishes
from tickets.following import ticket_stream
from tickets.search import index_check, index_rebuild, stored, tokenizer
from tickets.search.index import merging, postings
from tickets.search.index.index_store import IndexStore
from tickets.search.stored import SEARCH, DamageItem, NewItem

WORDS = ("printer", "invoice", "webhook", "certificate", "keyboard", "lantern")


@pytest.fixture
def follower(world: World) -> Follower:
    """What indexes and counts, when the test says so."""
    return Follower(handler=ticket_stream.handle)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new segment for each ticket or two."""
    monkeypatch.setattr(index_rebuild, "POSTINGS", 8)


def open_tickets(alice: TenantContext) -> list[int]:
    return [
        creating.create(alice, title=f"The {word} is broken", description=f"{word.title()} again") for word in WORDS
    ]


def found(alice: TenantContext, word: str) -> set[int]:
    return tickets_with(alice.tenant_id, word)


def merge_all(alice: TenantContext) -> None:
    """Everything into one segment, as time would."""
    store = IndexStore(alice.tenant_id)
    with index_rebuild._locked(store) as lock:
        merging.merge_new(store, lock)


def plant(alice: TenantContext, index: dict[bytes, dict[int, int]], name: str = "ff") -> None:
    """Postings that no stream has brought."""
    block = postings.pack_block((term, postings.encode(index[term])) for term in sorted(index))
    store = IndexStore(alice.tenant_id)
    store.put(store.row(NewItem, stored.new(name), block=block, version=tokenizer.VERSION))


def stopping_at_the_fifth() -> Callable[[int], None]:
    """What is called after each ticket, and stops the work at the fifth."""
    left = iter(range(4))

    def advance(numbers: int) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    return advance


def every_block() -> list[bytes]:
    """The terms of every item of the table that holds any, whether a search would read it or not."""
    packed = [bytes(item["d"]["B"]) for item in commands.everything(SEARCH) if "d" in item]
    return [term for block in packed for term, _ in postings.block_entries(block)]


def test_tickets_of_before_there_was_a_search_are_found_after_a_rebuild(alice: TenantContext) -> None:
    numbers = open_tickets(alice)
    number = creating.create(alice, title="Alpha", description="Beta", tags=["gamma"])
    commenting.comment(alice, number, body="Delta")
    commenting.comment(alice, number, body="Epsilon", internal=True)
    assert not found(alice, "printer")
    assert "acme: nothing was indexed yet." in commands.run("verify_search", "--tenant", "acme", "--settle", 0.1).out
    ended = commands.run("rebuild_search", "--tenant", "acme")
    assert ended.status == 0, ended.err
    assert "acme: 7 tickets read into 1 new segment, 0 old ones removed." in ended.out
    assert [found(alice, word) for word in WORDS] == [{number} for number in numbers]
    assert all(found(alice, word) == {number} for word in ("alpha", "beta", "gamma", "delta"))
    assert not found(alice, "epsilon")
    store = IndexStore(alice.tenant_id)
    assert looked_up(store, postings.noted(b"epsilon"))
    assert looked_up(store, b"=tag:gamma")
    assert commands.run("verify_search", "--all").status == 0
    plant(alice, {b"printer": {numbers[1]: 1}})
    merge_all(alice)
    assert found(alice, "printer") == {numbers[0], numbers[1]}
    assert index_rebuild.rebuild(alice.repository).removed == 2
    assert found(alice, "printer") == {numbers[0]}, "and what no text has is gone"


def test_words_that_were_edited_away_a_moment_ago_are_gone_after_a_rebuild(
    alice: TenantContext, follower: Follower
) -> None:
    number = creating.create(alice, title="Zebrastripe gadget", tags=["wombatty"])
    follower.fold()
    changing.change(alice, number, Wishes(title="Giraffespots gadget", tags=[]), version=1)
    follower.fold()
    assert index_check.report(alice.repository).segments == 0, "all of it is newer than the segments"
    assert commands.run("verify_search", "--tenant", "acme", "--strict").status == 1
    assert commands.run("rebuild_search", "--tenant", "acme").status == 0
    strict = commands.run("verify_search", "--tenant", "acme", "--strict")
    assert strict.status == 0, strict.out
    assert not found(alice, "zebrastripe")
    assert found(alice, "giraffespots") == found(alice, "gadget") == {number}


@pytest.mark.usefixtures("small")
def test_nothing_is_missing_at_any_moment_of_a_rebuild_while_people_write_and_workers_merge(
    alice: TenantContext, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = open_tickets(alice)
    follower.fold()
    merge_all(alice)
    monkeypatch.setattr(merging, "NEW_ITEMS", 1)
    monkeypatch.setattr(merging, "SEGMENTS", 2)
    written: list[int] = []

    def meanwhile(steps: int) -> None:
        written.append(creating.create(alice, title="A lantern more"))
        follower.fold()
        merging.merge_due(IndexStore(alice.tenant_id))
        assert found(alice, WORDS[len(written) % 5]) == {numbers[len(written) % 5]}
        assert found(alice, "lantern") == {numbers[-1], *written}

    done = index_rebuild.rebuild(alice.repository, advance=meanwhile)
    assert done.segments > 1
    assert written
    assert found(alice, "lantern") == {numbers[-1], *written}
    assert index_check.check(alice.repository).state == index_check.OK


@pytest.mark.parametrize("often", ["POSTINGS", "SHARE_SECONDS"])
def test_a_rebuild_that_was_stopped_goes_on_where_it_was(
    alice: TenantContext, monkeypatch: pytest.MonkeyPatch, often: str
) -> None:
    """Its place is kept after some text, and after some seconds."""
    monkeypatch.setattr(index_rebuild, often, 0)
    open_tickets(alice)
    with pytest.raises(KeyboardInterrupt):
        index_rebuild.rebuild(alice.repository, advance=stopping_at_the_fifth())
    ended = commands.run("rebuild_search", "--tenant", "acme")
    assert ended.status == 0, ended.err
    assert "acme: goes on behind ticket 4, where a rebuild had ended." in ended.out
    assert "acme: 2 tickets read" in ended.out
    assert all(found(alice, word) for word in WORDS)
    assert commands.run("verify_search", "--tenant", "acme", "--strict").status == 0


@pytest.mark.usefixtures("small")
def test_of_two_rebuilds_the_second_one_takes_over(alice: TenantContext) -> None:
    open_tickets(alice)
    taken: list[Any] = []

    def meanwhile(numbers: int) -> None:
        if not taken:
            taken.append(index_rebuild.rebuild(alice.repository))

    with pytest.raises(Conflict):
        index_rebuild.rebuild(alice.repository, advance=meanwhile)
    assert all(found(alice, word) for word in WORDS)
    assert index_check.check(alice.repository).state == index_check.OK


def test_a_new_version_of_the_tokenizer_is_rolled_out_by_a_rebuild(
    alice: TenantContext, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_tickets(alice)
    follower.fold()
    monkeypatch.setattr(tokenizer, "VERSION", 2)
    assert not index_check.report(alice.repository).is_current
    assert commands.run("verify_search", "--tenant", "acme").status == 3
    merge_all(alice)
    index_rebuild.rebuild(alice.repository)
    report = index_check.report(alice.repository)
    assert (report.tokenizer_versions, report.is_current, report.was_built) == ((2,), True, True)


# --- erasure ---


@pytest.mark.parametrize("merged", [False, True])
def test_what_was_erased_is_in_no_block_of_the_table(alice: TenantContext, follower: Follower, *, merged: bool) -> None:
    number = creating.create(alice, title="About a person", description="Her name is Quellenhofer")
    follower.fold()
    if merged:
        merge_all(alice)
    changing.change(alice, number, Wishes(description="Her name is gone"), version=1)
    assert b"quellenhofer" in every_block()
    with follower.following():
        ended = commands.run("rebuild_search", "--tenant", "acme", "--erase", "--timeout", 20)
    assert ended.status == 0, ended.err
    assert "nothing is left of what is not stored" in ended.out
    assert b"quellenhofer" not in every_block()
    assert b"gone" in every_block()


def test_an_erasure_takes_the_blocks_of_writers_that_died_as_well(alice: TenantContext, follower: Follower) -> None:
    open_tickets(alice)
    store = IndexStore(alice.tenant_id)
    for segment in (store.next_segment(), store.next_segment()):
        block = postings.pack_block([(b"quellenhofer", postings.encode({1: 1}))])
        store.put_blocks(segment, {0: block, 1: block})
    with follower.following():
        done = index_rebuild.rebuild(alice.repository, erase=True, timeout=120)
    assert done.swept == 4
    assert b"quellenhofer" not in every_block()


def test_an_erasure_waits_for_what_the_worker_has_not_indexed(alice: TenantContext, follower: Follower) -> None:
    open_tickets(alice)
    ended = commands.run("rebuild_search", "--tenant", "acme", "--erase", "--timeout", 0.2)
    assert ended.status == 1
    assert "run_stream" in ended.err
    assert not every_block()


def test_an_erasure_waits_until_no_worker_will_begin_before_it_again(
    alice: TenantContext, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_tickets(alice)
    wait_for = stream_barrier._wait_for

    def impatient(left: Any, sentence: Any, *, timeout: float, say: Any) -> None:
        wait_for(left, sentence, timeout=0.5 if "note its position" in sentence(1) else timeout, say=say)

    monkeypatch.setattr(stream_barrier, "_wait_for", impatient)
    # It indexes and counts, and dies before it notes how far it is: who comes in its place indexes the same again.
    with in_background(lambda _: follower.apply(follower.new()), pause=0.03):
        ended = commands.run("rebuild_search", "--tenant", "acme", "--erase", "--timeout", 120)
    assert ended.status == 1
    assert "waiting for the stream worker" in ended.err
    assert b"printer" in every_block()


# --- verification ---


def test_a_posting_or_a_place_that_is_missing_is_named_once_the_worker_has_caught_up(
    alice: TenantContext, follower: Follower
) -> None:
    numbers = open_tickets(alice)
    follower.fold()
    store = IndexStore(alice.tenant_id)
    store.delete_rows([str(row.sk) for row in store.rows(stored.STATE)])
    plant(alice, {b"invoice": {numbers[1]: 0xF1}})  # in the title, and not in the description
    creating.create(alice, title="Indexed later")
    with follower.following():
        ended = commands.run("verify_search", "--tenant", "acme", "--settle", 120)
    assert ended.status == 1
    for number, word in zip(numbers[:2], WORDS, strict=False):
        assert f"acme: missing: “{word}” of ticket {number}" in ended.out
    assert "later" not in ended.out
    assert "Run rebuild_search" in ended.err


def test_a_worker_that_is_late_is_no_error_and_one_that_is_away_cannot_be_told(
    alice: TenantContext, follower: Follower
) -> None:
    open_tickets(alice)
    away = commands.run("verify_search", "--tenant", "acme", "--settle", 0.2)
    assert away.status == 3
    assert "the stream worker makes no progress" in away.out
    with follower.following():
        assert commands.run("verify_search", "--tenant", "acme", "--settle", 120).status == 0


def test_a_posting_of_no_stored_text_is_named_and_fails_where_it_has_to(
    alice: TenantContext, follower: Follower
) -> None:
    numbers = open_tickets(alice)
    follower.fold()
    plant(alice, {b"quellenhofer": {numbers[2]: 4, 900: 4}, postings.noted(b"secret"): {numbers[0]: 4}})
    ended = commands.run("verify_search", "--tenant", "acme")
    assert ended.status == 0, ended.err
    assert f"acme: foreign: “quellenhofer” of ticket {numbers[2]}, whose text does not have it" in ended.out
    assert "foreign: “quellenhofer” of ticket 900" in ended.out
    assert f"foreign: “secret (in a note)” of ticket {numbers[0]}" in ended.out
    strict = commands.run("verify_search", "--tenant", "acme", "--strict", "--json")
    assert strict.status == 1
    assert json.loads(strict.out)[0]["left_over"] == 3


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda store, segment: store.delete_blocks(segment, [0]), "lacks 1 of its 1 blocks"),
        (lambda store, segment: store.put_blocks(segment, {0: b"no block"}), "block 0 cannot be read"),
        (lambda store, segment: store.put_blocks(segment, {7: b"no block"}), "an item that its header does not name"),
    ],
)
def test_damage_is_said(
    alice: TenantContext, follower: Follower, harm: Callable[[IndexStore, str], None], said: str
) -> None:
    open_tickets(alice)
    follower.fold()
    merge_all(alice)
    (row,) = IndexStore(alice.tenant_id).rows(stored.STATE)
    harm(IndexStore(alice.tenant_id), stored.segment_of(str(row.sk)))
    with follower.following():
        ended = commands.run("verify_search", "--tenant", "acme", "--settle", 120)
    assert (ended.status, said in ended.out) == (1, True)


def test_damaged_rows_are_told_until_the_index_is_made_anew(
    alice: TenantContext, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    (number, *_) = open_tickets(alice)
    follower.fold()
    merge_all(alice)
    store = IndexStore(alice.tenant_id)
    (row,) = store.rows(stored.STATE)
    segment = stored.segment_of(str(row.sk))
    store.delete_blocks(segment, [0])
    creating.create(alice, title="The heating is broken")
    follower.fold()
    for name in ("fe", "ff"):
        store.put(store.row(NewItem, stored.new(name), block=b"no block", version=1))
    store.put(store.row(DamageItem, "R"))
    monkeypatch.setattr(merging, "NEW_ITEMS", 1)
    monkeypatch.setattr(merging, "SEGMENTS", 2)
    assert merging.merge_due(store) == 1
    damaged = (stored.new("fe"), stored.new("ff"), "R", stored.header(segment))
    assert index_check.report(alice.repository).damaged == damaged
    with follower.following():
        assert f"damaged are {', '.join(damaged)}" in commands.run("verify_search", "--tenant", "acme").out
    index_rebuild.rebuild(alice.repository)
    assert index_check.report(alice.repository).damaged == ()
    assert {str(name.sk) for name in store.rows(stored.STATE_AND_DAMAGE)} & {*damaged} == set()
    assert not [row for row in store.rows(stored.STATE_AND_DAMAGE) if isinstance(row, DamageItem)]
    assert number in found(alice, "printer")


def test_a_check_that_was_stopped_goes_on_where_it_was(alice: TenantContext) -> None:
    numbers = open_tickets(alice)
    index_rebuild.rebuild(alice.repository)
    plant(alice, {b"quellenhofer": {numbers[0]: 4}})
    begun: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        index_check.check(alice.repository, many=2, advance=stopping_at_the_fifth())
    verdict = index_check.check(alice.repository, many=2, begun=begun.append)
    assert begun == [4]
    assert [(one.term, one.ticket) for one in verdict.foreign] == [("quellenhofer", numbers[0])]
    assert verdict.tickets == len(numbers)
    index_check.check(alice.repository, begun=begun.append)
    assert begun == [4, 0]


def test_the_state_of_an_index_counts_segments_blocks_bytes_and_what_is_new(
    alice: TenantContext, follower: Follower
) -> None:
    assert not index_check.report(alice.repository).was_built
    open_tickets(alice)
    follower.fold()
    for merged in (0, 1):
        report = index_check.report(alice.repository)
        assert (report.segments, report.blocks, bool(report.bytes)) == (merged, merged, bool(merged))
        assert (report.tail_items, bool(report.tail_bytes)) == (1 - merged, not merged)
        assert (report.tokenizer_versions, report.was_built) == ((tokenizer.VERSION,), True)
        merge_all(alice)
