"""The conversations of the demonstration: letters that customers hand in by SMTP, and answers that leave as letters."""

from __future__ import annotations

import email
import email.policy
from collections.abc import Iterator
from email.message import EmailMessage
from email.utils import parseaddr
from typing import Any

import pytest
from django.conf import LazySettings

from portal.engines.endpoint import LOOPBACK, free_port
from portal.objects.object_store import ObjectStore
from tenants.tenancy import context, tenant_directory
from tenants.tenancy.context import TenantContext
from tests.support import letters_in, mailing
from tests.support.commands import run
from tests.support.mail_receiver import MailReceiver, mail_receiver
from tickets.desk import commenting, timelines
from tickets.letters import arrival, ledger, smtp_receiver
from tickets.letters.stored import raw_key
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
def server(settings: LazySettings) -> Iterator[list[str]]:
    """The server that takes letters to desks, and the lines that it says of each."""
    said: list[str] = []
    with letters_in.mail():
        settings.MAIL_RECEIVER = f"{LOOPBACK}:{free_port()}"
        server = smtp_receiver.controller(LOOPBACK, int(settings.MAIL_RECEIVER.rpartition(":")[2]), said=said.append)
        server.start()
        yield said
        server.stop()


@pytest.fixture
def acme() -> TenantContext:
    return context.for_system(tenant_directory.find("acme"))


@pytest.fixture
def working(server: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """While the command waits, letters are filed and answers are sent."""

    def work(seconds: float) -> None:
        letters_in.drain()
        mailing.carry()

    monkeypatch.setattr(conversation.time, "sleep", work)


def letters(acme: TenantContext) -> list[EmailMessage]:
    """The letters of the desk as they came, the first first."""
    newest_first, _ = ledger.letters(acme.repository, limit=100)
    rows = sorted(newest_first, key=lambda row: row.received_at)
    store = ObjectStore("tenant", acme.tenant_id)
    raws = [store.get(raw_key(acme.tenant_id, row.object), most=arrival.MOST_BYTES) for row in rows]
    return [email.message_from_bytes(raw, policy=email.policy.default) for raw in raws]


def answers(inbox: MailReceiver) -> list[EmailMessage]:
    """The letters that left, but for what tells a customer that a letter has arrived."""
    return [letter for letter in inbox.letters if letter["Auto-Submitted"] != "auto-replied"]


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
    assert [one.status for one in found] == [Status.OPEN, Status.PENDING, Status.OPEN]
    assert talk(acme, 3) == [("Bob Okafor", "sent"), ("Mara Lindqvist", "")]
    assert talk(acme, 4) == [("Alice Hartmann", "sent")]
    assert talk(acme, 5) == []
    assert [str(letter["To"]) for letter in answers(inbox)] == [
        "Mara Lindqvist <mara.lindqvist@nordwind.example>",
        "Jonas Petit <j.petit@atelier-petit.example>",
    ]


def test_the_answer_that_comes_back_names_the_letter_that_it_answers(
    acme: TenantContext, inbox: MailReceiver, working: None
) -> None:
    run("seed_conversation")
    back = letters(acme)[1]
    named = [
        str(header).strip() for header in (back["In-Reply-To"], back["References"], answers(inbox)[0]["Message-ID"])
    ]
    assert named == [named[0]] * 3
    assert str(back["To"]) == parseaddr(str(answers(inbox)[0]["Reply-To"]))[1]


def test_a_second_run_writes_nothing_and_one_that_was_broken_off_goes_on(
    acme: TenantContext, server: list[str], inbox: MailReceiver, working: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(commenting, "comment", broken)
        run("seed_conversation")
    assert len(server) == 1
    assert run("seed_conversation").out == "Acme got 3 letters and sent 2 answers.\n"
    assert run("seed_conversation").out == "All of it is there already.\n"
    assert (len(server), len(answers(inbox))) == (4, 2)


def test_letters_have_the_shapes_that_customers_send(acme: TenantContext, inbox: MailReceiver, working: None) -> None:
    run("seed_conversation")
    plain, _, both, files = letters(acme)
    assert plain.get_content_type() == "text/plain"
    assert both.get_content_type() == "multipart/alternative"
    assert both["Cc"] == "studio@atelier-petit.example"
    assert [part.get_content_charset() for part in files.walk() if part.get_filename() is None][1] == "iso-8859-1"
    assert [part.get_filename() for part in files.iter_attachments()] == ["Rücksendung.csv"]  # type: ignore[attr-defined]


def test_without_workers_it_says_what_is_missing(server: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
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
