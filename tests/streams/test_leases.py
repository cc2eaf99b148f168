"""Leases on shards: who may read what, judged without comparing clocks, and what the database has to say about it."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.streams import leases, shard_tree
from portal.streams.items import HeartbeatItem, LeaseItem

ARN = "arn:aws:dynamodb:eu-central-1:000000000000:table/T/stream/2026"


def lease(shard: str, owner: str = "", **more: object) -> LeaseItem:
    return LeaseItem(ARN, shard, owner=owner, **more)


def heartbeat(poller: str, counter: int) -> HeartbeatItem:
    return HeartbeatItem(ARN, poller, counter=counter)


def chosen(candidates: list[LeaseItem], me: str, dead: str = "") -> list[str]:
    return [one.shard for one in leases.choose(candidates, me=me, expired=lambda owner: bool(dead) and owner == dead)]


# --- expiry ---


class MonotonicClock:
    now = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MonotonicClock:
    clock = MonotonicClock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def test_a_poller_whose_heartbeat_stands_still_for_the_lease_time_has_expired(clock: MonotonicClock) -> None:
    watch = leases.HeartbeatWatch(10)
    watch.look([heartbeat("ann", 5)])
    clock.now = 9.9
    watch.look([heartbeat("ann", 5)])
    assert not watch.expired("ann")
    clock.now = 10
    assert watch.expired("ann")


def test_any_heartbeat_begins_the_lease_time_anew(clock: MonotonicClock) -> None:
    watch = leases.HeartbeatWatch(10)
    watch.look([heartbeat("ann", 5)])
    clock.now = 9
    watch.look([heartbeat("ann", 6)])
    clock.now = 18
    assert not watch.expired("ann")
    clock.now = 19
    assert watch.expired("ann")


def test_a_poller_that_was_never_seen_has_not_expired() -> None:
    assert not leases.HeartbeatWatch(10).expired("ann")


def test_an_owner_without_a_heartbeat_expires_after_the_lease_time(clock: MonotonicClock) -> None:
    watch = leases.HeartbeatWatch(10)
    watch.look([], {"ann"})
    assert not watch.expired("ann")
    clock.now = 10
    watch.look([], {"ann"})
    assert watch.expired("ann")


def test_one_of_the_living_pollers_leads(clock: MonotonicClock) -> None:
    watch = leases.HeartbeatWatch(10)
    watch.look([heartbeat("ann", 1), heartbeat("bob", 1)])
    assert [watch.leads(poller) for poller in ("ann", "bob")] == [True, False]
    clock.now = 10
    watch.look([heartbeat("ann", 1), heartbeat("bob", 2)])
    assert watch.leads("bob")


def test_an_owner_without_a_heartbeat_does_not_lead() -> None:
    watch = leases.HeartbeatWatch(10)
    watch.look([heartbeat("bob", 1)], {"ann"})
    assert watch.leads("bob")


# --- parents and children ---


def test_children_wait_for_their_parent() -> None:
    tree = [lease("p", "ann"), lease("c", parent="p"), lease("o")]
    assert [one.shard for one in shard_tree.readable(tree, set())] == ["p", "o"]
    assert [one.shard for one in shard_tree.readable(tree[1:], {"p"})] == ["c", "o"]


def test_a_child_whose_parent_has_no_lease_yet_waits_all_the_same() -> None:
    assert shard_tree.readable([lease("c", parent="p")], set()) == []


def test_a_child_that_was_read_before_does_not_wait_again() -> None:
    assert shard_tree.readable([lease("c", parent="p", counter=1)], set())
    assert shard_tree.readable([lease("c", parent="p", position="7")], set())


# --- shares ---


def test_the_first_poller_takes_everything() -> None:
    assert chosen([lease("a"), lease("b"), lease("c")], "ann") == ["a", "b", "c"]


def test_a_second_one_takes_what_is_free_and_no_more_than_its_share() -> None:
    candidates = [lease("a", "ann"), lease("b"), lease("c"), lease("d")]
    assert chosen(candidates, "bob") == ["b", "c"]


def test_where_nothing_is_free_one_shard_is_taken_from_who_holds_most() -> None:
    candidates = [lease("a", "ann"), lease("b", "bob"), lease("c", "bob"), lease("d", "bob")]
    assert chosen(candidates, "cid") == ["b"]


def test_shards_do_not_wander_between_pollers_that_hold_nearly_the_same() -> None:
    candidates = [lease("a", "ann"), lease("b", "ann"), lease("c", "bob")]
    assert chosen(candidates, "bob") == []
    assert chosen([lease("a", "ann")], "bob") == []


def test_the_shards_of_a_dead_poller_are_free() -> None:
    candidates = [lease("a", "ann"), lease("b", "bob"), lease("c", "bob")]
    assert chosen(candidates, "ann", dead="bob") == ["b", "c"]


OWNERS = ("ann", "bob", "cid", "dan")


@given(st.lists(st.sampled_from(("", *OWNERS)), min_size=1, max_size=24), st.integers(1, 4))
def test_in_turns_every_shard_finds_a_poller_and_shares_become_fair(owners: list[str], alive: int) -> None:
    living = OWNERS[:alive]
    candidates = [lease(f"s{i:02}", owner) for i, owner in enumerate(owners)]
    for _ in range(40):
        for me in living:
            for one in leases.choose(candidates, me=me, expired=lambda owner: owner not in living):
                assert one.owner != me
                one.owner = me
    held = Counter(one.owner for one in candidates)
    assert set(held) <= set(living)
    assert max(held.values()) - min(held.get(me, 0) for me in living) <= 1
    assert all(leases.choose(candidates, me=me, expired=lambda owner: False) == [] for me in living)


# --- stored ---


@pytest.fixture
def stored_lease(engine: None) -> LeaseItem:
    leases.add(ARN, "a", parent="")
    return only()


def only() -> LeaseItem:
    (one,) = leases.stored(ARN)
    return one


def save(me: str, sequence: str = "1") -> bool:
    return leases.save(lease("a"), me=me, position=sequence.zfill(40), checkpoint=sequence, applied_until="t")


def test_a_lease_that_is_there_is_not_made_anew(stored_lease: LeaseItem) -> None:
    leases.take(stored_lease, me="ann")
    leases.add(ARN, "a", parent="")
    assert only().owner == "ann"


def test_of_two_that_take_a_shard_at_once_one_gets_it(stored_lease: LeaseItem) -> None:
    taken = leases.take(stored_lease, me="ann")
    assert taken is not None
    assert (taken.owner, taken.counter) == ("ann", 1)
    assert leases.take(stored_lease, me="bob") is None
    assert only().owner == "ann"


def test_a_lease_that_has_moved_since_it_was_seen_is_not_taken(stored_lease: LeaseItem) -> None:
    leases.take(stored_lease, me="ann")
    seen = only()
    assert save("ann")
    assert leases.take(seen, me="bob") is None
    assert leases.take(only(), me="bob") is not None


def test_taking_again_after_a_lost_answer_finds_that_it_is_taken(stored_lease: LeaseItem) -> None:
    leases.take(stored_lease, me="ann")
    taken = leases.take(stored_lease, me="ann")
    assert taken is not None
    assert taken.owner == "ann"


def test_who_has_lost_a_lease_writes_nothing(stored_lease: LeaseItem) -> None:
    leases.take(stored_lease, me="ann")
    save("ann", "7")
    leases.take(only(), me="bob")
    assert not save("ann", "9")
    assert not leases.note_gap(lease("a"), me="ann")
    assert not leases.release(lease("a"), me="ann")
    assert (only().owner, only().checkpoint, only().gap_at) == ("bob", "7", "")


def test_saving_never_takes_a_position_back(stored_lease: LeaseItem) -> None:
    leases.take(stored_lease, me="ann")
    assert save("ann", "9")
    assert save("ann", "7")
    assert only().checkpoint == "9"


def test_a_released_lease_keeps_the_checkpoint_and_is_free(stored_lease: LeaseItem) -> None:
    leases.take(stored_lease, me="ann")
    save("ann", "7")
    assert leases.release(lease("a"), me="ann")
    assert chosen([only()], "bob") == ["a"]
    assert only().checkpoint == "7"


def test_a_finished_shard_leaves_the_leases(stored_lease: LeaseItem) -> None:
    leases.finish(stored_lease, position="9")
    assert leases.stored(ARN) == []
    finished = leases.finished_among(ARN, ["a", "b"])
    assert list(finished) == ["a"]
    assert not save("ann", "9"), "its former owner writes nothing"
    assert leases.stored(ARN) == []


def test_a_poller_that_leaves_is_not_waited_for(engine: None) -> None:
    leases.give_heartbeat(ARN, me="ann")
    leases.give_heartbeat(ARN, me="ann")
    assert [(one.shard, one.counter) for one in leases.heartbeats(ARN)] == [("ann", 2)]
    leases.leave(ARN, me="ann")
    assert leases.heartbeats(ARN) == []
