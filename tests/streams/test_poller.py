"""The poller against a stream that does what a real one does only now and then: splits, gaps, expired iterators."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import SimpleNamespace

import pytest

from delivery.management.commands import run_dispatch
from portal import clock
from portal.errors import Throttled, Unavailable
from portal.management.worker_command import FollowCommand
from portal.streams import lease, positions, shard_lister, shard_reader, shards
from portal.streams import poller as polling
from portal.streams.batch import padded
from portal.streams.poller import IDLE_READS_PER_SECOND, Poller
from portal.streams.stored import ShardItem
from tests.support.folding import Follower, numbers
from tests.support.shard_trees import ARN, RecordingHandler, ShardTree
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.counting.stream_handler import handle
from tickets.management.commands import run_stream
from tickets.ticket.stored import TICKETS

LOOK = polling.LOOK_SECONDS


class Moment:
    """The pollers' own clock. It stands still while they work, however slow the machine is."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def moment(monkeypatch: pytest.MonkeyPatch) -> Moment:
    moment = Moment()
    mocked = SimpleNamespace(monotonic=moment.monotonic, time=time.time, time_ns=time.time_ns, sleep=time.sleep)
    for module in (lease, positions, polling, shard_lister, shard_reader):
        monkeypatch.setattr(module, "time", mocked)
    return moment


@pytest.fixture
def tree(engine: None, monkeypatch: pytest.MonkeyPatch) -> ShardTree:
    tree = ShardTree("a")
    tree.install(monkeypatch)
    for module in (polling, shard_reader):
        monkeypatch.setattr(module, "delay", lambda failures: 0.0)
    return tree


@pytest.fixture
def handler() -> RecordingHandler:
    return RecordingHandler()


NewPoller = Callable[..., Poller]


@pytest.fixture
def poller(handler: RecordingHandler) -> Iterator[NewPoller]:
    """Makes pollers that give what they read to the same handler."""
    pollers: list[Poller] = []

    def new(lease_seconds: float = 10.0) -> Poller:
        pollers.append(Poller(TICKETS, handler, lease_seconds=lease_seconds))
        return pollers[-1]

    yield new
    for one in pollers:
        one._pool.shutdown()


def steps(one: Poller, times: int = 6) -> None:
    for _ in range(times):
        one.step()


def stored(shard: str = "a") -> ShardItem:
    return next(lease for lease in positions.unfinished(ARN) if lease.shard == shard)


def eventually(holds: Callable[[], bool], moment: Moment, *working: Poller) -> None:
    """Let time pass until it holds: at every turn enough for a look at the shards, and little of the lease time."""

    def turn() -> None:
        moment.now += LOOK
        for one in working:
            one.step()

    wait_until(holds, working=turn)


# --- splits ---


def test_a_child_is_read_after_its_parent(tree: ShardTree, poller: NewPoller, moment: Moment) -> None:
    for _ in range(7):
        tree.write("a")
    tree.close("a", "c1", "c2")
    tree.write("c1")
    tree.write("c2")
    tree.limit = 3
    one = poller()
    eventually(lambda: len(tree.reads) == 9, moment, one)
    assert tree.reads[:7] == [f"a {n}" for n in range(1, 8)]
    assert set(tree.reads[7:]) == {"c1 8", "c2 9"}
    assert "a" in positions.finished_among(ARN, ["a"])
    assert one.held == 2


def test_a_shard_that_was_stored_again_after_it_was_finished_is_not_read_again(
    tree: ShardTree, poller: NewPoller
) -> None:
    tree.write("a")
    positions.add(ARN, "a", parent="")
    positions.finish(stored("a"), position=padded("1"))
    positions.add(ARN, "a", parent="")
    steps(poller())
    assert tree.reads == []


# --- several pollers ---


def test_the_oldest_poller_follows_and_the_next_one_where_it_has_gone(
    engine: None, monkeypatch: pytest.MonkeyPatch, poller: NewPoller, moment: Moment
) -> None:
    ShardTree("a", "b").install(monkeypatch)
    first, second, third = poller(), poller(), poller()
    for one in (first, second, third, first):
        steps(one)
    assert [one.held for one in (first, second, third)] == [2, 0, 0]
    first.release()
    eventually(lambda: second.held == 2, moment, second, third)
    # It dies: the last one sees its sign of life stand still.
    began = moment.now
    eventually(lambda: third.held == 2, moment, third)
    assert moment.now - began >= 10
    assert {one.owner for one in positions.unfinished(ARN)} <= {third.me, ""}


def test_a_poller_that_is_not_the_oldest_any_more_reads_nothing_and_moves_no_position(
    tree: ShardTree, poller: NewPoller, moment: Moment
) -> None:
    tree.write("a")
    one = poller()
    steps(one)
    positions.give_heartbeat(ARN, me="!older")
    eventually(lambda: one.held == 0, moment, one)
    tree.write("a")
    tree.reads.clear()
    before = stored().checkpoint
    steps(one)
    one.release()
    assert tree.reads == []
    assert stored().checkpoint == before


def test_shards_are_read_side_by_side(
    engine: None, monkeypatch: pytest.MonkeyPatch, poller: NewPoller, handler: RecordingHandler
) -> None:
    tree = ShardTree("a", "b")
    tree.install(monkeypatch)
    tree.write("a")
    tree.write("b")
    both = threading.Barrier(2, timeout=120)
    one = Poller(TICKETS, lambda batch: (both.wait() and handler(batch)) or handler(batch))
    steps(one, 2)
    assert sorted(handler.applied) == [1, 2]
    one.release()


# --- where reading goes on ---


def test_a_poller_goes_on_where_the_last_one_stopped(tree: ShardTree, poller: NewPoller) -> None:
    tree.write("a")
    tree.write("a")
    one = poller()
    steps(one)
    one.release()
    tree.write("a")
    tree.reads.clear()
    steps(poller())
    assert tree.reads == ["a 3"]


def test_an_expired_iterator_is_asked_for_anew_behind_the_last_record(tree: ShardTree, poller: NewPoller) -> None:
    tree.write("a")
    one = poller()
    steps(one)
    tree.write("a")
    tree.raises = [shards.IteratorExpired("old")]
    steps(one)
    assert tree.reads == ["a 1", "a 2"]


def stopped(tree: ShardTree, *, applied_until: str) -> None:
    """A poller was here before, and stopped behind a record that is not in the stream any more."""
    positions.add(ARN, "a", parent="")
    positions.save(stored(), owner="", position=padded("1"), checkpoint="1", applied_until=applied_until)
    tree.trimmed = {"a"}
    tree.write("a")
    tree.write("a")


def test_lost_records_are_noted_and_told_with_what_to_do(
    tree: ShardTree, poller: NewPoller, caplog: pytest.LogCaptureFixture
) -> None:
    stopped(tree, applied_until=clock.stamp(tree.now - timedelta(hours=30)))
    one = poller()
    with caplog.at_level(logging.ERROR, "pooldesk.poller"):
        steps(one)
    assert "Records of shard a are lost" in caplog.text
    assert tree.reads == ["a 1", "a 2"]
    assert stored().gap_at != ""
    one.release()
    assert stored().position == padded("2")


def test_a_quiet_stream_whose_last_record_was_trimmed_has_lost_nothing(
    tree: ShardTree, poller: NewPoller, caplog: pytest.LogCaptureFixture
) -> None:
    stopped(tree, applied_until=clock.stamp(tree.now - timedelta(minutes=5)))
    with caplog.at_level(logging.ERROR, "pooldesk.poller"):
        steps(poller())
    assert caplog.text == ""
    assert tree.reads == ["a 1", "a 2"]
    assert stored().gap_at == ""


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (run_stream.Command, "Run: manage.py rebuild_aggregates"),
        (run_dispatch.Command, "Nothing is to be done: the sweeper finds their rows"),
    ],
)
@pytest.mark.parametrize("trimmed", [True, False], ids=["trimmed under its reader", "gone without a reader"])
def test_each_follower_says_what_is_to_be_done_about_lost_records(
    tree: ShardTree,
    caplog: pytest.LogCaptureFixture,
    command: type[FollowCommand],
    advice: str,
    *,
    trimmed: bool,
    moment: Moment,
) -> None:
    if trimmed:
        stopped(tree, applied_until=clock.stamp(tree.now - timedelta(hours=30)))
    else:
        positions.add(ARN, "old", parent="")
    one = command().poller(lease_seconds=1)
    with caplog.at_level(logging.ERROR, "pooldesk.poller"):
        eventually(lambda: "are lost" in caplog.text, moment, one)
    assert advice in caplog.text
    gap = stored("a") if trimmed else positions.finished_among(ARN, ["old"])["old"]
    assert gap.gap_at != ""
    assert caplog.text.count("rebuild_aggregates") == advice.count("rebuild_aggregates")
    one.release()


# --- checkpoints and errors ---


def test_a_checkpoint_is_not_written_for_every_batch(tree: ShardTree, poller: NewPoller) -> None:
    for _ in range(20):
        tree.write("a")
    tree.limit = 1
    one = poller()
    steps(one, 20)
    assert one.metrics.read()["records"] == 20
    assert (stored().owner, stored().checkpoint) == (one.me, ""), "only that it is read here was written"
    one.release()
    assert stored().position == padded("20")


@pytest.mark.parametrize(("written", "limit", "applied"), [(1000, 200, 1000), (100, 50, 50)])
def test_who_is_behind_applies_many_answers_as_one_batch_and_a_small_one_at_once(
    tree: ShardTree, poller: NewPoller, written: int, limit: int, applied: int
) -> None:
    for _ in range(written):
        tree.write("a")
    tree.limit = limit
    one = poller()
    steps(one, 1)
    assert (one.metrics.read()["records"], one.metrics.read()["batches"]) == (applied, 1)


def test_a_batch_that_could_not_be_applied_is_kept_and_applied_later(
    tree: ShardTree, poller: NewPoller, handler: RecordingHandler
) -> None:
    tree.write("a")
    handler.raises = [Throttled("busy"), Unavailable("away")]
    one = poller()
    steps(one)
    assert handler.applied == [1]
    assert tree.reads == ["a 1"], "it was read once"
    assert one.metrics.read()["write_errors"] == 2
    one.release()
    assert stored().position == padded("1")


def test_the_position_never_runs_ahead_of_what_was_applied(
    tree: ShardTree, poller: NewPoller, handler: RecordingHandler
) -> None:
    handler.raises = [Unavailable("away")] * 100
    tree.write("a")
    one = poller()
    steps(one, 10)
    one.release()
    assert stored().position == ""


def test_deferred_records_come_again_before_the_next_ones_and_hold_the_position_back(
    tree: ShardTree, poller: NewPoller, handler: RecordingHandler
) -> None:
    for _ in range(3):
        tree.write("a")
    handler.deferring = {2}
    one = poller()
    steps(one, 1)
    tree.write("a")
    steps(one, 2)
    assert handler.applied == [1, 3, 4]
    assert [int(record.sequence) for record in handler.batches[1].records] == [2, 4]
    handler.deferring.clear()
    steps(one, 1)
    assert handler.applied == [1, 3, 4, 2]
    one.release()
    assert positions.read(ARN, "a") == padded("4")


def test_what_is_still_deferred_at_the_end_is_read_again_by_the_next_poller(
    tree: ShardTree, poller: NewPoller, handler: RecordingHandler
) -> None:
    for _ in range(3):
        tree.write("a")
    handler.deferring = {2}
    one = poller()
    steps(one)
    one.release()
    assert positions.read(ARN, "a") == padded("1")
    handler.deferring.clear()
    steps(poller())
    assert handler.applied == [1, 3, 2, 3], "who applies twice must count once, and nothing is skipped"


def test_a_shard_is_not_read_on_while_too_much_of_it_is_deferred(
    tree: ShardTree, poller: NewPoller, handler: RecordingHandler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_reader, "DEFERRED_LIMIT", 3)
    tree.limit = 1
    for _ in range(10):
        tree.write("a")
    handler.deferring = set(range(1, 11))
    one = poller()
    steps(one, 10)
    assert tree.reads == ["a 1", "a 2", "a 3"]
    handler.deferring.clear()
    steps(one, 10)
    assert sorted(handler.applied) == list(range(1, 11))


def test_a_shard_is_not_read_on_while_what_is_deferred_is_large(
    tree: ShardTree, poller: NewPoller, handler: RecordingHandler
) -> None:
    tree.limit, tree.size = 1, shard_reader.DEFERRED_BYTES // 2
    for _ in range(5):
        tree.write("a")
    handler.deferring = set(range(1, 6))
    steps(poller(), 10)
    assert tree.reads == ["a 1", "a 2"]


def test_a_closed_shard_is_not_finished_while_some_of_it_is_deferred(
    tree: ShardTree, poller: NewPoller, handler: RecordingHandler, moment: Moment
) -> None:
    tree.write("a")
    tree.close("a", "c")
    tree.write("c")
    handler.deferring = {1}
    one = poller()
    steps(one, 4)
    assert positions.finished_among(ARN, ["a"]) == {}
    assert "c 2" not in tree.reads
    handler.deferring.clear()
    eventually(lambda: handler.applied == [1, 2], moment, one)


def test_waiting_after_errors_grows_to_a_limit_and_is_spread() -> None:
    early = [shard_reader.delay(1) for _ in range(200)]
    late = [shard_reader.delay(50) for _ in range(200)]
    assert max(early) <= 0.2
    assert 4 < max(late) <= 5
    assert min(late) < 1


# --- how much it asks for ---


def test_four_hundred_shards_are_listed_by_one_poller_a_page_a_second(
    engine: None, monkeypatch: pytest.MonkeyPatch, poller: NewPoller, moment: Moment
) -> None:
    tree = ShardTree(*(f"s{n:03}" for n in range(400)))
    tree.install(monkeypatch)
    pollers = [poller() for _ in range(3)]
    for _ in range(10):
        for one in pollers:
            one._look_if_due()
        moment.now += LOOK
    # A page a second for all together; each of the three may list the four pages once before it sees who lists.
    assert tree.calls.count("DescribeStream") <= 3 * 4 + 20
    assert sum(one.held for one in pollers) >= 400


def test_many_shards_are_saved_and_asked_for_news_less_often_each(
    engine: None, monkeypatch: pytest.MonkeyPatch, poller: NewPoller
) -> None:
    ShardTree(*(f"s{n:03}" for n in range(100))).install(monkeypatch)
    one = poller()
    steps(one, 1)
    assert one.held == 100
    assert {reader.save_seconds for reader in one._readers.values()} == {100 / shard_reader.SAVES_PER_SECOND}
    assert one._idle_seconds() == 100 / IDLE_READS_PER_SECOND


# --- against the engine ---


def test_what_is_read_twice_counts_once(world: World, moment: Moment) -> None:
    acme = world.context("alice", "acme")
    world.tickets("acme", 3)
    first, second = Poller(TICKETS, handle), Poller(TICKETS, handle, lease_seconds=1)
    steps(first)  # and is never heard of again, before it wrote the checkpoint of the last batch
    Follower().fold()
    began = moment.now
    eventually(lambda: second.held == 1 and second.caught_up(began), moment, second)
    assert numbers(acme)["open.normal"] == 3
    second.release()
