"""Positions and the watermark: facts that only grow, whoever writes them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from portal import clock
from portal.streams import positions, shard_lister, shards, watermark
from portal.streams.batch import BatchResult, batch_of, padded
from portal.streams.shard_lister import ShardLister
from portal.streams.shard_reader import Metrics, ShardReader
from portal.streams.shards import Listing
from portal.streams.stored import LEASES
from tests.support.shard_trees import ARN, START, ShardTree, raw_record
from tickets.ticket.stored import TICKETS


def finished(shard_id: str, position: str) -> None:
    """A closed shard that was read to its end."""
    positions.advance(ARN, shard_id, position)
    (lease,) = [one for one in positions.unfinished(ARN) if one.shard == shard_id]
    positions.finish(lease, position=lease.position)


def test_a_shard_of_which_nobody_has_said_anything_has_no_position(engine: None) -> None:
    assert positions.read(ARN, "a") == ""


def test_a_position_only_grows(engine: None) -> None:
    positions.advance(ARN, "a", "9")
    positions.advance(ARN, "a", "10")
    positions.advance(ARN, "a", "9")
    assert positions.read(ARN, "a") == padded("10")


def test_a_finished_shard_keeps_its_position(engine: None) -> None:
    positions.advance(ARN, "a", "10")
    (lease,) = positions.unfinished(ARN)
    positions.finish(lease, position=lease.position)
    assert positions.read(ARN, "a") == padded("10")


def test_a_finished_shard_keeps_its_position_until_it_has_left_the_stream(
    engine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = ShardTree("a", "b")
    tree.install(monkeypatch)
    finished("a", "10")
    positions.forget(ARN, listed=set())  # by somebody whose listing is wrong
    assert positions.read(ARN, "a") == padded("10")
    tree.forget("a")
    assert positions.read(ARN, "a") == padded("10")
    positions.forget(ARN, listed={"b"})
    assert positions.finished_among(ARN, ["a"]) == {}


def test_a_shard_that_has_left_the_stream_is_applied_to_its_end(engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ShardTree("a", "b")
    tree.install(monkeypatch)
    finished("a", "10")
    tree.forget("a")
    positions.forget(ARN, listed={"b"})
    assert (positions.read(ARN, "a"), positions.read(ARN, "b")) == (positions.END, "")


def test_of_a_stream_that_nobody_knows_nothing_is_said(engine: None) -> None:
    assert positions.read(f"{ARN}-of-nobody", "a") == ""


def test_whoever_lists_the_shards_forgets_those_that_have_left(engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = ShardTree("a", "b")
    tree.install(monkeypatch)
    finished("a", "10")
    lister = ShardLister(ARN, lease_seconds=10)
    lister.list_if_due(positions.unfinished(ARN))
    assert "a" in positions.finished_among(ARN, ["a"])
    tree.forget("a")
    monkeypatch.setattr(shard_lister, "FORGET_SECONDS", 0)
    lister.listed_at = float("-inf")
    lister.list_if_due(positions.unfinished(ARN))
    assert positions.finished_among(ARN, ["a"]) == {}


@pytest.mark.parametrize(("takes", "rests"), [(0.0, 1), (0.5, 10), (60.0, 30)])
def test_a_listing_that_an_engine_finds_hard_is_asked_for_less_often(
    engine: None, monkeypatch: pytest.MonkeyPatch, takes: float, rests: float
) -> None:
    now, lister = [1000.0], ShardLister(ARN, lease_seconds=10)
    monkeypatch.setattr(shard_lister, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def listing(_: str) -> Listing:
        now[0] += takes
        return Listing((), "")

    monkeypatch.setattr(shards, "listing", listing)
    listed: list[float] = []
    for _ in range(2):
        lister.list_if_due([])
        listed.append(lister.listed_at)
        now[0] = lister.listed_at + rests - 0.01
        lister.list_if_due([])
        assert lister.listed_at == listed[-1]
        now[0] = lister.listed_at + rests
    assert listed == [1000, 1000 + rests]


def test_what_is_kept_of_a_shard_goes_by_no_clock(engine: None) -> None:
    positions.advance(ARN, "a", "7")
    finished("b", "7")
    kept = [*positions.unfinished(ARN), *positions.finished_among(ARN, ["b"]).values()]
    assert len(kept) == 2
    assert not any(LEASES.ttl in item.serialize() for item in kept)


def test_a_poller_goes_on_where_a_function_was(engine: None) -> None:
    positions.advance(ARN, "a", "000000000000000000007")
    (shard,) = positions.unfinished(ARN)
    assert ShardReader(TICKETS, shard, "ann", lambda batch: BatchResult(), Metrics()).checkpoint == shard.checkpoint
    assert shard.checkpoint == "000000000000000000007"


def test_the_position_stays_below_the_first_deferred_record(engine: None) -> None:
    batch = batch_of(ARN, "a", [raw_record(n, START) for n in (1, 2, 3, 4)])
    positions.advance_behind(batch, BatchResult(deferred=(batch.records[1], batch.records[3])))
    assert positions.read(ARN, "a") == padded("1")


def test_a_batch_whose_first_record_is_deferred_moves_nothing(engine: None) -> None:
    batch = batch_of(ARN, "a", [raw_record(1, START)])
    positions.advance_behind(batch, BatchResult(deferred=batch.records))
    assert positions.read(ARN, "a") == ""


def test_a_poller_that_knows_less_does_not_move_the_watermark_back(engine: None) -> None:
    earlier, later = clock.stamp(START), clock.stamp(START, offset=1)
    watermark.write(TICKETS, later)
    watermark.write(TICKETS, earlier)
    read = watermark.read(TICKETS)
    assert read is not None
    assert clock.stamp(read.as_of) == later
