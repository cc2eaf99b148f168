"""A real stream of each engine that has one: what is written is applied, and the watermark follows."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from django.test import override_settings

from portal import clock
from portal.dynamo import client
from portal.streams import positions, shards, watermark
from portal.streams.batch import Batch, BatchResult, Record
from portal.streams.poller import Poller
from tests.support.waiting import wait_until
from tickets.ticket.stored import TICKETS

if TYPE_CHECKING:
    from tests.support.engines import AnyEngine

pytest_plugins = ["tests.support.engines"]


@pytest.fixture(scope="module", params=("ministack", "dynamodb-local"))
def chosen(request: pytest.FixtureRequest, start: Callable[[str], str]) -> Iterator[AnyEngine]:
    """Each engine whose stream is meant to be followed; moto's is not."""
    from tests.support.engines import AnyEngine  # pytest rewrites a plugin that nobody has imported

    engine = AnyEngine(request.param, start(request.param))
    with override_settings(DYNAMODB_ENDPOINT_URL=engine.endpoint_url):
        client.reset()
        yield engine
    client.reset()


@pytest.fixture
def records() -> list[Record]:
    return []


@pytest.fixture
def poller(any_engine: AnyEngine, records: list[Record]) -> Iterator[Poller]:
    def remember(batch: Batch) -> BatchResult:
        records.extend(batch.records)
        return BatchResult()

    one = Poller(TICKETS, remember)
    yield one
    one.release()


def write(name: str, **attributes: object) -> None:
    item = {"pk": {"S": name}, "sk": {"S": "X"}, **attributes}
    client.connection("platform").call("PutItem", TableName=TICKETS.full_name, Item=item)


def catch_up(poller: Poller) -> None:
    since = time.monotonic()
    wait_until(lambda: poller.caught_up(since), working=poller.step)


def test_records_come_in_order_and_the_position_is_the_last_one(poller: Poller, records: list[Record]) -> None:
    for number in range(30):
        write("a", number={"N": str(number)})
    catch_up(poller)
    assert [record.new["number"] for record in records if record.new] == list(range(30))
    poller.release()
    arn = shards.arn(TICKETS)
    (shard,) = shards.listing(arn).shards
    assert positions.read(arn, shard.id) == records[-1].sequence


def test_an_empty_map_is_an_empty_map(poller: Poller, records: list[Record]) -> None:
    write("a", map={"M": {}}, maps={"L": [{"M": {}}]})
    catch_up(poller)
    (record,) = records
    assert record.new == {"pk": "a", "sk": "X", "map": {}, "maps": [{}]}


def test_the_next_poller_goes_on_behind_the_last_record(poller: Poller, records: list[Record]) -> None:
    write("a")
    catch_up(poller)
    poller.release()
    write("b")
    second = Poller(TICKETS, poller._handler)
    catch_up(second)
    second.release()
    assert [record.keys["pk"] for record in records] == ["a", "b"]


def test_the_watermark_passes_a_change_when_it_is_applied(
    poller: Poller, records: list[Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watermark, "CACHED_SECONDS", 0)
    write("a")
    written_at = clock.now()
    wait_until(lambda: (now := watermark.read(TICKETS)) and now.as_of > written_at, working=poller.step)
    assert len(records) == 1


def test_a_finished_shard_is_moved_out_of_what_is_read_again(any_engine: AnyEngine) -> None:
    positions.add("arn", "a", parent="")
    (shard,) = positions.unfinished("arn")
    positions.finish(shard, position="7")
    assert positions.unfinished("arn") == []
    assert positions.read("arn", "a") == "7"
