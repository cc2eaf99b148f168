"""A comment is held for some seconds before anybody hears of it, and can be taken back as if it had never been."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest

from delivery.outbox.stored import OUTBOX
from delivery.queues import message_handling
from delivery.queues.dispatcher import Dispatcher, Sweeper
from delivery.queues.limits import DeliveryLimits
from delivery.queues.message_handling import MessageHandler
from delivery.queues.queue_transport import Message, QueueTransport
from delivery.queues.sender import Sender
from portal import clock
from portal.streams.poller import Poller
from tenants.audit_trail.recording import Actor
from tenants.lifecycle import desk_settings
from tests.desk.test_cost import _watching
from tests.support import deliveries, mailing
from tests.support.folding import Follower, kept_counts, numbers, recounted
from tests.support.mail_receiver import MailReceiver
from tests.support.outbox import pending, rows
from tests.support.world import Browser, World
from tickets.attachments import attachments
from tickets.desk import changing, commenting, timelines
from tickets.ticket.fields import Status

TEXT = "Try it at *one*."


@pytest.fixture(autouse=True)
def _held(world: World) -> None:
    owner = world.context("alice", "acme")
    desk_settings.change_defaults(owner, values={"reply_hold": "10"}, by=Actor(owner.user_id))


@pytest.fixture
def bob(world: World) -> Browser:
    return world.browser("bob")


def text(response: Any) -> str:
    return str(response.content.decode())


def send(browser: Browser, number: int, **more: str) -> Any:
    data = {"body": TEXT, "request_id": changing.new_request_id(), "cc": "", **more}
    return browser.send(f"/tickets/{number}/comment/", data, follow=True)


def receipt(response: Any) -> str:
    found = re.search(r'name="receipt" value="([^"]+)"', text(response))
    assert found
    return found[1]


def undo(browser: Browser, receipt: str) -> Any:
    return browser.send("/tickets/bulk/undo/", {"receipt": receipt, "back": "/tickets/"}, follow=True)


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + timedelta(seconds=seconds))


def whole(world: World, number: int) -> Any:
    """The ticket and its history, and what it adds to the numbers."""
    tenant = world.context("bob", "acme")
    Follower().fold()
    assert kept_counts(tenant) == recounted(tenant)
    found = timelines.ticket(tenant, number)
    summary = {name: value for name, value in found.summary.serialize().items() if name != "days"}
    return summary, [entry.serialize() for entry in found.activity], {n: c for n, c in numbers(tenant).items() if c}


@pytest.mark.parametrize(
    "more",
    [{}, {"then": "resolved"}, {"internal": "on"}, {"internal": "on", "then": "pending"}, {"cc": "grace@example.org"}],
    ids=str,
)
def test_a_comment_is_taken_back_as_if_it_had_never_been(
    world: World, number: int, bob: Browser, inbox: MailReceiver, monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    commenting.comment(world.context("alice", "acme"), number, body="Before.", internal=True)
    before = whole(world, number)
    sent = send(bob, number, **more)
    assert whole(world, number) != before
    page = undo(bob, receipt(sent))
    assert "was taken back. Its text is below." in text(page)
    assert f">\n{TEXT}</textarea>" in text(page) or f">{TEXT}</textarea>" in text(page)
    assert whole(world, number) == before
    later(monkeypatch, 60)
    assert mailing.carry() == []
    assert inbox.letters == []
    again = send(bob, number, **more)
    assert [entry.body for entry in timelines.ticket(world.context("bob", "acme"), number).activity].count(TEXT) == 1
    assert again.status_code == 200


def test_a_reply_leaves_when_its_seconds_are_over_and_cannot_be_taken_back_then(
    world: World, number: int, bob: Browser, inbox: MailReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = send(bob, number)
    assert "Your reply leaves in 10 seconds." in text(sent)
    assert mailing.carry() == ["postponed"]
    assert inbox.letters == []
    later(monkeypatch, 11)
    assert mailing.carry() == ["answered"]
    assert len(inbox.letters) == 1
    assert "Your comment has left already and stays." in text(undo(bob, receipt(sent)))
    assert timelines.ticket(world.context("bob", "acme"), number).summary.comment_count == 1


def test_a_letter_that_is_being_sent_is_not_taken_back_even_if_its_worker_dies(
    number: int, bob: Browser, inbox: MailReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = send(bob, number)
    later(monkeypatch, 11)

    def dying(destination: str) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as killed:
        killed.setattr(message_handling.destinations, "deliver_for", dying)
        with pytest.raises(KeyboardInterrupt):
            mailing.carry()
    assert "has left already" in text(undo(bob, receipt(sent)))
    assert mailing.carry() == ["answered"]
    assert len(inbox.letters) == 1


def test_a_worker_that_read_the_row_before_it_was_taken_back_sends_nothing(
    number: int, bob: Browser, inbox: MailReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = send(bob, number)
    later(monkeypatch, 11)
    find = message_handling._find

    def late(*args: Any, **kwargs: Any) -> Any:
        work = find(*args, **kwargs)
        monkeypatch.setattr(message_handling, "_find", find)
        undo(bob, receipt(sent))
        return work

    monkeypatch.setattr(message_handling, "_find", late)
    assert mailing.carry() == ["closed"]
    assert inbox.letters == []


@pytest.mark.parametrize("what", ["comment", "note", "change"])
def test_a_comment_that_somebody_has_seen_and_acted_upon_stays(
    world: World, number: int, bob: Browser, what: str
) -> None:
    sent = send(bob, number)
    alice = world.context("alice", "acme")
    if what == "change":
        changing.change(alice, number, changing.Wishes(status=Status.PENDING))
    else:
        commenting.comment(alice, number, body="Fine.", internal=what == "note")
    assert "stays: somebody has commented or changed the ticket since." in text(undo(bob, receipt(sent)))
    assert TEXT in [entry.body for entry in timelines.ticket(alice, number).activity]


def test_files_of_a_comment_come_back_with_its_text(world: World, number: int, bob: Browser) -> None:
    tenant = world.context("bob", "acme")
    file = attachments.store(tenant, "log.txt", b"It stops.")
    before = attachments.usage(tenant)
    sent = send(bob, number, files=file.id)
    assert attachments.usage(tenant).count == before.count + 1
    page = text(undo(bob, receipt(sent)))
    assert "log.txt" in page
    assert attachments.usage(tenant) == before
    assert not changing.read(tenant, number).file_count
    again = text(send(bob, number, files=file.id))
    assert "log.txt" in again
    assert attachments.usage(tenant).count == before.count + 1


def test_a_desk_that_holds_nothing_sends_at_once(world: World, number: int, bob: Browser, inbox: MailReceiver) -> None:
    owner = world.context("alice", "acme")
    desk_settings.change_defaults(owner, values={"reply_hold": "0"}, by=Actor(owner.user_id))
    assert 'name="receipt"' not in text(send(bob, number))
    assert mailing.carry() == ["answered"]
    assert len(inbox.letters) == 1


# --- dispatching ---


@pytest.fixture
def transport(world: World) -> QueueTransport:
    transport = QueueTransport()
    transport.create_all()
    return transport


def in_queues(transport: QueueTransport, wait: int = 0) -> list[Message]:
    return [one.message for queue in range(transport.queues) for one in transport.receive(queue, wait=wait)]


def sender(transport: QueueTransport) -> Sender:
    return Sender(transport, limits_of=lambda tenant_id: DeliveryLimits(1, 1000, 1000))


def test_a_held_row_waits_in_its_queue_and_takes_no_unit_of_its_tenant(
    number: int, bob: Browser, transport: QueueTransport
) -> None:
    send(bob, number)
    own = sender(transport)
    poller = Poller(OUTBOX, Dispatcher(own).handle)
    poller.step()
    assert own.counts() == {"in_flight": 0, "waiting": 0}
    assert in_queues(transport) == []
    assert sum(depth.delayed for depth in transport.depths()) == 1
    poller.release()


def test_a_dispatcher_that_is_killed_leaves_a_held_row_to_the_sweeper_which_sends_it_when_it_is_due(
    number: int, bob: Browser, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(bob, number)
    sweeper = Sweeper(Dispatcher(sender(transport)))
    assert sweeper.sweep(grace=timedelta(0))["due"] == 0
    later(monkeypatch, 11)
    assert sweeper.sweep(grace=timedelta(0))["sent"] == 1
    assert len(in_queues(transport)) == 1


def test_a_held_row_that_was_taken_back_is_closed_and_its_message_does_nothing(
    number: int, bob: Browser, inbox: MailReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = send(bob, number)
    (row,) = rows()
    undo(bob, receipt(sent))
    assert pending() == []
    assert [one.open for one in rows()] == [None]
    later(monkeypatch, 11)
    message = deliveries.message(row, "reply", index=0)
    assert MessageHandler().handle(deliveries.received(message)).did == "closed"
    assert inbox.letters == []


def test_a_comment_costs_no_more_for_being_held(world: World, number: int, bob: Browser) -> None:
    spent = []
    for hold in ("0", "10"):
        owner = world.context("alice", "acme")
        desk_settings.change_defaults(owner, values={"reply_hold": hold}, by=Actor(owner.user_id))
        with _watching() as bills:
            bob.send(f"/tickets/{number}/comment/", {"body": TEXT, "request_id": changing.new_request_id(), "cc": ""})
        spent.append((bills[0].trips, bills[0].read_units))
    assert spent[0] == spent[1]
