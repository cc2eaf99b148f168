"""The watermark of a host that is called only when something happens: a scheduled call reads behind its positions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.errors import Throttled
from portal.streams import positions, scheduled_watermark
from portal.streams.batch import Record, padded
from portal.streams.stored import WATERMARK, WatermarkItem
from tests.support.shard_trees import ARN, START, ShardTree
from tickets.ticket.stored import TICKETS

concerning: set[int] = set()  # the numbers of the records that concern the handler


def concerns(record: Record) -> bool:
    return int(record.sequence) in concerning


def call() -> str:
    """What one scheduled call writes, a minute after the last."""
    scheduled_watermark._lister.cache_clear()
    return scheduled_watermark.write(TICKETS, concerns=concerns)


@pytest.fixture
def tree(engine: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[ShardTree]:
    concerning.clear()
    tree = ShardTree("a")
    tree.install(monkeypatch)
    yield tree
    scheduled_watermark._lister.cache_clear()


def after(seconds: float) -> str:
    return clock.stamp(START + timedelta(seconds=seconds))


def test_a_stream_in_which_nothing_happens_is_applied_up_to_now(tree: ShardTree) -> None:
    tree.pass_time(600)
    assert call() == after(600)
    stored = PLATFORM.get(WatermarkItem, TICKETS.name, sort=WATERMARK)
    assert stored is not None
    assert stored.as_of == after(600)


def test_a_record_that_is_still_to_be_applied_holds_the_watermark_back(tree: ShardTree) -> None:
    tree.pass_time(10)
    concerning.add(tree.write("a"))
    tree.pass_time(600)
    assert call() == after(10)


def test_a_record_that_was_applied_holds_nothing_back(tree: ShardTree) -> None:
    concerning.add(tree.write("a"))
    positions.advance(ARN, "a", f"{1:021}")
    tree.pass_time(600)
    assert call() == after(600)


def test_records_that_concern_nobody_are_read_once(tree: ShardTree) -> None:
    numbers = [tree.write("a") for _ in range(3)]
    call()
    assert positions.read(ARN, "a") == padded(str(numbers[-1]))
    tree.reads.clear()
    call()
    assert tree.reads == []


def test_the_position_is_never_moved_behind_a_record_that_is_to_come(tree: ShardTree) -> None:
    tree.write("a")
    concerning.add(tree.write("a"))
    tree.write("a")
    call()
    assert positions.read(ARN, "a") == padded("1")


def test_a_closed_shard_that_is_applied_no_longer_holds_its_child_back(tree: ShardTree) -> None:
    tree.write("a")
    tree.close("a", "b")
    tree.pass_time(600)
    call()
    assert call() == after(600)
    assert [shard.shard for shard in positions.unfinished(ARN)] == ["b"]
    assert positions.read(ARN, "a") == padded("1")


def test_a_closed_shard_with_a_record_to_come_is_not_finished(tree: ShardTree) -> None:
    concerning.add(tree.write("a"))
    tree.close("a", "b")
    tree.pass_time(600)
    assert call() == after(0)
    assert [shard.shard for shard in positions.unfinished(ARN)] == ["a", "b"]


def test_what_cannot_be_read_in_time_is_read_on_by_the_next_call(tree: ShardTree) -> None:
    tree.limit = 2
    for _ in range(5):
        tree.write("a")
        tree.pass_time(10)
    scheduled_watermark.write(TICKETS, concerns=concerns, read_seconds=-1)
    assert positions.read(ARN, "a") == padded("2")
    assert call() == after(50)


def test_a_shard_that_cannot_be_read_holds_back_and_raises_nothing(tree: ShardTree) -> None:
    tree.pass_time(60)
    call()
    tree.pass_time(60)
    tree.raises = [Throttled("busy")]
    assert call() == ""


def test_a_checkpoint_that_the_stream_has_trimmed_is_no_obstacle(tree: ShardTree) -> None:
    positions.advance(ARN, "a", f"{7:021}")
    tree.trimmed.add("a")
    tree.pass_time(60)
    assert call() == after(60)


def test_a_position_of_a_poller_is_read_on_from(tree: ShardTree) -> None:
    concerning.add(tree.write("a"))
    positions.add(ARN, "a", parent="")
    (shard,) = positions.unfinished(ARN)
    positions.save(shard, owner="ann", position=padded("1"), checkpoint=f"{1:021}", applied_until=after(0))
    tree.pass_time(60)
    assert call() == after(60)
