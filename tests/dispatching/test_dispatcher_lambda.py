"""The dispatcher as Lambda functions: batches as Lambda takes them from the outbox's stream, and calls by the clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from delivery import lambda_handlers
from delivery.outbox import outbox_rows
from delivery.outbox.stored import OUTBOX, OutboxItem
from delivery.queues import depths, periodic_work
from delivery.queues import dispatcher as dispatching
from delivery.queues.periodic_work import PeriodicWork
from delivery.queues.queue_transport import Message, QueueTransport
from portal.errors import Throttled, Unavailable
from tenants.tenancy.context import TenantContext
from tests.dispatching.test_dispatching import answer, received
from tests.support.folding import Follower
from tests.support.outbox import pending, rows, subscribe
from tests.support.world import World
from tickets.desk import creating

DONE: dict[str, Any] = {"batchItemFailures": []}


@pytest.fixture
def transport(world: World) -> Iterator[QueueTransport]:
    transport = QueueTransport()
    transport.create_all()
    new_process()
    yield transport
    new_process()


@pytest.fixture
def alice(world: World) -> TenantContext:
    subscribe(world, "acme")
    return world.context("alice", "acme")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test waits: what is due is swept at once, and all but nothing is waited for."""
    real = PeriodicWork.sweep
    monkeypatch.setattr(PeriodicWork, "sweep", lambda self: real(self, grace=timedelta(0)))
    monkeypatch.setattr(periodic_work, "SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(periodic_work, "_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(lambda_handlers, "_WATCHED_SECONDS", 0.0)


def new_process() -> None:
    """Forget what an invocation may leave behind, as Lambda does when it likes."""
    lambda_handlers._dispatcher.cache_clear()


def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every record come so late that its row is read before it is sent."""
    monkeypatch.setattr(dispatching, "LATE", timedelta(0))


def event(follower: Follower) -> dict[str, Any]:
    """What is new in the stream, as Lambda sends it; through JSON, as everything that Lambda sends."""
    records = [{**record.raw, "eventSourceARN": follower.arn} for record in follower.new()]
    for record in records:
        at = record["dynamodb"].get("ApproximateCreationDateTime")
        record["dynamodb"]["ApproximateCreationDateTime"] = at.timestamp() if hasattr(at, "timestamp") else at
    read: dict[str, Any] = json.loads(json.dumps({"Records": records}))
    return read


def first_failed(sent: dict[str, Any]) -> list[str]:
    found = lambda_handlers.outbox_handler(sent, None)["batchItemFailures"]
    return [one["itemIdentifier"] for one in found]


def behind(sent: dict[str, Any], sequence: str) -> dict[str, Any]:
    """What Lambda sends after an answer that named this record: everything from there on."""
    numbers = [record["dynamodb"]["SequenceNumber"] for record in sent["Records"]]
    return {"Records": sent["Records"][numbers.index(sequence) :]}


def swept() -> Any:
    return lambda_handlers.sweep_handler({"source": "aws.events"}, None)


def events_in(messages: list[Message]) -> list[str]:
    return sorted(message.event_id for message in messages)


def told(alice: TenantContext, number: int) -> list[str]:
    for n in range(number):
        creating.create(alice, title=f"Ticket {n}")
    return sorted(row.event_id for row in rows())


# --- the stream ---


def test_a_batch_of_new_rows_is_sent_and_nothing_of_it_comes_again(
    alice: TenantContext, transport: QueueTransport
) -> None:
    ids = told(alice, 3)
    assert lambda_handlers.outbox_handler(event(Follower(OUTBOX)), None) == DONE
    assert events_in(received(transport)) == ids
    assert swept() == {"sent": 0}


@pytest.mark.parametrize("in_another_process", [False, True])
def test_a_batch_that_comes_again_is_sent_once(
    alice: TenantContext, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch, *, in_another_process: bool
) -> None:
    ids, sent = told(alice, 2), event(Follower(OUTBOX))
    assert first_failed(sent) == []
    if in_another_process:
        new_process()
        late(monkeypatch)
    assert first_failed(sent) == []
    assert events_in(received(transport)) == ids


def test_a_batch_that_fails_in_the_middle_names_the_first_failed_record(
    alice: TenantContext, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(alice, 4)
    sent, in_order = event(Follower(OUTBOX)), rows()
    note = outbox_rows.sent

    def throttled(row: OutboxItem, members: set[str]) -> None:
        if row.event_id in {in_order[1].event_id, in_order[2].event_id}:
            raise Throttled("The database is busy.")
        note(row, members)

    with monkeypatch.context() as busy:
        busy.setattr(outbox_rows, "sent", throttled)
        (named,) = first_failed(sent)
    assert named == sent["Records"][1]["dynamodb"]["SequenceNumber"]
    assert [row.event_id for row in rows() if row.sent_until > row.timestamp] == [
        in_order[0].event_id,
        in_order[3].event_id,
    ]
    assert first_failed(behind(sent, named)) == []
    assert events_in(received(transport)) == sorted(row.event_id for row in in_order)  # each once
    assert all(row.sent_until > row.timestamp for row in rows())


def test_while_the_database_is_away_all_of_the_batch_comes_again(
    alice: TenantContext, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Unavailable("The database cannot be reached.")

    ids, sent = told(alice, 2), event(Follower(OUTBOX))
    with monkeypatch.context() as outage:
        outage.setattr(outbox_rows, "sent", away)
        assert first_failed(sent) == [sent["Records"][0]["dynamodb"]["SequenceNumber"]]
    assert first_failed(sent) == []
    assert events_in(received(transport)) == ids


class Killed(BaseException):
    """The end of a process in the middle of its work."""


def test_a_function_that_is_killed_between_sending_and_noting_sends_again_and_nothing_is_lost(
    alice: TenantContext, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise Killed

    ids, sent = told(alice, 2), event(Follower(OUTBOX))
    with monkeypatch.context() as kill:
        kill.setattr(outbox_rows, "sent", killed)
        with pytest.raises(Killed):
            lambda_handlers.outbox_handler(sent, None)
    new_process()
    assert first_failed(sent) == []
    assert events_in(received(transport)) == sorted(2 * ids)


def test_what_is_over_a_tenants_limits_waits_in_the_outbox_and_in_no_process(
    alice: TenantContext, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.DELIVERY_IN_FLIGHT = 2
    ids, follower = told(alice, 3), Follower(OUTBOX)
    assert first_failed(event(follower)) == []
    assert lambda_handlers._dispatcher()._sender.counts() == {"in_flight": 2, "waiting": 0}
    new_process()
    assert swept() == {"sent": 1}
    assert events_in(received(transport)) == ids


def test_an_answer_that_another_process_saw_leaves_room_for_the_next_row(
    alice: TenantContext, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.DELIVERY_IN_FLIGHT = 1
    follower = Follower(OUTBOX)
    told(alice, 1)
    assert first_failed(event(follower)) == []
    answer(alice, received(transport))
    follower.new()  # by another process
    monkeypatch.setattr(dispatching.Dispatcher.look_up, "__kwdefaults__", {"older_than": 0})
    told(alice, 1)
    assert first_failed(event(follower)) == []
    assert len(received(transport)) == 1


def test_the_end_of_nothing_is_fine(transport: QueueTransport) -> None:
    assert lambda_handlers.outbox_handler({}, None) == DONE


# --- the clock ---


def test_the_schedule_sends_what_the_stream_did_not_and_tells_how_full_the_queues_are(
    alice: TenantContext, transport: QueueTransport
) -> None:
    ids = told(alice, 3)
    assert depths.read() is None
    assert swept() == {"sent": 3}
    assert events_in(received(transport)) == ids
    assert depths.read() is not None


def test_a_backlog_of_one_tenant_is_worked_on_within_one_call_as_its_answers_come(
    alice: TenantContext, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.DELIVERY_IN_FLIGHT, settings.DELIVERY_BURST, settings.DELIVERY_PER_SECOND = 1, 9, 1000
    ids, found = told(alice, 3), []
    turn = PeriodicWork.turn

    def deliver_too(self: PeriodicWork) -> None:
        turn(self)
        messages = received(transport)
        assert len(messages) <= 1
        answer(alice, messages)
        found.extend(messages)

    monkeypatch.setattr(PeriodicWork, "turn", deliver_too)
    assert swept() == {"sent": 3}
    assert events_in(found) == ids
    assert pending() == []


def test_a_call_ends_in_time_while_a_receiver_does_not_answer_and_leaves_the_rest_to_the_next(
    alice: TenantContext, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.DELIVERY_IN_FLIGHT = 1
    told(alice, 2)
    monkeypatch.setattr(lambda_handlers, "SWEEPS_SECONDS", 0.2)
    assert swept() == {"sent": 1}
    assert len(pending()) == 2


def test_a_schedule_that_meets_a_busy_database_waits_for_the_next_minute(
    alice: TenantContext, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise Unavailable("The database cannot be reached.")

    told(alice, 1)
    with monkeypatch.context() as outage:
        outage.setattr(PeriodicWork, "turn", away)
        assert swept() == {}
    assert swept() == {"sent": 1}
