"""The conversations of the demonstration: letters that customers hand in by SMTP, and answers that leave as letters."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from dataclasses import replace
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any

import pytest
from django.conf import LazySettings

from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tests.support import mailing
from tests.support.commands import run
from tests.support.mail_receiver import MailReceiver, mail_receiver
from tests.support.mailing import MailServer, mail_server
from tickets.desk import commenting, creating, timelines
from tickets.replies import reply_addresses
from tickets.requesters import requesters
from tickets.seeding import conversation
from tickets.ticket.fields import Channel, Status


@pytest.fixture(autouse=True)
def seeded(engine: None, settings: LazySettings) -> None:
    settings.DEBUG = True
    assert run("seed", "--tenants", 1, "--tickets", 2, "--users", 0).status == 0


@pytest.fixture
def inbox() -> Iterator[MailReceiver]:
    """What leaves."""
    with mail_receiver() as receiver:
        yield receiver


@pytest.fixture
def server(settings: LazySettings) -> Iterator[MailServer]:
    """The server that takes letters to desks."""
    with mail_server() as server:
        settings.MAIL_RECEIVER = f"127.0.0.1:{server.port}"
        yield server


@pytest.fixture
def acme() -> TenantContext:
    return context.for_system(tenant_directory.find("acme"))


def file(acme: TenantContext, raw: str) -> None:
    """File a letter, as the workers do."""
    letter = email.message_from_string(raw, policy=email.policy.default)
    assert isinstance(letter, EmailMessage)
    name, address = parseaddr(str(letter["From"]))
    person = requesters.ensure(acme, address, name=name)
    author = replace(acme, role=Role.VIEWER, user_id=person.id, user_name=person.label)
    body = letter.get_body(("plain",))
    text = str(body.get_content()) if body else ""
    if claim := reply_addresses.read(str(letter["To"])):
        commenting.comment(author, claim.number, body=text)
    else:
        title = str(letter["Subject"])
        creating.create(author, requester=person, title=title, description=text, channel=Channel.MAIL)


@pytest.fixture
def working(acme: TenantContext, server: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the command waits, letters are filed and answers are sent."""
    filed = 0

    def work(seconds: float) -> None:
        nonlocal filed
        for raw in server.letters[filed:]:
            file(acme, raw)
            filed += 1
        mailing.carry()

    monkeypatch.setattr(conversation.time, "sleep", work)


def talk(acme: TenantContext, number: int) -> list[tuple[str, str]]:
    entries = timelines.ticket(acme, number).activity
    return [(one.author_name, one.delivery or "") for one in entries if one.kind == "comment"]


def test_customers_write_agents_answer_and_one_writes_back(
    acme: TenantContext, inbox: MailReceiver, working: None
) -> None:
    ended = run("seed_conversation")
    assert (ended.status, ended.out) == (0, "Acme got 4 letters and sent 2 answers.\n")
    found = [timelines.ticket(acme, number).summary for number in (3, 4, 5)]
    assert [one.title for one in found] == [one.subject for one in conversation.conversations()]
    assert {one.channel for one in found} == {Channel.MAIL}
    assert [one.status for one in found] == [Status.PENDING, Status.PENDING, Status.OPEN]
    assert talk(acme, 3) == [("Bob Okafor", "sent"), ("Mara Lindqvist", "")]
    assert talk(acme, 4) == [("Alice Hartmann", "sent")]
    assert talk(acme, 5) == []
    assert [str(letter["To"]) for letter in inbox.letters] == [
        "Mara Lindqvist <mara.lindqvist@nordwind.example>",
        "Jonas Petit <j.petit@atelier-petit.example>",
    ]


def test_the_answer_that_comes_back_names_the_letter_that_it_answers(
    server: MailServer, inbox: MailReceiver, working: None
) -> None:
    run("seed_conversation")
    back = email.message_from_string(server.letters[1], policy=email.policy.default)
    named = [
        str(header).strip() for header in (back["In-Reply-To"], back["References"], inbox.letters[0]["Message-ID"])
    ]
    assert named == [named[0]] * 3
    assert str(back["To"]) == parseaddr(str(inbox.letters[0]["Reply-To"]))[1]


def test_a_second_run_writes_nothing_and_one_that_was_broken_off_goes_on(
    acme: TenantContext, server: MailServer, inbox: MailReceiver, working: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(commenting, "comment", broken)
        run("seed_conversation")
    assert len(server.letters) == 1
    assert run("seed_conversation").out == "Acme got 3 letters and sent 2 answers.\n"
    assert run("seed_conversation").out == "All of it is there already.\n"
    assert (len(server.letters), len(inbox.letters)) == (4, 2)


def test_letters_have_the_shapes_that_customers_send(server: MailServer, inbox: MailReceiver, working: None) -> None:
    run("seed_conversation")
    plain, _, both, files = (email.message_from_string(raw, policy=email.policy.default) for raw in server.letters)
    assert plain.get_content_type() == "text/plain"
    assert both.get_content_type() == "multipart/alternative"
    assert both["Cc"] == "studio@atelier-petit.example"
    assert [part.get_content_charset() for part in files.walk() if part.get_filename() is None][1] == "iso-8859-1"
    assert [part.get_filename() for part in files.iter_attachments()] == ["Rücksendung.csv"]  # type: ignore[attr-defined]


def test_without_workers_it_says_what_is_missing(server: MailServer, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = run("seed_conversation", "--wait", 1)
    assert ended.status == 1
    assert "No worker has filed the letter within 1 s. Are the workers running?" in ended.err


def test_without_the_mail_server_it_says_so(settings: LazySettings) -> None:
    settings.MAIL_RECEIVER = "127.0.0.1:1"
    ended = run("seed_conversation")
    assert ended.status == 1
    assert "The mail server at 127.0.0.1:1 did not take it" in ended.err


def test_it_needs_development(settings: LazySettings) -> None:
    settings.DEBUG = False
    assert run("seed_conversation").status == 1
