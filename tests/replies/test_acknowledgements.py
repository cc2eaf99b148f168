"""The acknowledgement of a new ticket: who gets one, that it repeats nothing, and that a desk can switch it off.
The language of letters."""

from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings

from portal.mailing import letters
from tenants.audit_trail.recording import SYSTEM
from tests.support import mailing
from tests.support.mail_receiver import MailReceiver, parts
from tests.support.outbox import rows
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.outside import looks
from tickets.replies import mail_settings, message_ids
from tickets.requesters import requesters
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


@pytest.mark.parametrize(
    ("requester", "desk", "is_german"),
    [
        ("de", "en", True),
        ("de-AT", "en", True),
        ("en", "de", False),
        ("", "de", True),
        ("fr", "de", True),
        ("", "en", False),
    ],
)
def test_the_words_of_a_letter_are_in_the_requesters_language_else_in_the_desks(
    world: World, inbox: MailReceiver, requester: str, desk: str, is_german: bool
) -> None:
    alice = world.context("alice", "acme")
    looks.change(alice, values={"name": "", "colour": "#123456", "language": desk}, version=0, by=SYSTEM)
    ada = requesters.ensure(alice, "ada@example.org", language=requester)
    number = opened(world, ada)
    commenting.comment(world.context("bob", "acme"), number, body="We repair it.")
    mailing.carry()
    english = mail_settings.ACKNOWLEDGEMENT, "Please reply above this line", "wrote:"
    german = "Wir haben Ihre Nachricht erhalten", "Bitte antworten Sie oberhalb dieser Zeile", "schrieb"
    words, others = (german, english) if is_german else (english, german)
    acknowledged, answered = inbox.letters
    for letter, told in ((acknowledged, slice(0, 2)), (answered, slice(1, 3))):
        for shown in parts(letter):
            assert all(word in shown for word in words[told])
            assert not any(word in shown for word in others)
        assert f'<html lang="{"de" if is_german else "en"}">' in parts(letter)[1]


def test_the_desks_own_words_stay_as_they_were_written(world: World, inbox: MailReceiver) -> None:
    alice = world.context("alice", "acme")
    own = {"acknowledgement": "We are on it.", "signature": "Your Acme"}
    mail_settings.change(alice, values=own, version=0, by=SYSTEM)
    opened(world, requesters.ensure(alice, "ada@example.org", language="de"))
    mailing.carry()
    for text in own.values():
        assert text in parts(inbox.letters[0])[0]


@pytest.mark.parametrize("language", [code for code, _ in settings.LANGUAGES])
def test_an_answer_above_a_letter_of_ours_is_folded_in_each_language(
    world: World, inbox: MailReceiver, language: str
) -> None:
    ada = requesters.ensure(world.context("alice", "acme"), "ada@example.org", language=language)
    opened(world, ada)
    mailing.carry()
    ours = parts(inbox.letters[0])[0]
    for quoted in (ours, "\n".join(f"> {line}" for line in ours.splitlines())):
        answer = letters.read(f"Subject: Re\nFrom: ada@example.org\n\nThank you.\n\n{quoted}".encode())
        assert answer.text.strip() == "Thank you."
