"""Mail is written down in the outbox: with the change that it tells of, for nobody else to read, and not for ever."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail import EmailMessage, send_mail
from django.test import override_settings

from delivery.mail.outbox_backend import MailContent
from delivery.outbox import stored as outbox_keys
from delivery.queues import dead_deliveries
from delivery.queues.dispatcher import Dispatcher
from delivery.queues.message_handling import MessageHandler
from delivery.queues.periodic_work import PeriodicWork
from delivery.queues.queue_transport import QueueTransport
from delivery.queues.sender import Sender
from portal import clock
from portal.dynamo import meter
from portal.dynamo.platform import PLATFORM
from portal.errors import Conflict, Invalid, Rejected, Unavailable
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import mails
from tenants.sign_in import accounts
from tests.support import deliveries, mailing
from tests.support.operators import Operator, calls, make_operator
from tests.support.outbox import pending, rows
from tests.support.world import Browser, World

NORA = {"addresses": "nora@example.org", "role": "agent"}


@pytest.fixture(autouse=True)
def by_the_outbox() -> Iterator[None]:
    with override_settings(EMAIL_BACKEND=mailing.OUTBOX):
        yield


def invite(world: World, **more: str) -> Any:
    return world.browser("alice", "acme").send("/desk/invitations/", NORA | more, follow=True)


def ask_for_a_password(address: str) -> None:
    assert Browser().post("/password/reset/", {"email": address}).status_code == 302


def link_in(text: str) -> str:
    found = re.search(r"http://testserver(/(?:invitation|password/reset)/\S+)", text)
    assert found is not None
    return found[1]


def test_an_invitation_waits_in_a_row_of_its_tenant_and_is_then_carried(world: World) -> None:
    invite(world)
    assert mail.outbox == []
    (row,) = mailing.waiting()
    acme = world.tenants["acme"]
    assert outbox_keys.row_parts(row.event_id)[0] == acme.tenant_id
    assert list(row.queues) == list(world.context("alice", "acme").queues) != []
    assert mailing.carry() == ["answered"]
    (letter,) = mail.outbox
    assert (letter.to, letter.subject) == (["nora@example.org"], "Invitation to Acme on Pooldesk")
    assert Browser().get(link_in(letter.body)).status_code == 200
    assert letter.body.strip()[:5] == "Hello"
    assert "text/html" in [kind for _, kind in letter.alternatives]


def test_an_invitation_that_is_refused_leaves_no_mail(world: World) -> None:
    invite(world)
    page = invite(world)
    assert "already has an invitation" in page.content.decode()
    assert len(rows()) == 1


def test_an_invitations_mail_is_one_more_item_of_its_transaction_and_no_more_calls(world: World) -> None:
    alice = world.browser("alice", "acme")
    bills = []
    for backend, address in ((mailing.OUTBOX, "nora@example.org"), (mailing.AT_ONCE, "nils@example.org")):
        with override_settings(EMAIL_BACKEND=backend), calls() as found:
            alice.send("/desk/invitations/", NORA | {"addresses": address})
            mails.wait_until_sent()
        bills.append(found)
    by_outbox, at_once = (sorted(call.operation for call in bill) for bill in bills)  # some are sent together
    assert by_outbox == at_once
    units = [sum(call.write_units for call in bill) for bill in bills]
    assert units[0] - units[1] == 6  # 2 for each of 2 KB, and 1 for each index


def test_carrying_a_mail_reads_its_row_and_its_address_and_writes_once(world: World, bill: meter.Meter) -> None:
    invite(world)
    bill.calls.clear()
    row, *others = rows()
    assert others == [], [(one.event_id, one.timestamp, one.subject, one.events) for one in (row, *others)]
    message = deliveries.message(row, "mail")
    MessageHandler().handle(deliveries.received(message))
    counted = [(call.operation, call.read_units, call.write_units) for call in bill.calls if call.operation != "Query"]
    assert counted == [("GetItem", 1, 0), ("BatchGetItem", 1, 0), ("UpdateItem", 0, 3)]


def test_a_password_reset_belongs_to_no_tenant_and_works(world: World) -> None:
    ask_for_a_password("bob@example.com")
    (row,) = mailing.waiting()
    assert outbox_keys.row_parts(row.event_id)[0] == outbox_keys.NO_TENANT
    assert mailing.carry() == ["answered"]
    assert Browser().get(link_in(mail.outbox[0].body)).status_code == 200


@pytest.mark.parametrize("who", ["nobody@example.org", "vera@example.com"])
def test_an_address_without_an_active_account_costs_the_same_and_reaches_nobody(world: World, who: str) -> None:
    accounts.set_active(world.users["vera"].id, False, by=SYSTEM)
    operations, units = [], []
    for address in ("bob@example.com", who):
        with calls() as seen:
            ask_for_a_password(address)
        operations.append(sorted(call.operation for call in seen))  # some are sent together
        units.append(sum(call.write_units for call in seen if call.operation == "TransactWriteItems"))
    assert units == [5, 4]
    assert operations[0] == operations[1]
    assert operations[0].count("TransactWriteItems") == 1
    known, decoy = rows()
    assert abs(len(known.private) - len(decoy.private)) < 100
    assert set(decoy.private) == {"."}
    assert (decoy.open, decoy.pending, decoy.due_at) == (None, None, None)
    assert pending() == [known.event_id]


def test_what_a_mail_said_is_gone_as_soon_as_it_is_sent(world: World) -> None:
    invite(world)
    assert "/invitation/" in mailing.content(rows()[0])["body"]
    mailing.carry()
    (row,) = rows()
    assert (row.private, row.open, row.pending) == (None, None, None)
    assert "invitation/" not in str(row.events)


@override_settings(MAIL_TRANSPORT=mailing.REFUSING)
def test_what_a_dead_mail_said_is_gone_and_nowhere_to_be_read(world: World, caplog: pytest.LogCaptureFixture) -> None:
    mailing.RefusingBackend.errors = [Rejected("Amazon SES refused it: see https://desk/secret")]
    make_operator()
    ask_for_a_password("bob@example.com")
    link = link_in(mailing.content(rows()[0])["body"])
    with caplog.at_level(logging.DEBUG):
        assert mailing.carry() == ["dead"]
    (letter,) = deliveries.dead()
    assert letter.reason == "Amazon SES refused it: see (link)"
    assert rows()[0].private is None
    operator = Operator.signed_in()
    changelist = operator.get("/admin/delivery/deaddelivery/")
    assert "mail.password_reset" in changelist.content.decode()
    secret = link.rstrip("/").rpartition("/")[2]
    for text in (changelist.content.decode(), caplog.text, str(letter.serialize())):
        assert secret not in text
        assert "bob@example.com" not in text


@override_settings(MAIL_TRANSPORT=mailing.REFUSING)
def test_a_dead_mail_cannot_be_replayed_and_says_so(world: World) -> None:
    mailing.RefusingBackend.errors = [Rejected("no")]
    ask_for_a_password("bob@example.com")
    mailing.carry()
    (letter,) = deliveries.dead()
    with pytest.raises(Conflict, match="What it said is not kept"):
        dead_deliveries.replay(letter, by=SYSTEM)
    dead_deliveries.drop(letter, by=SYSTEM)
    assert [*deliveries.dead()] == []


def test_a_row_is_forgotten_a_day_after_its_mail_is_worth_nothing(world: World) -> None:
    ask_for_a_password("bob@example.com")
    left = int(rows()[0].expires_at) - clock.now().timestamp()
    assert timedelta(hours=24) < timedelta(seconds=left) <= timedelta(hours=25, seconds=5)


def test_any_mail_of_django_goes_the_same_way(world: World) -> None:
    assert send_mail("Hello", "A text.", None, ["one@example.org", "two@example.org"]) == 1
    message = EmailMessage("Bcc", "B", to=["a@example.org"], bcc=["b@example.org"], headers={"X-Kind": "test"})
    message.send()
    assert mailing.carry() == ["answered", "answered"]
    first, second = sorted(mail.outbox, key=lambda letter: letter.subject, reverse=True)
    assert first.recipients() == ["one@example.org", "two@example.org"]
    assert (second.bcc, second.extra_headers["X-Kind"]) == (["b@example.org"], "test")
    assert first.extra_headers["Message-ID"].startswith("<evt_")


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (EmailMessage("Big", "x" * 300_000, to=["a@example.org"]), Invalid),
        (EmailMessage("File", "x", to=["a@example.org"], attachments=[("a.txt", "text", "text/plain")]), Invalid),
        (EmailMessage("Two\nlines", "x", to=["a@example.org"]), ValueError),
    ],
    ids=["too large", "attachment", "line break"],
)
def test_what_cannot_be_sent_is_refused_when_it_is_written(
    world: World, message: EmailMessage, error: type[Exception]
) -> None:
    with pytest.raises(error):
        message.send()
    assert rows() == []


def test_without_the_database_a_mail_is_refused_aloud_or_in_silence_as_asked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Unavailable("away")

    monkeypatch.setattr(PLATFORM, "transact", away)
    with pytest.raises(Unavailable):
        send_mail("Hello", "A text.", None, ["one@example.org"])
    assert send_mail("Hello", "A text.", None, ["one@example.org"], fail_silently=True) == 0


def test_through_real_queues_each_mail_arrives_once(world: World) -> None:
    transport = QueueTransport()
    transport.create_all()
    sender = Sender(transport)
    dispatcher = Dispatcher(sender)
    beside = PeriodicWork(dispatcher, sender, transport, sweeps=lambda: True)
    invite(world, addresses="nora@example.org, nils@example.org")
    ask_for_a_password("bob@example.com")
    beside.sweep(grace=timedelta(0))
    handler, did = MessageHandler(), []
    for queue in range(transport.queues):
        for received in transport.receive(queue, wait=0):
            did.append(handler.handle(received).did)
            transport.delete(queue, [received.handle])
    assert did == ["answered"] * 3
    assert sorted(letter.to[0] for letter in mail.outbox) == ["bob@example.com", "nils@example.org", "nora@example.org"]
    assert pending() == []


def test_a_mail_of_a_newer_version_is_read_without_what_that_adds() -> None:
    written = MailContent("desk@pooldesk.example", ["x@pooldesk.example"], "Hello", "Text").written()
    assert MailContent.read(written[:-1] + ', "more": 1}') == MailContent.read(written)
