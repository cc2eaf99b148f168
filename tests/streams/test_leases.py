"""Who follows a stream, judged without comparing clocks, which shards may be read, and what is stored about them."""

from __future__ import annotations

import time

import pytest

from portal.streams import positions
from portal.streams.lease import SignWatch
from portal.streams.shard_lister import ShardLister
from portal.streams.shards import Listing, Shard
from portal.streams.stored import ShardItem

ARN = "arn:aws:dynamodb:eu-central-1:000000000000:table/T/stream/2026"


# --- signs of life ---


class MonotonicClock:
    now = 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> MonotonicClock:
    clock = MonotonicClock()
    monkeypatch.setattr(time, "monotonic", lambda: clock.now)
    return clock


def test_a_sign_that_does_not_change_for_the_lease_time_stands_still(clock: MonotonicClock) -> None:
    watch = SignWatch(10)
    watch.look({"ann": 5})
    clock.now = 9
    watch.look({"ann": 6})
    clock.now = 18.9
    watch.look({"ann": 6})
    assert not watch.is_still("ann"), "any change begins the lease time anew"
    clock.now = 19
    assert watch.is_still("ann")
    assert not watch.is_still("bob"), "which was never seen"
    watch.look({})
    assert not watch.is_still("ann"), "who has left is forgotten"


def test_one_sign_can_be_watched_by_itself(clock: MonotonicClock) -> None:
    watch = SignWatch(10)
    assert not watch.stands_still("job", ("ann", 5))
    clock.now = 10
    assert watch.stands_still("job", ("ann", 5))
    assert not watch.stands_still("job", ("bob", 5))


def test_the_first_by_name_of_those_that_live_follows(clock: MonotonicClock) -> None:
    watch = SignWatch(10)
    watch.look({"ann": 1, "bob": 1})
    assert [watch.is_first(poller) for poller in ("ann", "bob")] == [True, False]
    clock.now = 10
    watch.look({"ann": 1, "bob": 2})
    assert watch.is_first("bob")


# --- parents and children ---


def readable(*stored: ShardItem, finished: str = "", listed: str = "") -> list[str]:
    lister = ShardLister(ARN, lease_seconds=10)
    lister.listing, lister.finished = Listing(tuple(Shard(one, "", closed=False) for one in listed), ""), set(finished)
    return [one.shard for one in lister.readable(stored)]


def test_children_wait_for_their_parent_until_it_is_finished_or_has_left() -> None:
    parent, child, other = ShardItem(ARN, "p"), ShardItem(ARN, "c", parent="p"), ShardItem(ARN, "o")
    assert readable(parent, child, other) == ["p", "o"]
    assert readable(child, other, finished="p") == ["c", "o"]
    assert readable(child, listed="p") == [], "it is not stored yet"
    assert readable(child) == ["c"], "it has left the stream"
    assert readable(ShardItem(ARN, "c", parent="p", position="7"), listed="p") == ["c"], "it was read before"
    assert readable(parent, finished="p") == [], "it was stored again by mistake"


# --- what is stored ---


@pytest.fixture
def shard(engine: None) -> ShardItem:
    positions.add(ARN, "a", parent="")
    return only()


def only() -> ShardItem:
    (one,) = positions.unfinished(ARN)
    return one


def save(shard: ShardItem, sequence: str, owner: str = "ann", until: str = "") -> None:
    positions.save(shard, owner=owner, position=sequence.zfill(40), checkpoint=sequence, applied_until=until)


def test_a_shard_that_is_there_is_not_made_anew(shard: ShardItem) -> None:
    save(shard, "7")
    positions.add(ARN, "a", parent="")
    assert (only().owner, only().checkpoint) == ("ann", "7")


def test_saving_never_takes_a_position_back(shard: ShardItem) -> None:
    save(shard, "9", "ann", "t1")
    save(shard, "8", "bob", "t2")
    assert (only().owner, only().checkpoint, only().applied_until) == ("ann", "9", "t1")
    save(shard, "9", "", "t3")
    assert (only().owner, only().checkpoint, only().applied_until) == ("", "9", "t3")


def test_a_finished_shard_leaves_the_others_and_nobody_brings_it_back(shard: ShardItem) -> None:
    positions.finish(shard, position="9")
    save(shard, "9")
    positions.note_gap(shard)
    assert positions.unfinished(ARN) == []
    finished = positions.finished_among(ARN, ["a", "b"])
    assert {name: one.position for name, one in finished.items()} == {"a": "9"}


def test_a_poller_that_leaves_is_not_waited_for(engine: None) -> None:
    positions.give_heartbeat(ARN, me="ann")
    positions.give_heartbeat(ARN, me="ann")
    assert positions.heartbeats(ARN) == {"ann": 2}
    positions.leave(ARN, me="ann")
    assert positions.heartbeats(ARN) == {}
