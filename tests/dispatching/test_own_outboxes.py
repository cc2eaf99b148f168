"""Of a tenant that has an outbox of its own everything leaves as of all others, by the same workers and queues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from delivery import lambda_handlers
from delivery.outbox import outbox_rows, stored
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from delivery.outbox.stored import OUTBOX, OutboxItem
from delivery.queues import dead_deliveries, holds
from delivery.queues.dispatcher import Dispatcher
from delivery.queues.holds import HoldApplier
from delivery.queues.message_handling import MessageHandler
from delivery.queues.periodic_work import PeriodicWork
from delivery.queues.queue_transport import Message
from delivery.queues.sender import Sender
from portal.dynamo import provisioning
from portal.dynamo.placement import Placement
from portal.dynamo.store import Store
from portal.errors import Conflict, NotFound
from portal.streams.poller import Poller
from portal.streams.stream_source import POOLED, StreamSource
from tenants.audit_trail import recording
from tenants.audit_trail.recording import SYSTEM
from tests.support import deliveries, placed
from tests.support.folding import Follower
from tests.support.queue_in_memory import QueuesInMemory
from tests.support.world import World

ENDPOINT = "test_receiver"
AT_ONCE = timedelta(0)


@pytest.fixture(autouse=True)
def sites(settings: Any) -> None:
    settings.SILOS = placed.sites()


@pytest.fixture(params=[placed.BRIDGE, placed.SILO], ids=["bridge", "silo"])
def where(request: pytest.FixtureRequest) -> Placement:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def acme(world: World, where: Placement) -> str:
    return placed.lay(world, "acme", where)


@pytest.fixture
def queues() -> QueuesInMemory:
    return QueuesInMemory()


@pytest.fixture
def dispatcher(queues: QueuesInMemory) -> Dispatcher:
    return Dispatcher(Sender(queues))


@pytest.fixture
def delivered() -> Iterator[list[str]]:
    """The ids of the events that a receiver got. It answers until the list is full of "down"."""
    got: list[str] = []

    def deliver(work: Work) -> Outcome:
        got.append(work.row.event_id)
        return Outcome("answered")

    with deliveries.destination(ENDPOINT, deliver):
        yield got


def handled(told: Message) -> str:
    return MessageHandler().handle(deliveries.received(told)).did


def periodic(queues: QueuesInMemory, dispatcher: Dispatcher) -> PeriodicWork:
    sender = dispatcher._sender
    return PeriodicWork(
        dispatcher,
        sender,  # type: ignore[arg-type]
        queues,  # type: ignore[arg-type]
        sweeps=lambda: True,
    )


def test_the_stream_of_an_own_outbox_brings_messages_that_say_where_their_row_is(
    world: World, acme: str, where: Placement, queues: QueuesInMemory, dispatcher: Dispatcher, delivered: list[str]
) -> None:
    own, pooled = StreamSource(acme, where), POOLED
    pollers = []
    for source in (own, pooled):
        with source.entered():
            pollers.append(Poller(OUTBOX, dispatcher.handle))
            pollers[-1].step()
    rows = deliveries.row(acme, ENDPOINT, where=where), deliveries.row(world.tenants["globex"].tenant_id, ENDPOINT)
    for source, one in zip((own, pooled), pollers, strict=True):
        with source.entered():
            one.step()
            one.release()
    told = {message.event_id: message for message in queues.left()}
    assert [told[row.event_id].placement for row in rows] == [str(where), ""]
    assert [handled(told[row.event_id]) for row in rows] == ["answered", "answered"]
    assert delivered == [row.event_id for row in rows]
    assert deliveries.stored(rows[0], where).pending is None


def test_a_message_of_before_is_about_the_outbox_of_all(world: World, delivered: list[str]) -> None:
    told = deliveries.message(deliveries.row(world.tenants["acme"].tenant_id, ENDPOINT), ENDPOINT)
    assert "placement" not in json.loads(told.body())
    assert handled(Message.read(told.body())) == "answered"


@pytest.mark.parametrize("text", ["silo", "elsewhere", "silo/../x", 7])
def test_a_message_with_a_placement_that_is_none_is_thrown_away(world: World, text: object) -> None:
    told = deliveries.message(deliveries.row(world.tenants["acme"].tenant_id, ENDPOINT), ENDPOINT)
    body = json.dumps(json.loads(told.body()) | {"placement": text})
    with pytest.raises(Exception, match="no message of ours"):
        Message.read(body)


def test_what_the_stream_missed_is_swept_out_of_each_outbox(
    world: World, acme: str, where: Placement, queues: QueuesInMemory, dispatcher: Dispatcher
) -> None:
    rows = deliveries.row(acme, ENDPOINT, where=where), deliveries.row(acme, ENDPOINT)
    work = periodic(queues, dispatcher)
    assert work.sweep(grace=AT_ONCE) == 2
    assert {(one.event_id, one.placement) for one in queues.left()} == {
        (rows[0].event_id, str(where)),
        (rows[1].event_id, ""),
    }
    assert work.sweep(grace=AT_ONCE) == 0, "both were noted where they are"


def test_the_outbox_of_a_site_that_is_away_keeps_no_other_from_being_swept(
    world: World, queues: QueuesInMemory, dispatcher: Dispatcher, settings: Any
) -> None:
    acme = placed.lay(world, "acme", placed.SILO)
    settings.SILOS = {}
    deliveries.row(acme, ENDPOINT)
    assert periodic(queues, dispatcher).sweep(grace=AT_ONCE) == 1


def test_an_answer_that_no_stream_has_told_is_looked_up_in_each_outbox(
    world: World, acme: str, where: Placement, queues: QueuesInMemory, dispatcher: Dispatcher
) -> None:
    rows = deliveries.row(acme, ENDPOINT, where=where), deliveries.row(acme, ENDPOINT)
    periodic(queues, dispatcher).sweep(grace=AT_ONCE)
    for row, there in zip(rows, (where, POOLED.placement), strict=True):
        outbox_rows.answered(Work(Store("tenant", acme, there), row, 0, ENDPOINT))
    assert dispatcher.look_up(older_than=0.0) == 2


def test_a_message_whose_outbox_is_no_more_is_over(world: World, acme: str, where: Placement) -> None:
    told = deliveries.message(deliveries.row(acme, ENDPOINT, where=where), ENDPOINT, where=where)
    provisioning.delete_placed(acme, where)
    assert handled(told) == "closed"


# --- holds ---


def test_what_is_held_waits_in_its_own_outbox_until_it_goes_on(
    world: World, acme: str, where: Placement, delivered: list[str]
) -> None:
    row = deliveries.row(acme, ENDPOINT, where=where)
    told = deliveries.message(row, ENDPOINT, where=where)
    holds.pause(world.tenants["acme"], by=SYSTEM)
    assert handled(told) == "held"
    assert deliveries.stored(row, where).pending == stored.held(acme)
    holds.resume(world.tenants["acme"], by=SYSTEM)
    assert HoldApplier().step() == 1
    assert handled(told) == "answered"


def test_what_is_dropped_is_closed_in_each_outbox(world: World, acme: str, where: Placement) -> None:
    rows = deliveries.row(acme, ENDPOINT, where=where), deliveries.row(acme, ENDPOINT)
    holds.drop(world.tenants["acme"], by=SYSTEM)
    assert HoldApplier().step() == 2
    assert (deliveries.stored(rows[0], where).pending, deliveries.stored(rows[1]).pending) == (None, None)


# --- what is dead ---


@pytest.fixture
def dead(acme: str, where: Placement) -> OutboxItem:
    row = deliveries.row(acme, ENDPOINT, where=where)
    dead_deliveries.keep(Work(Store("tenant", acme, where), row, 0, ENDPOINT), reason="410")
    return row


def test_what_is_dead_is_replayed_into_its_own_outbox_once(dead: OutboxItem, where: Placement) -> None:
    assert deliveries.stored(dead, where).pending is None
    (letter,) = deliveries.dead()
    dead_deliveries.replay(letter, by=SYSTEM)
    assert deliveries.stored(dead, where).open == {f"0/{ENDPOINT}"}
    assert list(deliveries.dead()) == []
    with pytest.raises(NotFound):
        dead_deliveries.replay(letter, by=SYSTEM)


def test_a_replay_that_came_half_way_is_gone_on_with(
    dead: OutboxItem, where: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    (letter,) = deliveries.dead()
    with monkeypatch.context() as broken:
        broken.setattr(recording, "commit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            dead_deliveries.replay(letter, by=SYSTEM)
    dead_deliveries.replay(letter, by=SYSTEM)
    assert list(deliveries.dead()) == []
    assert deliveries.stored(dead, where).open == {f"0/{ENDPOINT}"}


def test_what_is_dead_in_an_outbox_that_is_no_more_can_only_be_dropped(
    dead: OutboxItem, acme: str, where: Placement
) -> None:
    provisioning.delete_placed(acme, where)
    (letter,) = deliveries.dead()
    with pytest.raises(Conflict, match="no such event any more"):
        dead_deliveries.replay(letter, by=SYSTEM)
    dead_deliveries.drop(letter, by=SYSTEM)
    assert list(deliveries.dead()) == []


# --- the function ---


def test_the_function_sends_what_is_new_in_an_own_outbox(
    acme: str, where: Placement, queues: QueuesInMemory, dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lambda_handlers, "_dispatcher", lambda: dispatcher)
    row = deliveries.row(acme, ENDPOINT, where=where)
    with StreamSource(acme, where).entered():
        follower = Follower(OUTBOX)
        records = [{**record.raw, "eventSourceARN": follower.arn} for record in follower.new()]
    assert lambda_handlers.outbox_handler({"Records": records}, None) == {"batchItemFailures": []}
    (told,) = queues.left()
    assert (told.event_id, told.placement) == (row.event_id, str(where))


def test_the_function_passes_over_a_row_of_another_tenant_in_the_stream_of_an_own_outbox(
    world: World,
    acme: str,
    where: Placement,
    queues: QueuesInMemory,
    dispatcher: Dispatcher,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(lambda_handlers, "_dispatcher", lambda: dispatcher)
    deliveries.row(world.tenants["globex"].tenant_id, ENDPOINT)
    with StreamSource(acme, where).entered():
        own = Follower(OUTBOX)
    records = [{**record.raw, "eventSourceARN": own.arn} for record in Follower(OUTBOX).new()]
    lambda_handlers.outbox_handler({"Records": records}, None)
    assert "1 records in the stream" in caplog.text
    assert queues.left() == []
