"""Leases on shards: who may read what, judged without comparing clocks, and what the database has to say about it."""

from __future__ import annotations

import time
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.dynamo import platform
from portal.streams import keys, leases
from portal.streams.items import LeaseItem, PulseItem
from portal.streams.shards import Shard
from tickets.ticket.tables import TICKETS

ARN = "arn:aws:dynamodb:eu-central-1:000000000000:table/T/stream/2026"


def lease(shard: str, owner: str = "", **more: object) -> LeaseItem:
    return LeaseItem(ARN, shard, owner=owner, **more)


def chosen(found: list[LeaseItem], me: str, dead: str = "") -> list[str]:
    return [one.shard for one in leases.choose(found, me=me, expired=lambda lease: bool(dead) and lease.owner == dead)]


# --- expiry ---


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_lease_that_stands_still_for_the_lease_time_has_expired() -> None:
    clock = Clock()
    watch = leases.Watch(10, now=clock)
    watch.look([lease("a", "ann", counter=5)])
    clock.now = 9.9
    watch.look([lease("a", "ann", counter=5)])
    assert not watch.expired(lease("a", "ann", counter=5))
    clock.now = 10
    assert watch.expired(lease("a", "ann", counter=5))


@pytest.mark.parametrize("moved", [{"counter": 6}, {"counter": 5, "owner": "bob"}])
def test_any_movement_begins_the_lease_time_anew(moved: dict[str, object]) -> None:
    clock = Clock()
    watch = leases.Watch(10, now=clock)
    watch.look([lease("a", "ann", counter=5)])
    clock.now = 9
    now = lease("a", **{"owner": "ann", **moved})
    watch.look([now])
    clock.now = 18
    assert not watch.expired(now)
    clock.now = 19
    assert watch.expired(now)


def test_a_lease_that_was_never_seen_has_not_expired() -> None:
    assert not leases.Watch(10, now=lambda: 1e9).expired(lease("a", "ann", counter=5))


def test_a_lease_is_judged_by_how_it_was_seen_last_and_not_by_what_it_was_before() -> None:
    clock = Clock()
    watch = leases.Watch(10, now=clock)
    watch.look([lease("a", "ann", counter=5)])
    clock.now = 60
    assert not watch.expired(lease("a", "ann", counter=6))


# --- parents and children ---


def test_children_wait_for_their_parent() -> None:
    parent, child, other = lease("p", "ann"), lease("c", parent="p"), lease("o")
    assert [one.shard for one in leases.readable([parent, child, other])] == ["p", "o"]
    parent.finished = 1
    assert [one.shard for one in leases.readable([parent, child, other])] == ["c", "o"]


def test_a_parent_that_has_left_the_stream_holds_nobody_up() -> None:
    assert [one.shard for one in leases.readable([lease("c", parent="gone")])] == ["c"]


def test_shards_without_a_lease_get_one_that_nobody_holds() -> None:
    shards = [Shard("p", "", True), Shard("c", "p", False)]
    found = leases.matched(ARN, shards, [lease("p", "ann", counter=3), lease("trimmed", "ann")])
    assert [(one.shard, one.owner, one.counter, one.parent) for one in found] == [
        ("p", "ann", 3, ""),
        ("c", "", 0, "p"),
    ]


# --- shares ---


def test_the_first_poller_takes_everything() -> None:
    assert chosen([lease("a"), lease("b"), lease("c")], "ann") == ["a", "b", "c"]


def test_a_second_one_takes_what_is_free_and_no_more_than_its_share() -> None:
    found = [lease("a", "ann"), lease("b"), lease("c"), lease("d")]
    assert chosen(found, "bob") == ["b", "c"]


def test_where_nothing_is_free_one_shard_is_taken_from_who_holds_most() -> None:
    found = [lease("a", "ann"), lease("b", "bob"), lease("c", "bob"), lease("d", "bob")]
    assert chosen(found, "cid") == ["b"]


def test_shards_do_not_wander_between_pollers_that_hold_nearly_the_same() -> None:
    found = [lease("a", "ann"), lease("b", "ann"), lease("c", "bob")]
    assert chosen(found, "bob") == []
    assert chosen([lease("a", "ann")], "bob") == []


def test_the_shards_of_a_dead_poller_are_free() -> None:
    found = [lease("a", "ann"), lease("b", "bob"), lease("c", "bob")]
    assert chosen(found, "ann", dead="bob") == ["b", "c"]


def test_finished_shards_count_for_nobody() -> None:
    found = [lease("a", finished=1), lease("b", finished=1), lease("c", "ann"), lease("d", "ann")]
    assert chosen(found, "bob") == ["c"]


OWNERS = ("ann", "bob", "cid", "dan")


@given(st.lists(st.sampled_from(("", *OWNERS)), min_size=1, max_size=24), st.integers(1, 4))
def test_in_turns_every_shard_finds_a_poller_and_shares_become_fair(owners: list[str], alive: int) -> None:
    living = OWNERS[:alive]
    found = [lease(f"s{i:02}", owner) for i, owner in enumerate(owners)]

    def expired(one: LeaseItem) -> bool:
        return one.owner not in living

    for _ in range(40):
        for me in living:
            for one in leases.choose(found, me=me, expired=expired):
                assert one.owner != me
                one.owner = me
    held = Counter(one.owner for one in found)
    assert set(held) <= set(living)
    assert max(held.values()) - min(held.get(me, 0) for me in living) <= 1
    assert all(leases.choose(found, me=me, expired=expired) == [] for me in living)


# --- up to when ---


@pytest.mark.parametrize(
    ("found", "moment"),
    [
        ([], ""),
        ([lease("a", caught_up_at="5"), lease("b", caught_up_at="3")], "3"),
        ([lease("a", caught_up_at="5"), lease("b")], ""),
        ([lease("a", caught_up_at="2", finished=1), lease("b", caught_up_at="3")], "3"),
        ([lease("p", caught_up_at="2"), lease("c", parent="p")], "2"),
        ([lease("p", caught_up_at="2", finished=1), lease("c", parent="p"), lease("o", caught_up_at="4")], "2"),
        ([lease("g", caught_up_at="1"), lease("p", parent="g"), lease("c", parent="p")], "1"),
        ([lease("c", parent="gone")], ""),
        ([lease("a", caught_up_at="5", finished=1)], ""),
    ],
)
def test_the_slowest_unfinished_shard_says_up_to_when_all_is_counted(found: list[LeaseItem], moment: str) -> None:
    assert leases.counted_until(found) == moment


# --- stored ---


def only() -> LeaseItem:
    (found,) = leases.stored(ARN)
    return found


def take(me: str, seen: LeaseItem | None = None) -> LeaseItem | None:
    return leases.take(seen or lease("a"), me=me)


def save(me: str, checkpoint: str = "1", *, finished: bool = False) -> bool:
    return leases.save(lease("a"), me=me, checkpoint=checkpoint, caught_up_at="t", finished=finished)


def test_of_two_that_take_a_shard_at_once_one_gets_it(engine: None) -> None:
    seen = lease("a")
    taken = take("ann", seen)
    assert taken is not None
    assert (taken.owner, taken.counter) == ("ann", 1)
    assert take("bob", seen) is None
    assert only().owner == "ann"


def test_a_lease_that_has_moved_since_it_was_seen_is_not_taken(engine: None) -> None:
    take("ann")
    seen = only()
    assert save("ann")
    assert take("bob", seen) is None
    assert take("bob", only()) is not None


def test_taking_again_after_a_lost_answer_finds_that_it_is_taken(engine: None) -> None:
    seen = lease("a")
    take("ann", seen)
    taken = take("ann", seen)
    assert taken is not None
    assert taken.owner == "ann"


def test_who_has_lost_a_lease_writes_nothing(engine: None) -> None:
    take("ann")
    save("ann", "7")
    take("bob", only())
    assert not save("ann", "9")
    assert not leases.note_gap(lease("a"), me="ann")
    assert not leases.release(lease("a"), me="ann")
    assert (only().owner, only().checkpoint, only().gap_at) == ("bob", "7", "")


def test_each_write_shows_that_the_owner_lives(engine: None) -> None:
    take("ann")
    before = only().counter
    save("ann")
    assert only().counter > before


def test_a_released_lease_keeps_the_checkpoint_and_is_free(engine: None) -> None:
    take("ann")
    save("ann", "7")
    assert leases.release(lease("a"), me="ann")
    assert chosen([only()], "bob") == ["a"]
    assert only().checkpoint == "7"


def test_a_finished_lease_goes_by_ttl_after_three_days_and_not_before(engine: None) -> None:
    take("ann")
    assert only().expires_at is None
    save("ann", "9", finished=True)
    assert (only().owner, only().finished) == ("", 1)
    assert only().expires_at == pytest.approx(time.time() + 3 * 86400, abs=60)
    assert chosen([only()], "bob") == []


def test_an_abandoned_lease_is_finished_and_says_that_records_are_lost(engine: None) -> None:
    take("ann")
    seen = only()
    save("ann")
    assert not leases.abandon(seen), "its owner has just moved it"
    assert leases.abandon(only())
    assert only().finished == 1
    assert only().gap_at != ""


def test_the_pulse_never_goes_back(engine: None) -> None:
    for as_of in ("2026-11-20T10:00:00.000000Z", "2026-11-20T09:00:00.000000Z"):
        leases.write_pulse(TICKETS, as_of)
    found = platform.get(PulseItem, TICKETS.name, keys.PULSE)
    assert found is not None
    assert found.as_of == "2026-11-20T10:00:00.000000Z"
