"""Positions and the watermark: facts that only grow, whoever writes them."""

from __future__ import annotations

from portal import clock
from portal.streams import leases, positions, watermark
from portal.streams.batch import BatchResult, batch_of, padded
from tests.support.shard_trees import ARN, START, raw_record
from tickets.ticket.tables import TICKETS


def test_a_shard_of_which_nobody_has_said_anything_has_no_position(engine: None) -> None:
    assert positions.read(ARN, "a") == ""


def test_a_position_only_grows(engine: None) -> None:
    positions.advance(ARN, "a", "9")
    positions.advance(ARN, "a", "10")
    positions.advance(ARN, "a", "9")
    assert positions.read(ARN, "a") == padded("10")


def test_a_finished_shard_keeps_its_position(engine: None) -> None:
    positions.advance(ARN, "a", "10")
    (lease,) = leases.stored(ARN)
    leases.finish(lease, position=lease.position)
    assert positions.read(ARN, "a") == padded("10")


def test_a_poller_goes_on_where_a_host_without_leases_was(engine: None) -> None:
    positions.advance(ARN, "a", "000000000000000000007")
    (lease,) = leases.stored(ARN)
    taken = leases.take(lease, me="ann")
    assert taken is not None
    assert (taken.checkpoint, taken.expires_at) == ("000000000000000000007", None)


def test_what_a_host_without_leases_writes_goes_by_ttl(engine: None) -> None:
    positions.advance(ARN, "a", "7")
    assert leases.stored(ARN)[0].expires_at is not None


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
