"""What the outbox holds gets to the queues: at once by the stream, and whatever that missed by the sweeper."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest

from delivery.outbox import outbox_rows
from delivery.outbox.outbox_rows import Work
from delivery.outbox.stored import OUTBOX
from delivery.queues.dispatcher import Dispatcher, Sweeper
from delivery.queues.limits import DeliveryLimits
from delivery.queues.periodic_work import PeriodicWork
from delivery.queues.queue_transport import Message, QueueTransport
from delivery.queues.sender import Sender
from portal.dynamo import meter
from portal.errors import Unavailable
from portal.streams.poller import Poller
from tenants.tenancy.context import TenantContext
from tests.support import commands
from tests.support.outbox import pending, rows, subscribe
from tests.support.world import World
from tickets.desk import bulk, changing, creating
from tickets.desk.changing import TicketState
from tickets.ticket.fields import Status

AT_ONCE = timedelta(0)


@pytest.fixture
def transport(world: World) -> QueueTransport:
    transport = QueueTransport()
    transport.create_all()
    return transport


@pytest.fixture
def sender(transport: QueueTransport) -> Sender:
    return Sender(transport, limits_of=lambda tenant_id: DeliveryLimits(1000, 1000, 1000))


@pytest.fixture
def dispatcher(sender: Sender) -> Dispatcher:
    return Dispatcher(sender)


@pytest.fixture
def poller(dispatcher: Dispatcher) -> Iterator[Poller]:
    poller = Poller(OUTBOX, dispatcher.handle)
    yield poller
    poller.release()


@pytest.fixture
def alice(world: World) -> TenantContext:
    subscribe(world, "acme", to=["ep_one", "ep_two"])
    return world.context("alice", "acme")


def received(transport: QueueTransport) -> list[Message]:
    """All messages of all queues, which are deleted."""
    found = []
    for queue in range(transport.queues):
        while batch := transport.receive(queue, wait=0):
            transport.delete(queue, [one.handle for one in batch])
            found += [one.message for one in batch]
    return found


def answer(alice: TenantContext, messages: list[Message]) -> None:
    by_key = {(row.event_id, row.timestamp): row for row in rows()}
    for message in messages:
        row = by_key[message.event_id, message.timestamp]
        outbox_rows.answered(Work(alice.repository, row, message.index, message.destination))


# --- by the stream ---


def test_one_step_of_the_poller_sends_what_was_told_before_it(
    alice: TenantContext, poller: Poller, transport: QueueTransport
) -> None:
    poller.step()  # takes the shards
    creating.create(alice, title="Secret printer")
    poller.step()
    messages = received(transport)
    assert not any(word in json.dumps([vars(one) for one in messages]) for word in ("Secret", "Acme")), "ids alone"
    (row,) = rows()
    assert {(m.event_id, m.timestamp) for m in messages} == {(row.event_id, row.timestamp)}
    assert sorted((m.tenant_id, m.index, m.destination) for m in messages) == [
        (alice.tenant_id, 0, "ep_one"),
        (alice.tenant_id, 0, "ep_two"),
    ]


def test_a_bulk_rows_49_events_are_49_messages_for_each_destination(
    world: World, poller: Poller, transport: QueueTransport
) -> None:
    subscribe(world, "acme", "ticket.status_changed", to=["ep_one", "ep_two"])
    alice = world.context("alice", "acme")
    numbers = world.tickets("acme", 49)
    states = [TicketState.of(changing.read(alice, number)) for number in numbers]
    bulk.change_status(alice, states, to=Status.CLOSED)
    poller.step()
    poller.step()
    members = [(m.index, m.destination) for m in received(transport)]
    assert sorted(members) == [(i, to) for i in range(49) for to in ("ep_one", "ep_two")]


def test_a_row_that_was_sent_is_not_swept_and_one_that_was_answered_is_pending_no_more(
    alice: TenantContext, poller: Poller, dispatcher: Dispatcher, transport: QueueTransport
) -> None:
    creating.create(alice, title="Printer")
    poller.step()
    poller.step()
    messages = received(transport)
    assert Sweeper(dispatcher).sweep(grace=AT_ONCE)["due"] == 0
    assert len(pending()) == 1
    answer(alice, messages)
    assert pending() == []


# --- by the sweeper ---


def test_the_sweeper_sends_what_the_stream_did_not(
    alice: TenantContext, dispatcher: Dispatcher, transport: QueueTransport
) -> None:
    for title in ("One", "Two", "Three"):
        creating.create(alice, title=title)
    assert Sweeper(dispatcher).sweep()["due"] == 0  # the stream has ten seconds
    assert Sweeper(dispatcher).sweep(grace=AT_ONCE) == {"due": 3, "sent": 6, "waiting": 0, "left": 0}
    assert len(received(transport)) == 6
    assert Sweeper(dispatcher).sweep(grace=AT_ONCE)["due"] == 0


def test_a_failed_attempt_is_sent_again_when_it_is_due_and_not_before(
    alice: TenantContext, dispatcher: Dispatcher, transport: QueueTransport
) -> None:
    creating.create(alice, title="Printer")
    Sweeper(dispatcher).sweep(grace=AT_ONCE)
    first, second = received(transport)
    (row,) = rows()
    later, now = "2099-01-01T00:00:00.000000Z", row.timestamp
    outbox_rows.failed(Work(alice.repository, row, 0, first.destination), next_at=later)
    assert Sweeper(dispatcher).sweep(grace=AT_ONCE)["sent"] == 0
    (row,) = rows()
    outbox_rows.failed(Work(alice.repository, row, 0, second.destination), next_at=now)
    assert Sweeper(dispatcher).sweep(grace=AT_ONCE)["sent"] == 1
    assert [m.destination for m in received(transport)] == [second.destination]


def test_a_failed_attempt_that_is_hastened_is_sent_as_soon_as_the_stream_brings_it(
    alice: TenantContext, dispatcher: Dispatcher, poller: Poller, transport: QueueTransport
) -> None:
    creating.create(alice, title="Printer")
    poller.step()
    first, _ = received(transport)
    outbox_rows.failed(Work(alice.repository, rows()[0], 0, first.destination), next_at="2099-01-01T00:00:00.000000Z")
    poller.step()
    assert received(transport) == []
    assert outbox_rows.hasten(Work(alice.repository, rows()[0], 0, first.destination))
    poller.step()
    assert [m.destination for m in received(transport)] == [first.destination]


def test_what_a_tenants_limits_leave_is_put_off_to_its_turn_and_stays_pending(
    alice: TenantContext, transport: QueueTransport
) -> None:
    for title in ("One", "Two", "Three"):
        creating.create(alice, title=title)
    sender = Sender(transport, limits_of=lambda tenant_id: DeliveryLimits(2, 1000, 1000))
    sweeper = Sweeper(Dispatcher(sender))
    swept = sweeper.sweep(grace=AT_ONCE)
    assert (swept["due"], swept["sent"], swept["waiting"] + swept["left"]) == (3, 2, 4)
    assert sweeper.sweep(grace=AT_ONCE)["due"] == 0
    assert len(pending()) == 3


def test_an_answer_lets_the_next_message_of_its_tenant_go(alice: TenantContext, transport: QueueTransport) -> None:
    for title in ("One", "Two"):
        creating.create(alice, title=title)
    sender = Sender(transport, limits_of=lambda tenant_id: DeliveryLimits(1, 1000, 1000))
    poller = Poller(OUTBOX, Dispatcher(sender).handle)
    sent: list[Message] = []
    for _ in range(8):
        poller.step()
        found = received(transport)
        assert len(found) <= 1
        answer(alice, found)
        sent += found
    assert len({(m.event_id, m.destination) for m in sent}) == len(sent) == 4
    assert pending() == []
    poller.release()


def test_an_answer_that_another_dispatcher_saw_frees_its_unit_too(
    alice: TenantContext, transport: QueueTransport
) -> None:
    creating.create(alice, title="Printer")
    sender = Sender(transport, limits_of=lambda tenant_id: DeliveryLimits(2, 1000, 1000))
    dispatcher = Dispatcher(sender)
    Sweeper(dispatcher).sweep(grace=AT_ONCE)
    assert sender.counts()["in_flight"] == 2
    answer(alice, received(transport)[:1])
    assert dispatcher.look_up(older_than=0) == 1
    assert sender.counts()["in_flight"] == 1


def one_at_a_time(transport: QueueTransport) -> Sender:
    return Sender(transport, limits_of=lambda tenant_id: DeliveryLimits(1, 1000, 1000))


def give_back(alice: TenantContext, message: Message) -> None:
    """Let a message come to its end that was put off too often."""
    (row,) = (row for row in rows() if row.event_id == message.event_id)
    outbox_rows.give_back(Work(alice.repository, row, message.index, message.destination))


def test_what_is_given_back_lets_the_next_of_its_tenant_go_and_is_sent_again(
    alice: TenantContext, transport: QueueTransport
) -> None:
    dispatcher = Dispatcher(one_at_a_time(transport))
    poller, sweeper = Poller(OUTBOX, dispatcher.handle), Sweeper(dispatcher)
    poller.step()
    creating.create(alice, title="Printer")
    poller.step()
    (first,) = received(transport)
    give_back(alice, first)
    poller.step()
    (second,) = received(transport)
    assert second.destination != first.destination
    assert sweeper.sweep(grace=AT_ONCE)["waiting"] == 1, "the tenant has one on its way"
    answer(alice, [second])
    poller.step()
    assert received(transport) == [first]
    answer(alice, [first])
    assert pending() == []
    poller.release()


def test_what_is_given_back_is_sent_again_before_the_stream_tells_of_it(
    alice: TenantContext, dispatcher: Dispatcher, transport: QueueTransport, sender: Sender
) -> None:
    creating.create(alice, title="Printer")
    Sweeper(dispatcher).sweep(grace=AT_ONCE)
    first, _ = received(transport)
    for _ in range(2):
        give_back(alice, first)
        assert Sweeper(dispatcher).sweep(grace=AT_ONCE)["sent"] == 1
        assert received(transport) == [first]
    assert sender.counts()["in_flight"] == 2


def test_what_is_given_back_and_then_fails_frees_its_unit_each_time(
    alice: TenantContext, transport: QueueTransport
) -> None:
    sender = one_at_a_time(transport)
    dispatcher = Dispatcher(sender)
    creating.create(alice, title="Printer")
    Sweeper(dispatcher).sweep(grace=AT_ONCE)
    (first,) = received(transport)
    give_back(alice, first)
    assert (dispatcher.look_up(older_than=0), dispatcher.pump()) == (1, 1)
    answer(alice, received(transport))
    assert dispatcher.look_up(older_than=0) == 1
    assert Sweeper(dispatcher).sweep(grace=AT_ONCE)["sent"] == 1
    assert received(transport) == [first]
    (row,) = rows()
    outbox_rows.failed(Work(alice.repository, row, 0, first.destination), next_at="2099-01-01T00:00:00.000000Z")
    assert dispatcher.look_up(older_than=0) == 1
    assert sender.counts() == {"in_flight": 0, "waiting": 0}


# --- when something is away ---


class Away(QueueTransport):
    down = True

    def send(self, *args: object, **kwargs: object) -> list[Message]:
        if self.down:
            raise Unavailable("The queues cannot be reached.")
        return super().send(*args, **kwargs)  # type: ignore[arg-type]


def test_while_the_queues_are_down_changes_succeed_and_events_wait_and_leave_when_they_are_back(
    alice: TenantContext, transport: QueueTransport
) -> None:
    queues = Away()
    dispatcher = Dispatcher(Sender(queues))
    poller, sweeper = Poller(OUTBOX, dispatcher.handle), Sweeper(dispatcher)
    poller.step()
    number = creating.create(alice, title="Printer")
    changing.change_status(alice, number, to=Status.PENDING, version=1)
    poller.step()
    assert sweeper.sweep(grace=AT_ONCE)["sent"] == 0
    assert (len(pending()), received(transport)) == (2, [])
    queues.down = False
    for row in rows():
        outbox_rows.put_off(row, row.timestamp)  # their turn comes within a moment, which no test waits for
    assert sweeper.sweep(grace=AT_ONCE)["sent"] == 4
    assert Counter(m.event_id for m in received(transport)) == {row.event_id: 2 for row in rows()}
    poller.release()


# --- the command, and what it costs ---


def test_run_dispatch_once_sends_all_that_was_told(alice: TenantContext, transport: QueueTransport) -> None:
    for title in ("One", "Two", "Three"):
        creating.create(alice, title=title)
    ended = commands.run("run_dispatch", "--once")
    assert ended.status == 0
    assert len({(m.event_id, m.destination) for m in received(transport)}) == 6
    assert json.loads(ended.out.splitlines()[-1])["sent"] == 6


def test_dispatching_and_answering_an_event_costs_five_write_units(
    world: World, transport: QueueTransport, dispatcher: Dispatcher
) -> None:
    subscribe(world, "acme")
    alice = world.context("alice", "acme")
    creating.create(alice, title="Printer")
    with meter.measure() as sending:
        Sweeper(dispatcher).sweep(grace=AT_ONCE)
    with meter.measure() as answering:
        answer(alice, received(transport))
    assert (sending.write_units, answering.write_units) == (3, 2)


def test_beside_the_stream_only_the_one_who_leads_sweeps(
    transport: QueueTransport, dispatcher: Dispatcher, sender: Sender, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[bool] = []
    for leads in (False, True):
        beside = PeriodicWork(dispatcher, sender, transport, sweeps=lambda leads=leads: leads)
        beside._swept_at = float("-inf")
        monkeypatch.setattr(beside, "sweep", lambda leads=leads: swept.append(leads) or 0)
        beside.turn()
    assert swept == [True]
