"""What becomes of a mail: sent, tried again while it is of use, or given up with a reason; and whom none reaches."""

from __future__ import annotations

import smtplib
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.core.mail import EmailMessage, send_mail
from django.test import override_settings

from delivery.mail import mail_delivering
from delivery.outbox import destinations
from portal import clock
from portal.errors import NotFound, Rejected, Throttled
from portal.mailing import mail_transport
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import invitations
from tenants.sign_in import suppressed_addresses
from tenants.sign_in.stored import BOUNCED
from tests.support import commands, deliveries, mailing
from tests.support.mailing import MailServer, RefusingBackend, mail_server
from tests.support.operators import Operator, make_operator
from tests.support.outbox import rows
from tests.support.stored import send
from tests.support.world import Browser, World

NORA = "nora@example.org"
UNKNOWN = (550, b"5.1.1 <nora@example.org>: no such user, see https://mail.example.org/help?token=1")
BY_SMTP = "django.core.mail.backends.smtp.EmailBackend"


@pytest.fixture(autouse=True)
def by_the_outbox() -> Iterator[None]:
    with override_settings(EMAIL_BACKEND=mailing.OUTBOX):
        yield


@pytest.fixture
def server() -> Iterator[MailServer]:
    with (
        mail_server() as server,
        override_settings(MAIL_TRANSPORT=BY_SMTP, EMAIL_HOST="127.0.0.1", EMAIL_PORT=server.port, EMAIL_TIMEOUT=5),
    ):
        yield server


@pytest.fixture
def refusing() -> Iterator[list[Exception]]:
    """The errors that the carrier raises, one for each mail."""
    RefusingBackend.errors = []
    with override_settings(MAIL_TRANSPORT=mailing.REFUSING):
        yield RefusingBackend.errors


def invite(world: World, address: str = NORA) -> Any:
    return world.browser("alice", "acme").send(
        "/desk/invitations/", {"addresses": address, "role": "agent"}, follow=True
    )


def shown(world: World) -> Any:
    return world.browser("alice", "acme").get("/desk/invitations/").context["pending"][0]


def ask_for_a_password(address: str) -> None:
    Browser().post("/password/reset/", {"email": address})


def reasons() -> list[str]:
    return [letter.reason for letter in deliveries.dead()]


# --- by a real mail server ---


def test_a_mail_server_gets_the_whole_mail_under_the_same_id_each_time(world: World, server: MailServer) -> None:
    server.answers["DATA"] = "451 4.3.0 try later"
    ask_for_a_password("bob@example.com")
    assert mailing.carry() == ["failed"]
    server.answers.clear()
    assert mailing.carry() == ["answered"]
    ids = {line for letter in server.letters for line in letter.splitlines() if line.startswith("Message-ID")}
    assert len(server.letters) == 2
    assert len(ids) == 1
    assert "Subject: Choose a new password for Pooldesk" in server.letters[1]


def test_a_recipient_that_a_mail_server_does_not_know_is_told_to_the_admin_and_gets_no_more_mail(
    world: World, server: MailServer
) -> None:
    server.answers["RCPT"] = "550 5.1.1 <nora@example.org>: no such user"
    invite(world)
    assert mailing.carry() == ["dead"]
    why = "The mail server answered 550 5.1.1 <nora@example.org>: no such user"
    assert reasons() == [why]
    found = shown(world)["unreached"]
    assert (found["why"], found["at"].date()) == (why, clock.now().date())
    assert suppressed_addresses.of([NORA])[NORA].kind == BOUNCED
    page = world.browser("alice", "acme").get("/desk/invitations/").content.decode()
    assert "Not delivered" in page
    assert "no such user" in page


def test_a_mail_server_that_is_away_is_tried_again_and_nobody_is_suppressed(world: World) -> None:
    with mail_server() as gone:
        port = gone.port
    with override_settings(MAIL_TRANSPORT=BY_SMTP, EMAIL_HOST="127.0.0.1", EMAIL_PORT=port, EMAIL_TIMEOUT=5):
        invite(world)
        assert mailing.carry() == ["failed"]
    assert mailing.carry() == ["answered"]
    assert [letter.to for letter in mail.outbox] == [[NORA]]


# --- whose fault it is ---


@pytest.mark.parametrize(
    ("error", "state", "nobody_there"),
    [
        (smtplib.SMTPRecipientsRefused({NORA: UNKNOWN}), "refused", (NORA,)),
        (smtplib.SMTPRecipientsRefused({NORA: (550, b"User unknown in local table")}), "refused", (NORA,)),
        (smtplib.SMTPRecipientsRefused({NORA: (550, b"5.7.1 Relaying denied")}), "refused", ()),
        (smtplib.SMTPRecipientsRefused({NORA: (550, b"Relaying denied")}), "refused", ()),
        (smtplib.SMTPRecipientsRefused({NORA: (552, b"5.2.2 Mailbox full")}), "refused", ()),
        (smtplib.SMTPRecipientsRefused({NORA: (451, b"4.7.1 Greylisted, user unknown yet")}), "later", ()),
        (smtplib.SMTPDataError(554, b"5.7.1 Spam"), "refused", ()),
        (smtplib.SMTPDataError(452, b"4.3.1 Full"), "later", ()),
        (smtplib.SMTPSenderRefused(550, b"5.7.60 Not allowed to send as", "desk@example.com"), "later", ()),
        (smtplib.SMTPAuthenticationError(535, b"5.7.8 Bad credentials for secret"), "later", ()),
        (smtplib.SMTPServerDisconnected("gone"), "later", ()),
        (ConnectionRefusedError(111, "refused"), "later", ()),
        (TimeoutError("timed out"), "later", ()),
        (Throttled("Amazon SES takes no more at the moment."), "later", ()),
        (Rejected("Amazon SES refused it: virus"), "refused", ()),
    ],
    ids=lambda value: type(value).__name__ + str(value)[:30] if isinstance(value, Exception) else None,
)
def test_a_carriers_answer_says_whether_the_mail_the_address_or_neither_is_at_fault(
    refusing: list[Exception], error: Exception, state: str, nobody_there: tuple[str, ...]
) -> None:
    refusing.append(error)
    handed = mail_transport.hand_over(EmailMessage("Hello", "A text.", to=[NORA]))
    assert (handed.state, handed.nobody_there) == (state, nobody_there)
    assert handed.note
    assert "token" not in handed.note
    assert "secret" not in handed.note


# --- how often, and how long ---


def test_a_reset_is_given_up_when_its_link_would_come_too_late(
    world: World, refusing: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing.append(ConnectionRefusedError(111, "refused"))
    ask_for_a_password("bob@example.com")
    did, start = [], clock.now()
    for after in (0, 1, 6, 37):  # minutes, when its attempts are due
        moment = start + timedelta(minutes=after)
        monkeypatch.setattr(clock, "now", lambda moment=moment: moment)
        did += mailing.carry()
    assert did == ["failed", "failed", "failed", "dead"]
    assert reasons()[0].startswith(f"{mail_delivering.TOO_LATE} The mail server could not take it")


def test_what_is_no_longer_of_use_is_not_sent(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    ask_for_a_password("bob@example.com")
    later = clock.now() + timedelta(minutes=61)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert mailing.carry() == ["dead"]
    assert reasons() == [mail_delivering.TOO_LATE]
    assert mail.outbox == []


def test_an_invitation_is_tried_as_often_as_any_delivery_and_then_says_why(
    world: World, refusing: list[Exception]
) -> None:
    refusing.append(smtplib.SMTPRecipientsRefused({NORA: (451, b"4.7.1 Greylisted")}))
    invite(world)
    did = [mailing.carry() for _ in range(destinations.ATTEMPTS)]
    assert did == [["failed"]] * (destinations.ATTEMPTS - 1) + [["dead"]]
    assert shown(world)["unreached"]["why"] == "The mail server answered 451 4.7.1 Greylisted"
    assert suppressed_addresses.of([NORA]) == {}


# --- addresses that mail does not reach ---


def test_a_mail_to_an_address_that_bounced_is_not_sent_and_the_invitation_says_so(world: World) -> None:
    invite(world)
    suppressed_addresses.note(NORA.upper(), kind=BOUNCED, why="550 5.1.1", at="2026-11-01T10:00:00.000000Z")
    assert mailing.carry() == ["answered"]
    assert mail.outbox == []
    assert shown(world)["unreached"]["why"] == (
        "Mail to this address bounced on 1 November 2026, and none is sent to it since."
    )
    assert rows()[0].private is None


def test_who_invites_such_an_address_is_told_at_once_and_nothing_is_written_for_the_mail(world: World) -> None:
    suppressed_addresses.note(NORA, kind=BOUNCED, why="550 5.1.1")
    page = invite(world, f"{NORA}, nils@example.org").content.decode()
    assert f"{NORA} was invited and gets no mail. Mail to this address bounced on" in page
    assert "An invitation was sent to nils@example.org." in page
    assert [mailing.content(row)["to"] for row in rows()] == [["nils@example.org"]]


def test_of_several_recipients_only_those_who_bounced_get_nothing(world: World) -> None:
    suppressed_addresses.note("one@example.org", kind=BOUNCED, why="")
    send_mail("Hello", "A text.", None, ["one@example.org", "two@example.org"])
    mailing.carry()
    assert [letter.recipients() for letter in mail.outbox] == [["two@example.org"]]


def test_an_invitation_that_is_sent_again_forgets_that_the_last_mail_did_not_get_through(
    world: World, refusing: list[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing += [Rejected("no"), Rejected("no")]
    invite(world)
    (old,) = mailing.waiting()
    assert mailing.carry() == ["dead"]
    later = clock.now() + invitations.PAUSE
    monkeypatch.setattr(clock, "now", lambda: later)
    alice = world.browser("alice", "acme")
    alice.send(f"/desk/invitations/{shown(world)['id']}/resend/")
    assert shown(world)["unreached"] is None
    late = old.subject.removeprefix("invitation/")
    repository = world.context("alice", "acme").repository
    invitations.note_unreached(repository, late, why="late", sent_at=old.timestamp)
    assert shown(world)["unreached"] is None


def test_what_is_kept_of_such_an_address_does_not_hold_it(world: World) -> None:
    suppressed_addresses.note(NORA, kind=BOUNCED, why="550 5.1.1")
    (stored,) = [i for i in send("Scan", TableName="Pooldesk.Platform.Users")["Items"] if "SUPPRESSED" in i["pk"]["S"]]
    assert NORA not in str(stored)
    assert set(stored) == {"pk", "kind", "why", "at"}


def test_an_operator_sees_at_an_account_that_mail_does_not_reach_it_and_clears_that(world: World) -> None:
    suppressed_addresses.note(
        "bob@example.com", kind=BOUNCED, why="550 5.1.1 unknown", at="2026-11-01T10:00:00.000000Z"
    )
    make_operator()
    operator = Operator.signed_in().open("acme")
    bob = f"/admin/tenants/account/{world.users['bob'].id}/change/"
    assert "bounced on 1 November 2026, and none is sent to it since. 550 5.1.1 unknown" in operator.says(bob)
    assert "Mail is sent to bob@example.com again." in operator.act(bob, "_mail", follow=True).content.decode()
    assert "is sent to this address" in operator.says(bob)
    assert "Allow mail again" not in operator.says(bob)
    trail = operator.says("/admin/tenants/auditrow/?tenant_id=" + "0" * 32)
    assert "address.cleared" in trail
    ask_for_a_password("bob@example.com")
    assert mailing.carry() == ["answered"]
    assert [letter.to for letter in mail.outbox] == [["bob@example.com"]]


def test_the_command_says_and_clears_it_for_any_address(world: World) -> None:
    suppressed_addresses.note(NORA, kind=BOUNCED, why="")
    assert "bounced on" in commands.run("mail_address", "show", NORA).out
    assert commands.run("mail_address", "clear", NORA).out == "Mail is sent to this address.\n"
    assert commands.run("mail_address", "clear", NORA).status == 1
    with pytest.raises(NotFound):
        suppressed_addresses.clear(NORA, by=SYSTEM)
