"""The poller against a stream that tells what a real one tells only now and then: splits, gaps, expired iterators.

The embedded engine has one shard and never splits it. Leases and aggregates are on the engine, as always.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from portal import clock
from portal.errors import Throttled, Unavailable
from portal.streams import leases, poller, watermark
from portal.streams import shards as streams
from portal.streams.items import LeaseItem
from portal.streams.poller import Poller
from portal.streams.shards import Batch, Shard
from tests.support.folding import Follower, numbers
from tests.support.world import World
from tickets.counting import fold

ARN = "arn:aws:dynamodb:eu-central-1:000000000000:table/T/stream/2026"


@dataclass
class FakeStream:
    """Shards with records; an iterator is "shard:position". `log` tells what was read in which order."""

    shards: list[Shard]
    records: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    trimmed: set[str] = field(default_factory=set)  # shards whose checkpoints are too old
    raises: list[Exception] = field(default_factory=list)  # by the next reads
    limit: int = 1000

    def iterator(self, arn: str, shard_id: str, *, after: str = "") -> str:
        if after and shard_id in self.trimmed:
            raise streams.Trimmed("gone")
        sequences = [r["dynamodb"]["SequenceNumber"] for r in self.records.get(shard_id, [])]
        self.log.append(f"{shard_id} after {after}" if after else f"{shard_id} from the beginning")
        return f"{shard_id}:{sequences.index(after) + 1 if after else 0}"

    def read(self, iterator: str, *, limit: int = 1000) -> Batch:
        if self.raises:
            raise self.raises.pop(0)
        shard_id, position = iterator.split(":")
        found = self.records.get(shard_id, [])[int(position) :][: self.limit]
        behind = int(position) + len(found)
        closed = next(s.closed for s in self.shards if s.id == shard_id)
        self.log += [shard_id] * len(found)
        done = closed and behind == len(self.records.get(shard_id, []))
        return Batch(found, None if done else f"{shard_id}:{behind}")


@pytest.fixture
def fake(engine: None, monkeypatch: pytest.MonkeyPatch) -> FakeStream:
    fake = FakeStream([Shard("a", "", False)])
    monkeypatch.setattr(streams, "arn", lambda table: ARN)
    monkeypatch.setattr(streams, "shards", lambda arn: list(fake.shards))
    monkeypatch.setattr(streams, "iterator", fake.iterator)
    monkeypatch.setattr(streams, "read", fake.read)
    monkeypatch.setattr(poller, "_BACKOFF", (0.0, 0.0))
    return fake


def record(sequence: int, *, at: float | None = None) -> dict[str, Any]:
    """Of an item that is no summary."""
    keys = {"pk": {"S": "TENANT#x"}, "sk": {"S": "DETAIL"}}
    created = time.time() if at is None else at
    return {"dynamodb": {"Keys": keys, "SequenceNumber": str(sequence), "ApproximateCreationDateTime": created}}


def steps(one: Poller, times: int = 6) -> None:
    for _ in range(times):
        one.step()


def stored(shard: str = "a") -> LeaseItem:
    return next(lease for lease in leases.stored(ARN) if lease.shard == shard)


def eventually(holds: Callable[[], bool], *working: Poller, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        for one in working:
            one.step()
        time.sleep(0.02)


# --- splits ---


def test_a_child_is_read_after_its_parent(fake: FakeStream) -> None:
    fake.shards = [Shard("c1", "p", False), Shard("p", "", True), Shard("c2", "p", False)]
    fake.records = {"p": [record(n) for n in range(1, 8)], "c1": [record(10)], "c2": [record(11)]}
    fake.limit = 3
    one = Poller()
    steps(one, 8)
    assert [entry for entry in fake.log if " " not in entry] == ["p"] * 7 + ["c1", "c2"]
    assert (stored("p").finished, stored("p").owner) == (1, "")
    assert one.held == 2


def test_a_child_waits_for_a_parent_in_the_hands_of_another_poller(fake: FakeStream) -> None:
    fake.shards = [Shard("p", "", True), Shard("c", "p", False)]
    fake.records = {"p": [record(1)], "c": [record(2)]}
    assert leases.take(LeaseItem(ARN, "p"), me="somebody")
    one = Poller()
    steps(one)
    assert fake.log == []
    assert leases.save(LeaseItem(ARN, "p"), me="somebody", checkpoint="1", caught_up_at="", finished=True)
    eventually(lambda: "c" in fake.log, one)


def test_the_pulse_waits_for_the_child_that_nobody_has_read(fake: FakeStream) -> None:
    one = Poller(lease_seconds=1)
    eventually(lambda: watermark.read() is not None, one)
    fake.shards = [Shard("a", "", True), Shard("c", "a", False)]
    fake.records = {"c": [record(2, at=time.time() - 3600)]}
    before = clock.now()
    fake.raises = [Unavailable("busy")] * 3
    eventually(lambda: "c" in fake.log, one)
    found = watermark.read()
    assert found is not None
    assert found.as_of <= before
    eventually(lambda: (found := watermark.read()) is not None and found.as_of > before, one)


# --- several pollers ---


def test_a_new_poller_gets_its_share_one_shard_at_a_time(fake: FakeStream) -> None:
    fake.shards = [Shard(name, "", False) for name in "abcd"]
    first, second = Poller(lease_seconds=2), Poller(lease_seconds=2)
    steps(first)
    assert first.held == 4
    eventually(lambda: (first.held, second.held) == (2, 2), first, second)
    steps(first)
    steps(second)
    assert (first.held, second.held) == (2, 2)


def test_who_lost_a_shard_reads_it_no_more_and_does_not_move_its_checkpoint(fake: FakeStream) -> None:
    fake.records = {"a": [record(1)]}
    one = Poller(lease_seconds=1)
    steps(one)
    assert leases.take(stored(), me="somebody")
    fake.records["a"].append(record(2))
    eventually(lambda: one.held == 0, one)
    assert (stored().owner, stored().checkpoint) == ("somebody", "")


# --- where reading goes on ---


def test_a_poller_goes_on_where_the_last_one_stopped(fake: FakeStream) -> None:
    fake.records = {"a": [record(1), record(2)]}
    one = Poller()
    steps(one)
    one.release()
    fake.records["a"].append(record(3))
    fake.log.clear()
    steps(Poller())
    assert fake.log == ["a after 2", "a"]


def test_an_expired_iterator_is_asked_for_anew_behind_the_last_record(fake: FakeStream) -> None:
    fake.records = {"a": [record(1), record(2)]}
    one = Poller()
    steps(one)
    fake.records["a"].append(record(3))
    fake.raises = [streams.IteratorExpired("old")]
    steps(one)
    assert fake.log == ["a from the beginning", "a", "a", "a after 2", "a"]


def stopped(*, caught_up_at: str) -> None:
    """A poller was here before, and stopped behind record 1."""
    leases.take(LeaseItem(ARN, "a"), me="former")
    leases.save(LeaseItem(ARN, "a"), me="former", checkpoint="1", caught_up_at=caught_up_at)
    leases.release(LeaseItem(ARN, "a"), me="former")


def test_lost_records_are_noted_and_told_with_what_to_do(fake: FakeStream, caplog: pytest.LogCaptureFixture) -> None:
    stopped(caught_up_at=clock.stamp(clock.now() - timedelta(hours=30)))
    fake.trimmed, fake.records = {"a"}, {"a": [record(9)]}
    one = Poller()
    with caplog.at_level(logging.ERROR, "pooldesk.poller"):
        steps(one)
    assert "Run: manage.py rebuild_aggregates" in caplog.text
    assert fake.log == ["a from the beginning", "a"]
    assert stored().gap_at != ""
    one.release()
    assert stored().checkpoint == "9"


def test_a_quiet_stream_whose_last_record_was_trimmed_has_lost_nothing(
    fake: FakeStream, caplog: pytest.LogCaptureFixture
) -> None:
    stopped(caught_up_at=clock.stamp(clock.now() - timedelta(minutes=5)))
    fake.trimmed, fake.records = {"a"}, {"a": [record(9)]}
    with caplog.at_level(logging.ERROR, "pooldesk.poller"):
        steps(Poller())
    assert caplog.text == ""
    assert fake.log == ["a from the beginning", "a"]
    assert stored().gap_at == ""


def test_a_shard_that_left_the_stream_unread_is_told_too(fake: FakeStream, caplog: pytest.LogCaptureFixture) -> None:
    assert leases.take(LeaseItem(ARN, "old"), me="dead")
    one = Poller(lease_seconds=1)
    with caplog.at_level(logging.ERROR, "pooldesk.poller"):
        eventually(lambda: bool(stored("old").finished), one)
    assert "Records of shard old are lost" in caplog.text


# --- checkpoints and errors ---


def test_records_of_no_interest_move_the_checkpoint_only_now_and_then(fake: FakeStream) -> None:
    fake.records, fake.limit = {"a": [record(n) for n in range(1, 21)]}, 1
    one = Poller(lease_seconds=4)
    steps(one, 20)
    assert one.metrics.records == 20
    assert stored().counter == 1, "only taking it was written"
    eventually(lambda: stored().checkpoint == "20", one)


def test_who_is_behind_applies_many_answers_as_one_batch(fake: FakeStream) -> None:
    fake.records, fake.limit = {"a": [record(n) for n in range(1, 1001)]}, 200
    one = Poller()
    steps(one, 1)
    assert (one.metrics.records, one.metrics.batches) == (1000, 1)
    assert one.held == 1


def test_a_small_answer_is_applied_at_once(fake: FakeStream) -> None:
    fake.records, fake.limit = {"a": [record(n) for n in range(1, 101)]}, 50
    one = Poller()
    steps(one, 1)
    assert (one.metrics.records, one.metrics.batches) == (50, 1)


def test_a_batch_that_could_not_be_applied_is_kept_and_applied_later(
    fake: FakeStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake.records = {"a": [record(1)]}
    applied: list[str] = []
    failures: list[Exception] = [Throttled("busy"), Unavailable("away")]

    def process(records: list[dict[str, Any]], **_: object) -> fold.Outcome:
        if failures:
            raise failures.pop(0)
        applied.extend(r["dynamodb"]["SequenceNumber"] for r in records)
        return fold.Outcome(events=1)

    monkeypatch.setattr(fold, "process", process)
    one = Poller()
    steps(one)
    assert applied == ["1"]
    assert fake.log == ["a from the beginning", "a"], "it was read once"
    assert one.metrics.write_errors == 2
    assert stored().checkpoint == "1"


def test_the_checkpoint_never_runs_ahead_of_the_aggregates(fake: FakeStream, monkeypatch: pytest.MonkeyPatch) -> None:
    def process(*_: object, **__: object) -> fold.Outcome:
        raise Unavailable("away")

    monkeypatch.setattr(fold, "process", process)
    fake.records = {"a": [record(1)]}
    one = Poller(lease_seconds=1)
    steps(one, 10)
    one.release()
    assert stored().checkpoint == ""


def test_leases_are_kept_while_a_large_batch_is_applied(fake: FakeStream, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.records = {"a": [record(1), record(2)]}
    seen: list[tuple[int, str]] = []

    def process(*_: object, between: Callable[[], object], **__: object) -> fold.Outcome:
        for _turn in range(4):
            time.sleep(0.3)
            between()
            seen.append((int(stored().counter), stored().checkpoint))
        return fold.Outcome()

    monkeypatch.setattr(fold, "process", process)
    steps(Poller(lease_seconds=1), 2)
    assert [counter for counter, _ in seen] == [2, 3, 4, 5]
    assert {checkpoint for _, checkpoint in seen} == {""}, "nothing of the batch is behind it yet"


def test_waiting_after_errors_grows_to_a_limit_and_is_spread() -> None:
    early = [poller._delay(1) for _ in range(200)]
    late = [poller._delay(50) for _ in range(200)]
    assert max(early) <= 0.2
    assert 4 < max(late) <= 5
    assert min(late) < 1


# --- against the engine ---


def test_what_is_read_twice_counts_once(world: World) -> None:
    acme = world.context("alice", "acme")
    world.tickets("acme", 3)
    first, second = Poller(), Poller(lease_seconds=1)
    steps(first)  # and is never heard of again, before it wrote the checkpoint of the last batch
    Follower().fold()
    eventually(lambda: second.held == 1 and second.counted_since(clock.stamp()[:19]), second, seconds=15)
    assert numbers(acme)["open.normal"] == 3
