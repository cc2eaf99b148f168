"""Promises that hold whatever happens: shards split and roll over, pollers die, are robbed and come back, clocks jump.

Each example is a story of random events, with two pollers and those that were killed and do not know it. The service's
clock, the pollers' monotonic clock and the wall clock of the machine move apart from each other.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.errors import Throttled
from portal.streams import poller as polling
from portal.streams import positions, shard_lister, shard_reader
from portal.streams.batch import padded
from portal.streams.poller import Poller
from portal.streams.shards import Listing, Shard
from portal.streams.stored import WATERMARK, ShardItem, WatermarkItem
from tests.support.shard_trees import RecordingHandler, ShardTree
from tickets.ticket.stored import TICKETS

LEASE_SECONDS = 10
HOUR = 3600

EVENTS = st.one_of(
    st.tuples(st.just("everybody steps"), st.just(0)),
    st.tuples(st.just("catch up"), st.just(0)),
    st.tuples(st.sampled_from(["write", "split", "roll over"]), st.integers(0, 7)),
    st.tuples(st.sampled_from(["step", "list", "kill", "zombie"]), st.integers(0, 1)),
    st.tuples(st.just("step"), st.integers(0, 1)),
    st.tuples(st.just("write"), st.integers(0, 7)),
    st.tuples(st.sampled_from(["service time", "time"]), st.sampled_from([0.4, 1, 3, LEASE_SECONDS + 1])),
    st.tuples(st.just("wall clock"), st.sampled_from([-HOUR, HOUR])),
    st.tuples(st.sampled_from(["defer", "throttle", "relent"]), st.integers(0, 3)),
)
# Those in which a poller works; nothing else can change what it has claimed.
WORKS = {"everybody steps", "catch up", "step", "list", "zombie"}


class Story:
    """Plays events and holds after each of them what was promised."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, pollers: int) -> None:
        name = uuid.uuid4().hex
        self.tree = ShardTree("a", "b", arn=f"arn:{name}")
        self.tree.limit = 2
        self.table = replace(TICKETS, name=name)
        self.handler = RecordingHandler()
        self.monotonic, self.jumped = 1000.0, 0.0
        self.tree.install(monkeypatch)
        real = time.time
        monkeypatch.setattr(time, "monotonic", lambda: self.monotonic)
        monkeypatch.setattr(time, "time", lambda: real() + self.jumped)
        monkeypatch.setattr(clock, "now", lambda: datetime.fromtimestamp(real() + self.jumped, UTC))
        for module in (polling, shard_reader):
            monkeypatch.setattr(module, "delay", lambda failures: 0.0)
        self.pollers: list[Poller] = []
        self.dead: list[Poller] = []
        for _ in range(pollers):
            self.pollers.append(self.new_poller())

    def new_poller(self) -> Poller:
        poller = Poller(self.table, self.handler, lease_seconds=LEASE_SECONDS, threads=1)
        poller.me = f"poller {len(self.pollers) + len(self.dead)}"
        poller._look_seconds = 0
        return poller

    def close(self) -> None:
        for poller in [*self.pollers, *self.dead]:
            poller._pool.shutdown()

    def play(self, event: str, number: float) -> None:
        tree, which = self.tree, int(number)
        leaves = tree.leaves()
        leaf = leaves[which % len(leaves)]
        match event:
            case "write":
                tree.write(leaf)
            case "split":
                tree.close(leaf, f"{leaf}0", f"{leaf}1")
            case "roll over":
                tree.close(leaf, f"{leaf}0")
            case "step":
                self.pollers[which].step()
            case "everybody steps":
                for poller in self.pollers:
                    poller.step()
            case "catch up":
                self.catch_up()
            case "list":
                self.pollers[which]._lister.listed_at = float("-inf")
                self.pollers[which].step()
            case "kill":
                self.dead.append(self.pollers[which])
                self.pollers[which] = self.new_poller()
            case "zombie":
                for reader in [reader for poller in self.dead for reader in poller._readers.values()]:
                    reader.finished or reader.turn()
            case "service time":
                tree.pass_time(number)
            case "time":
                self.monotonic += number
                tree.pass_time(number)
            case "wall clock":
                self.jumped += number
            case "defer":
                self.handler.deferring |= set(list(tree.made_at)[which::3])
            case "throttle":
                self.handler.raises = [Throttled("busy")]
            case "relent":
                self.handler.deferring.clear()

    def catch_up(self) -> None:
        """Give the pollers time to read everything and to say so."""
        for _ in range(6):
            self.play("time", 3)
            self.play("everybody steps", 0)

    def watermark(self) -> datetime | None:
        item = PLATFORM.get(WatermarkItem, self.table.name, sort=WATERMARK)
        return clock.parse(item.as_of) if item else None

    def hold(self) -> None:
        """Fail where the watermark or a position claims what is not applied, or a child came before its parent."""
        applied = set(self.handler.applied)
        if as_of := self.watermark():
            early = {number for number, made_at in self.tree.made_at.items() if made_at < as_of} - applied
            assert not early, f"the watermark says {as_of}, but {early} are not applied"
        for shard_id in self.tree.shards:
            position = positions.read(self.tree.arn, shard_id)
            numbers = [number for number, shard in self.tree.shard_of.items() if shard == shard_id]
            claimed = {number for number in numbers if padded(str(number)) <= position}
            assert claimed <= applied, f"{shard_id} claims {claimed - applied}"
            parent = self.tree.shards[shard_id].parent
            inherited = [number for number, shard in self.tree.shard_of.items() if shard == parent]
            first = {number: self.handler.applied.index(number) for number in applied & {*numbers, *inherited}}
            begun = min((first[number] for number in numbers if number in first), default=None)
            assert begun is None or all(first.get(number, begun) < begun for number in inherited), shard_id

    def finish(self) -> None:
        """Let the pollers work until they are done: nothing is lost."""
        self.handler.deferring.clear()
        self.handler.raises = []
        for _ in range(60):
            self.monotonic += 3
            self.tree.pass_time(3)
            for poller in self.pollers:
                poller.step()
            self.hold()
            if set(self.handler.applied) == set(self.tree.made_at):
                break
        assert set(self.handler.applied) == set(self.tree.made_at)


@contextmanager
def story(pollers: int = 2) -> Iterator[Story]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        one = Story(monkeypatch, pollers)
        try:
            yield one
        finally:
            one.close()


@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(EVENTS, min_size=10, max_size=40))
@example(
    [("catch up", 0), *[("write", 0)] * 5, ("split", 0), ("write", 0), ("write", 1), ("list", 0), *[("step", 1)] * 3]
)
def test_the_watermark_says_only_what_is_true_and_nothing_is_lost(
    engine: None, events: list[tuple[str, float]]
) -> None:
    with story() as one:
        for event, number in events:
            one.play(event, number)
            if event in WORKS:
                one.hold()
        one.finish()


def test_a_rollover_that_nobody_has_listed_yet_holds_the_watermark_back(engine: None) -> None:
    with story(pollers=1) as one:
        one.catch_up()
        one.tree.pass_time(1)
        one.tree.close("a", "c")
        number = one.tree.write("c")
        for _ in range(3):
            one.tree.pass_time(2)
            one.monotonic += 0.1  # too little for anybody to list the shards
            one.play("everybody steps", 0)
            one.hold()
        assert number not in one.handler.applied
        one.finish()


@pytest.mark.parametrize("jump", [-HOUR, HOUR])
def test_a_wall_clock_that_jumps_does_not_move_the_watermark(engine: None, jump: int) -> None:
    with story() as one:
        one.catch_up()
        one.play("wall clock", jump)
        one.play("everybody steps", 0)
        as_of = one.watermark()
        assert as_of is not None
        assert one.tree.now - timedelta(seconds=6) <= as_of <= one.tree.now


def test_a_quiet_stream_keeps_its_watermark_moving(engine: None) -> None:
    with story() as one:
        one.catch_up()
        before = one.tree.now
        one.catch_up()
        as_of = one.watermark()
        assert as_of is not None
        assert as_of > before


def test_what_is_deferred_holds_the_watermark_back_until_it_is_applied(engine: None) -> None:
    with story() as one:
        one.catch_up()
        number = one.tree.write("a")
        one.handler.deferring = {number}
        one.catch_up()
        as_of = one.watermark()
        assert as_of is not None
        assert as_of <= one.tree.made_at[number]
        one.handler.deferring.clear()
        one.catch_up()
        as_of = one.watermark()
        assert as_of is not None
        assert as_of > one.tree.made_at[number]


def test_what_is_read_every_two_seconds_does_not_grow_with_finished_shards(engine: None) -> None:
    with story() as one:
        for _ in range(5):
            one.play("roll over", 0)
            one.catch_up()
        assert len(positions.unfinished(one.tree.arn)) == 2


# --- the rules alone ---


def listed(*shard_ids: str, as_of: str = "9") -> Listing:
    return Listing(tuple(Shard(shard_id, "", False) for shard_id in shard_ids), as_of)


def lease(shard_id: str, applied_until: str) -> ShardItem:
    return ShardItem("arn", shard_id, applied_until=applied_until)


def test_the_slowest_unfinished_shard_says_up_to_when_all_is_applied() -> None:
    two = [lease("a", "5"), lease("b", "3")]
    assert shard_lister.complete_until(listed("a", "b"), two, set()) == "3"
    assert shard_lister.complete_until(listed("a", "b"), two, {"b"}) == "5"


def test_nothing_is_known_beyond_the_listing() -> None:
    assert shard_lister.complete_until(listed("a", as_of="4"), [lease("a", "5")], set()) == "4"


def test_a_listed_shard_that_is_not_stored_holds_everything_back() -> None:
    assert shard_lister.complete_until(listed("a", "b"), [lease("a", "5")], set()) == ""


def test_a_stored_shard_that_left_the_stream_holds_everything_back() -> None:
    assert shard_lister.complete_until(listed("a"), [lease("a", "5"), lease("gone", "2")], set()) == "2"


def test_a_shard_that_was_not_in_an_earlier_listing_holds_nothing_older_than_that() -> None:
    assert shard_lister.born_after(listed("a", as_of="4"), "b") == "4"
    assert shard_lister.born_after(listed("a", as_of="4"), "a") == ""
    assert shard_lister.born_after(None, "b") == ""
