"""The acknowledgement of a new ticket: who gets one, that it repeats nothing, and that a desk can switch it off."""

from __future__ import annotations

from typing import Any

from tenants.audit_trail.recording import SYSTEM
from tests.support import mailing
from tests.support.mail_receiver import MailReceiver, parts
from tests.support.outbox import rows
from tests.support.world import World
from tickets.desk import creating
from tickets.replies import mail_settings, message_ids
from tickets.requesters import requester_changes
from tickets.requesters.requesters import Requester


def opened(world: World, ada: Requester | None, **more: Any) -> int:
    person = world.context("bob", "acme")
    texts = {"title": "Pills at www.spam.example", "description": "Click http://spam.example"}
    return creating.create(person, **texts, requester=ada, acknowledge=True, **more)


def test_a_new_ticket_is_acknowledged_without_repeating_what_it_says(
    world: World, ada: Requester, inbox: MailReceiver
) -> None:
    number = opened(world, ada)
    assert mailing.carry() == ["answered"]
    (letter,) = inbox.letters
    assert letter["Auto-Submitted"] == "auto-replied"
    assert letter["To"].addresses[0].addr_spec == "ada@example.org"
    thread = message_ids.read_message_id(letter["Message-ID"])
    assert thread is not None
    assert (thread.number, thread.entry) == (number, "new")
    assert "spam.example" not in letter["Subject"]
    for shown in parts(letter):
        assert mail_settings.ACKNOWLEDGEMENT in shown
        assert "spam.example" not in shown, "who forges a sender could send anything to anybody"


def test_the_acknowledgement_speaks_the_requesters_language(world: World, ada: Requester, inbox: MailReceiver) -> None:
    german = requester_changes.Details(name=ada.name, addresses=ada.addresses, language="de")
    requester_changes.change(world.context("bob", "acme"), ada.id, lambda before: german, version=None, by=SYSTEM)
    opened(world, ada)
    mailing.carry()
    (letter,) = inbox.letters
    for shown in parts(letter):
        assert "Wir haben Ihre Nachricht erhalten" in shown


def test_a_desk_chooses_its_words_or_sends_none(world: World, ada: Requester, inbox: MailReceiver) -> None:
    alice = world.context("alice", "acme")
    mail_settings.change(alice, values={"acknowledgement": "We are on it."}, version=0, by=SYSTEM)
    opened(world, ada)
    mailing.carry()
    assert "We are on it." in parts(inbox.letters[0])[0]
    mail_settings.change(alice, values={"acknowledges": False}, version=1, by=SYSTEM)
    opened(world, ada)
    assert mailing.carry() == ["answered"]
    assert len(inbox.letters) == 1


def test_nobody_is_told_where_nobody_outside_asked(world: World, ada: Requester, inbox: MailReceiver) -> None:
    opened(world, None)
    creating.create(world.context("bob", "acme"), title="Opened by an agent", requester=ada)
    assert rows() == []


def test_the_same_request_again_is_acknowledged_once(world: World, ada: Requester, inbox: MailReceiver) -> None:
    assert opened(world, ada, request_id="1" * 32) == opened(world, ada, request_id="1" * 32)
    assert mailing.carry() == ["answered"]
    assert len(inbox.letters) == 1
