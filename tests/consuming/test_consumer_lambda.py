"""Deliveries as a Lambda function: a batch in, and the ids of what stays in the queue out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from delivery import lambda_handlers
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from delivery.queues.limits import DeliveryLimits, Schedule
from delivery.queues.queue_transport import Message
from portal.errors import Unavailable
from tests.support import deliveries
from tests.support.queue_in_memory import QueuesInMemory
from tests.support.world import World

ENDPOINT = "test_receiver"


@pytest.fixture
def queues(monkeypatch: pytest.MonkeyPatch) -> QueuesInMemory:
    queues = QueuesInMemory()
    monkeypatch.setattr(lambda_handlers, "QueueTransport", lambda: queues)
    limits = DeliveryLimits(in_flight=6, per_second=1000, burst=1000)
    monkeypatch.setattr(lambda_handlers, "_schedule", Schedule(10, limits_of=lambda tenant_id: limits))
    return queues


@pytest.fixture
def delivered() -> Iterator[list[str]]:
    """The destinations in the order in which they were delivered to."""
    found: list[str] = []

    def deliver(work: Work) -> Outcome:
        found.append(work.destination)
        if "broken" in work.destination:
            raise ZeroDivisionError
        return Outcome("answered")

    with deliveries.destination(ENDPOINT, deliver):
        yield found


def told(world: World, to: str = ENDPOINT, **more: int) -> Message:
    return replace(deliveries.message(deliveries.row(world.tenants["acme"].tenant_id, to), to), **more)


def event(*messages: Message | str, receives: int = 1) -> dict[str, Any]:
    return {
        "Records": [
            {
                "messageId": f"m{number}",
                "receiptHandle": f"h{number}",
                "body": one if isinstance(one, str) else one.body(),
                "attributes": {"ApproximateReceiveCount": str(receives), "SentTimestamp": "1763780000000"},
                "eventSourceARN": "arn:aws:sqs:eu-central-1:000000000000:Pooldesk-delivery-05",
            }
            for number, one in enumerate(messages)
        ]
    }


def handled(*messages: Message | str, receives: int = 1) -> list[str]:
    answer = lambda_handlers.queue_handler(event(*messages, receives=receives), None)
    return [failure["itemIdentifier"] for failure in answer["batchItemFailures"]]


def test_a_batch_is_delivered_and_nothing_of_it_stays(
    world: World, queues: QueuesInMemory, delivered: list[str]
) -> None:
    assert handled(*(told(world, f"{ENDPOINT}_{number}") for number in range(3)), "not json") == []
    assert sorted(delivered) == [f"{ENDPOINT}_{number}" for number in range(3)]
    assert queues.left() == []


def test_what_is_over_a_tenants_limits_is_sent_again_to_its_queue(
    world: World, queues: QueuesInMemory, delivered: list[str]
) -> None:
    assert handled(*(told(world, f"{ENDPOINT}_{number}") for number in range(8))) == []
    assert len(delivered) == 5  # half of a batch
    assert {message.postponed for message in queues.left()} == {1}
    assert {stored.queue for stored in queues._stored} == {5}


def test_suspects_come_last_and_one_at_a_time(world: World, queues: QueuesInMemory, delivered: list[str]) -> None:
    suspects = [told(world, f"{ENDPOINT}_suspect_{number}", strikes=1) for number in range(2)]
    assert handled(*suspects, told(world, f"{ENDPOINT}_fresh")) == []
    assert delivered == [f"{ENDPOINT}_fresh", f"{ENDPOINT}_suspect_0"]
    assert [message.destination for message in queues.left()] == [f"{ENDPOINT}_suspect_1"]


def test_what_nobody_could_send_again_stays_and_the_rest_goes(
    world: World, queues: QueuesInMemory, delivered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*args: Any, **kwargs: Any) -> None:
        raise Unavailable("away")

    monkeypatch.setattr(queues, "send", away)
    assert handled(told(world), told(world, f"{ENDPOINT}_broken")) == ["m1"]


def test_one_batch_leaves_nothing_taken_for_the_next(
    world: World, queues: QueuesInMemory, delivered: list[str]
) -> None:
    for _ in range(4):
        assert handled(told(world), told(world, strikes=1)) == []
    assert len(delivered) == 8


def test_an_event_without_records_is_nothing_to_do(queues: QueuesInMemory) -> None:
    assert lambda_handlers.queue_handler({}, None) == {"batchItemFailures": []}
