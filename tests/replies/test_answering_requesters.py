"""An agent's comment reaches the requester as a letter, with the headers, the text and the copies that it ought to
have, and the comment says how that letter fared."""

from __future__ import annotations

import re
from collections import Counter
from email.message import EmailMessage as Letter
from typing import Any

import pytest
from django.test import override_settings

from delivery.outbox.stored import OUTBOX
from delivery.queues.message_handling import MessageHandler
from portal.dynamo import meter
from portal.mailing import mail_transport
from portal.mailing.mail_transport import HandOver
from portal.objects.object_store import ObjectStore
from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.lifecycle import desk_settings, tenant_lifecycle
from tenants.membership import own_profile
from tests.attachments.conftest import key_of
from tests.support import deliveries, mailing, outbox
from tests.support.mail_receiver import MailReceiver, parts
from tests.support.outbox import rows
from tests.support.stored import send
from tests.support.world import World
from tickets.attachments import attachments, scanning
from tickets.desk import commenting, timelines
from tickets.desk.timelines import TicketTimeline
from tickets.replies import mail_settings, message_ids, reply_addresses
from tickets.requesters import bounced_addresses, requesters
from tickets.requesters.requesters import Requester

UNKNOWN = "550 5.1.1 <ada@example.org>: no such user"


def answer(world: World, number: int, body: str = "Try it at *one*.", **more: Any) -> None:
    commenting.comment(world.context("bob", "acme"), number, body=body, **more)


def ticket(world: World, number: int) -> TicketTimeline:
    return timelines.ticket(world.context("bob", "acme"), number)


def deliveries_of(world: World, number: int) -> list[tuple[str | None, str]]:
    return [
        (entry.delivery, entry.delivery_note or "")
        for entry in ticket(world, number).activity
        if entry.kind == "comment"
    ]


def the_letter(inbox: MailReceiver) -> Letter:
    (letter,) = inbox.letters
    return letter


def test_a_comment_leaves_as_a_letter_to_the_requester(world: World, number: int, inbox: MailReceiver) -> None:
    answer(world, number)
    assert deliveries_of(world, number) == [("held", "")]
    assert mailing.carry() == ["answered"]
    letter = the_letter(inbox)
    assert letter["To"] == "Ada Lovelace <ada@example.org>"
    assert letter["From"] == "Acme <acme@desk.localhost>"
    assert letter["Subject"] == f"Re: The engine stops [#{number}]"
    ((sender, recipients),) = inbox.envelopes
    assert sender.startswith("bounce+")
    assert recipients == ["ada@example.org"]
    text, html = parts(letter)
    assert "Please reply above this line" in text.split("\n")[0]
    assert "Try it at *one*." in text
    assert "Try it at <em>one</em>." in html
    assert "<style" not in html, "many mail programs drop a style sheet"
    assert 'class="marker" style="color: #6b7280;font-size: 12px;"' in html
    assert deliveries_of(world, number) == [("sent", "")]


def test_the_answer_to_a_letter_leads_to_its_ticket_and_to_its_requester(
    world: World, number: int, ada: Requester, inbox: MailReceiver
) -> None:
    answer(world, number)
    mailing.carry()
    letter = the_letter(inbox)
    claim = reply_addresses.read(letter["Reply-To"].addresses[0].addr_spec)
    assert claim is not None
    assert (claim.tenant_id, claim.number, claim.is_agent) == (world.tenants["acme"].tenant_id, number, False)
    assert claim.is_of(ada.id)
    for header in ("Message-ID", "In-Reply-To", "References"):
        thread = message_ids.read_message_id(letter[header].split()[0])
        assert thread is not None
        assert thread[:2] == (claim.tenant_id, number)
    own = message_ids.read_message_id(letter["Message-ID"])
    assert own is not None
    (entry,) = [one for one in ticket(world, number).activity if one.kind == "comment"]
    assert message_ids.sort_of(own.entry) == entry.sk


def test_a_persons_letter_is_not_marked_as_automatic_and_asks_for_no_automatic_answer(
    world: World, number: int, inbox: MailReceiver
) -> None:
    answer(world, number)
    mailing.carry()
    letter = the_letter(inbox)
    assert letter["Auto-Submitted"] is None
    assert letter["X-Auto-Response-Suppress"] == "OOF, AutoReply"
    assert letter["X-Loop"] == "acme@desk.localhost"


@pytest.mark.parametrize("depth", [0, 1, 5])
def test_a_letter_quotes_as_many_earlier_messages_as_the_desk_wants(
    world: World, number: int, inbox: MailReceiver, depth: int
) -> None:
    set_up(world, history=depth)
    for body in ("The first.", "The second.", "The third."):
        answer(world, number, body)
    assert mailing.carry() == ["answered"] * 3
    text, html = parts(inbox.letters[-1])
    for shown in (text, html):
        quoted = [body for body in ("The second.", "The first.", "noon") if body in shown]
        assert quoted == ["The second.", "The first.", "noon"][:depth]
    assert ("> The second." in text) is (depth > 0)


def test_a_letter_quotes_no_message_without_a_text(world: World, number: int, inbox: MailReceiver) -> None:
    bob = world.context("bob", "acme")
    for body, name in (("The first.", "a.txt"), ("", "b.txt")):
        answer(world, number, body, files=[attachments.store(bob, name, b"text")])
    answer(world, number, "The third.")
    mailing.carry()
    (text,) = [text for text in (parts(one)[0] for one in inbox.letters) if "The third." in text]
    assert text.count("wrote:") == 2, "the description and the first; of files alone there is nothing to quote"
    assert "> The first." in text


def test_a_letter_ends_with_the_desks_signature(world: World, number: int, inbox: MailReceiver) -> None:
    set_up(world, sender_name="Acme Support", signature="Acme Support\nMo-Fr <9-17>")
    answer(world, number)
    mailing.carry()
    letter = the_letter(inbox)
    text, html = parts(letter)
    text = text.replace("\r\n", "\n")
    assert letter["From"] == "Acme Support <acme@desk.localhost>"
    assert "-- \nAcme Support\nMo-Fr <9-17>" in text
    assert "Mo-Fr &lt;9-17&gt;" in html


def test_the_signature_of_the_author_stands_above_the_desks_and_quotes_tell_the_zone_of_the_desk(
    world: World, number: int, inbox: MailReceiver
) -> None:
    set_up(world, signature="Acme Support")
    own_profile.change_signature(world.context("bob", "acme"), "Bob <Builder>\n+1 555 0100", by=SYSTEM)
    zone = {desk_settings.ZONE: "Asia/Kolkata"}
    desk_settings.change_defaults(world.context("alice", "acme"), values=zone, by=SYSTEM)
    answer(world, number)
    mailing.carry()
    text, html = parts(the_letter(inbox))
    assert "-- \nBob <Builder>\n+1 555 0100\nAcme Support" in text.replace("\r\n", "\n")
    assert "Bob &lt;Builder&gt;" in html
    for shown in (text, html):
        assert re.search(r"On 20\d\d-\d\d-\d\d \d\d:\d\d Asia/Kolkata \(UTC\+5:30\)", shown)


def test_copies_go_to_those_whom_the_agent_named_and_not_to_the_desk_itself(
    world: World, number: int, inbox: MailReceiver
) -> None:
    answer(world, number, cc=["Grace@Example.org", "acme@desk.localhost", "acme+x@desk.localhost", "ada@example.org"])
    mailing.carry()
    assert the_letter(inbox)["Cc"] == "grace@example.org"
    assert inbox.envelopes[0][1] == ["ada@example.org", "grace@example.org"]


def test_the_files_of_a_comment_go_along(world: World, number: int, inbox: MailReceiver) -> None:
    bob = world.context("bob", "acme")
    files = [attachments.store(bob, "Ünder the hood.txt", b"Some text."), attachments.store(bob, "b.bin", b"\x00" * 9)]
    answer(world, number, files=files)
    assert mailing.carry() == ["answered"]
    found = [(part.get_filename(), part.get_content()) for part in the_letter(inbox).iter_attachments()]
    assert [name for name, _ in found] == ["Ünder the hood.txt", "b.bin"]
    assert found[1][1] == b"\x00" * 9
    assert "Not attached" not in parts(the_letter(inbox))[0]


def test_a_file_that_a_letter_has_no_room_for_is_named(
    world: World, number: int, inbox: MailReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    bob = world.context("bob", "acme")
    files = [attachments.store(bob, "large.txt", b"x" * 200), attachments.store(bob, "small.txt", b"x" * 20)]
    answer(world, number, files=files)
    monkeypatch.setattr(attachments, "MAIL_BYTES", 100)
    mailing.carry()
    letter = the_letter(inbox)
    assert [part.get_filename() for part in letter.iter_attachments()] == ["small.txt"]
    assert "Not attached: large.txt." in parts(letter)[0]


def test_a_letter_waits_for_a_file_that_is_being_looked_at(
    world: World, number: int, inbox: MailReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "first_state", lambda: scanning.WAITING)
    answer(world, number, files=[attachments.store(world.context("bob", "acme"), "a.txt", b"Some text.")])
    assert mailing.carry() == ["failed"]
    assert inbox.letters == []


@pytest.mark.parametrize(
    ("finding", "attached"), [("NO_THREATS_FOUND", ["a.txt"]), ("THREATS_FOUND", []), ("FAILED", ["a.txt"])]
)
def test_a_letter_has_a_file_by_what_its_scanner_found(
    world: World, number: int, inbox: MailReceiver, finding: str, attached: list[str]
) -> None:
    with override_settings(FILE_SCANNER="guardduty"):
        bob = world.context("bob", "acme")
        file = attachments.store(bob, "a.txt", b"Some text.")
        answer(world, number, files=[file])
        store, key = ObjectStore("tenant", bob.tenant_id), key_of(bob, number, file.id)
        store.tag(key, store.tags(key) | {"GuardDutyMalwareScanStatus": finding})
        mailing.carry()
    assert [part.get_filename() for part in the_letter(inbox).iter_attachments()] == attached


def test_the_text_of_a_person_outside_is_quoted_as_it_is(world: World, number: int, inbox: MailReceiver) -> None:
    mailing.carry()
    answer(world, number)
    mailing.carry()
    text, html = parts(the_letter(inbox))
    assert "> It stops at **noon**." in text
    assert "It stops at **noon**." in html


def test_a_comment_on_a_members_ticket_leaves_no_letter_and_no_row(world: World, inbox: MailReceiver) -> None:
    (own,) = world.tickets("acme", 1)
    answer(world, own, cc=["grace@example.org"])
    assert rows() == []
    assert deliveries_of(world, own) == [(None, "")]


def test_a_letter_and_a_webhook_share_the_row_of_the_comment(world: World, number: int, inbox: MailReceiver) -> None:
    outbox.subscribe(world, "acme", "ticket.commented")
    answer(world, number)
    (row,) = rows()
    assert sorted(row.open) == ["0/ep_one", "1/reply"]


def test_a_comment_that_is_sent_twice_is_one_letter(world: World, number: int, inbox: MailReceiver) -> None:
    for _ in range(2):
        answer(world, number, request_id="0123456789ab" + "0" * 20)
    assert mailing.carry() == ["answered"]
    assert len(inbox.letters) == 1


def test_a_message_that_a_queue_brings_twice_is_one_letter(world: World, number: int, inbox: MailReceiver) -> None:
    answer(world, number)
    (row,) = rows()
    assert mailing.carry() == ["answered"]
    put_back(row)
    assert mailing.carry() == ["answered"]
    assert len(inbox.letters) == 1
    assert deliveries_of(world, number) == [("sent", "")]


def test_an_address_that_nobody_has_is_shown_on_the_comment_and_gets_no_more_mail(
    world: World, number: int, ada: Requester, inbox: MailReceiver
) -> None:
    inbox.answers["ada@example.org"] = UNKNOWN
    answer(world, number)
    assert mailing.carry() == ["dead"]
    ((state, note),) = deliveries_of(world, number)
    assert state == "bounced"
    assert "no such user" in note
    assert "ada@" not in note, "the note would outlive the person's erasure"
    person = requesters.find(world.context("bob", "acme"), ada.id)
    assert person is not None
    assert "no such user" in person.bounced["ada@example.org"]
    inbox.answers.clear()
    answer(world, number, "Are you there?")
    assert mailing.carry() == ["answered"]
    assert inbox.letters == []
    assert deliveries_of(world, number)[-1][0] == "bounced"


def test_an_address_that_writes_again_gets_mail_again(
    world: World, number: int, ada: Requester, inbox: MailReceiver
) -> None:
    bob = world.context("bob", "acme")
    assert bounced_addresses.note(bob, "ada@example.org", "It bounced.")
    assert not bounced_addresses.note(bob, "ada@example.org", "It bounced.")
    assert bounced_addresses.note(bob, "ada@example.org", "")
    answer(world, number)
    assert mailing.carry() == ["answered"]
    assert the_letter(inbox)["To"].addresses[0].addr_spec == "ada@example.org"


def test_a_mail_server_that_is_away_is_tried_again_and_the_comment_says_why(
    world: World, number: int, inbox: MailReceiver
) -> None:
    inbox.answers["ada@example.org"] = "451 4.3.0 come back later"
    answer(world, number)
    assert mailing.carry() == ["failed"]
    ((state, note),) = deliveries_of(world, number)
    assert state == "held"
    assert "come back later" in note
    inbox.answers.clear()
    assert mailing.carry() == ["answered"]
    assert deliveries_of(world, number) == [("sent", "")]


def test_a_suspended_desk_sends_nothing_until_it_is_resumed(world: World, number: int, inbox: MailReceiver) -> None:
    answer(world, number)
    tenant_lifecycle.suspend(world.tenants["acme"].tenant_id, by=SYSTEM)
    assert mailing.carry() == ["failed"]
    assert inbox.letters == []
    tenant_lifecycle.resume(world.tenants["acme"].tenant_id, by=SYSTEM)
    assert deliveries_of(world, number) == [("held", "The desk is suspended.")]
    assert mailing.carry() == ["answered"]


def test_a_letter_that_was_given_up_is_sent_when_an_operator_sends_it_again(
    world: World, number: int, inbox: MailReceiver
) -> None:
    inbox.answers["DATA"] = "554 5.7.1 we do not like your words"
    answer(world, number)
    (row,) = rows()
    assert mailing.carry() == ["dead"]
    assert deliveries_of(world, number)[0][0] == "bounced"
    inbox.answers.clear()
    put_back(row)
    assert mailing.carry() == ["answered"]
    assert deliveries_of(world, number)[0][0] == "sent"
    assert len(inbox.letters) == 1


def test_without_a_domain_for_mail_nobody_is_asked_to_answer(world: World, number: int, inbox: MailReceiver) -> None:
    answer(world, number)
    with override_settings(MAIL_DOMAIN=""):
        assert mailing.carry() == ["answered"]
    letter = the_letter(inbox)
    assert letter["Reply-To"] is None, "nobody would receive the answer"
    assert letter["From"] == "Acme <pooldesk@localhost>"


def test_a_letter_costs_its_reads_and_one_write(
    world: World, number: int, inbox: MailReceiver, bill: meter.Meter
) -> None:
    answer(world, number)
    (row,) = rows()
    bill.calls.clear()
    MessageHandler().handle(deliveries.received(deliveries.message(row, "reply")))
    assert len(inbox.letters) == 1
    counted = Counter(call.operation for call in bill.calls)
    assert counted == {"BatchGetItem": 2, "GetItem": 7, "Query": 2, "UpdateItem": 2}


def set_up(world: World, **values: Any) -> None:
    alice = world.context("alice", "acme")
    mail_settings.change(alice, values=values, version=mail_settings.read(alice).version, by=by(world))


def by(world: World) -> Any:
    return Actor(world.users["alice"].id, "alice@example.com", "127.0.0.1")


def put_back(row: Any) -> None:
    """Let a row be as it was before its delivery was noted."""
    send("PutItem", TableName=OUTBOX.full_name, Item=row.to_dynamodb_dict())


def test_the_message_id_that_amazon_ses_gives_a_letter_leads_to_its_ticket(
    world: World, number: int, monkeypatch: pytest.MonkeyPatch, bill: meter.Meter
) -> None:
    taken = HandOver("taken", "Handed over.", carrier_id="0102018f-aa-000000")
    monkeypatch.setattr(mail_transport, "hand_over", lambda message: taken)
    answer(world, number)
    assert mailing.carry() == ["answered"]
    bob, charlie = world.context("bob", "acme"), world.context("charlie", "globex")
    named = "<0102018f-aa-000000@eu-west-1.amazonses.com>"
    found = message_ids.known_message(bob, named)
    assert found is not None
    assert found[:2] == (bob.tenant_id, number)
    assert message_ids.known_message(charlie, named) is None, "a letter of another desk"
    bill.calls.clear()
    assert message_ids.known_message(bob, "<0102018f-aa-000000@elsewhere.example>") is None
    assert bill.calls == [], "no read for what no carrier of ours has made"


def test_a_letter_adds_a_row_to_the_transaction_of_its_comment_and_no_call(
    world: World, number: int, bill: meter.Meter
) -> None:
    (own,) = world.tickets("acme", 1)
    costs = []
    for one in (own, number):
        bill.calls.clear()
        answer(world, one)
        costs.append(([call.operation for call in bill.calls], sum(call.write_units for call in bill.calls)))
    assert costs[0][0] == costs[1][0]
    assert costs[1][1] - costs[0][1] <= 4, "a row of up to 1 KB in a transaction, and its place in the index"
