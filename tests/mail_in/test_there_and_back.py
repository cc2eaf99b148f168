"""A conversation by mail both ways: what leaves comes back to its ticket, is reported when it does not arrive, and two
programs that answer everything fall silent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import EmailMessage as Letter

import pytest

from tests.support import mailing
from tests.support.letters_in import come_in, letter, rows
from tests.support.mail_receiver import MailReceiver, mail_receiver, parts
from tests.support.world import World
from tickets.desk import changing, commenting, timelines
from tickets.desk.changing import Wishes
from tickets.letters import ledger
from tickets.replies.reply_addresses import address_of, return_address
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.ticket.stored import ActivityItem

ZOE = "zoe@customer.example"


@pytest.fixture
def inbox(mail: World) -> Iterator[MailReceiver]:
    with mail_receiver() as receiver:
        yield receiver


@pytest.fixture
def ticket(mail: World, inbox: MailReceiver) -> int:
    """A ticket that Zoe opened by mail, whose acknowledgement has left."""
    come_in(letter())
    mailing.carry()
    (row,) = rows(mail)
    return int(row.number)


def comments(world: World, number: int) -> list[ActivityItem]:
    activity = timelines.ticket(world.context("bob", "acme"), number).activity
    return [entry for entry in activity if entry.kind == "comment"]


def answer(world: World, number: int, inbox: MailReceiver, body: str = "Pour water on it.") -> Letter:
    """What an agent wrote, as Zoe has received it."""
    commenting.comment(world.context("bob", "acme"), number, body=body)
    mailing.carry()
    return inbox.letters[-1]


def reply_to(received: Letter, body: str, *, sender: str = ZOE, **headers: str) -> tuple[bytes, str]:
    """An answer as a mail program writes it, and where it goes to."""
    made = Letter()
    made["From"], made["To"] = sender, str(received["Reply-To"])
    made["Subject"], made["Message-ID"] = str(received["Subject"]), f"<{abs(hash(body))}@customer.example>"
    made["In-Reply-To"] = str(received["Message-ID"])
    made["References"] = f"{received['References']} {received['Message-ID']}"
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    quoted = "\n".join(f"> {line}" for line in parts(received)[0].splitlines())
    made.set_content(f"{body}\n\nOn Thu, 26 Nov 2026, Acme wrote:\n{quoted}\n")
    return made.as_bytes(), received["Reply-To"].addresses[0].addr_spec


def test_a_conversation_stays_one_ticket_and_quotes_are_folded(mail: World, ticket: int, inbox: MailReceiver) -> None:
    received = answer(mail, ticket, inbox)
    assert received["To"].addresses[0].addr_spec == ZOE
    come_in(*reply_to(received, "That helped."))
    assert [row.state for row in rows(mail)] == [ledger.FILED] * 2
    texts = [entry.body for entry in comments(mail, ticket)]
    assert texts == ["Pour water on it.", "That helped."]
    again = answer(mail, ticket, inbox, "Glad to hear.")
    assert again["In-Reply-To"] == f"<{abs(hash('That helped.'))}@customer.example>"
    assert "> That helped." in parts(again)[0]


def test_the_requesters_link_that_an_answer_quotes_is_not_shown_to_members(
    mail: World, ticket: int, inbox: MailReceiver
) -> None:
    received = answer(mail, ticket, inbox)
    (token,) = re.findall(r"/r/([a-z2-7]+)/", parts(received)[0])
    come_in(*reply_to(received, f"See http://testserver/r/{token}/ again."))
    told = comments(mail, ticket)[-1]
    assert told.body == "See http://testserver/r/…/ again."
    assert told.letter is not None
    stored = str(told.letter.as_dict())
    assert "/r/…/" in stored
    assert token not in stored, "whoever has it answers as the requester"


def test_a_delivery_report_is_shown_on_the_comment(mail: World, ticket: int, inbox: MailReceiver) -> None:
    received = answer(mail, ticket, inbox)
    come_in(report_on(received), inbox.envelopes[-1][0], sender="")
    assert comments(mail, ticket)[-1].delivery == "bounced"
    zoe = requesters.by_address(mail.context("bob", "acme"), ZOE)
    assert zoe is not None
    assert ZOE in zoe.bounced
    assert sorted(row.state for row in rows(mail)) == [ledger.AUTOMATIC, ledger.FILED]


def test_whoever_writes_again_gets_mail_again(mail: World, ticket: int, inbox: MailReceiver) -> None:
    received = answer(mail, ticket, inbox)
    come_in(report_on(received), inbox.envelopes[-1][0], sender="")
    assert zoe_of(mail).bounced
    come_in(*reply_to(received, "I am back."))
    zoe = requesters.by_address(mail.context("bob", "acme"), ZOE)
    assert zoe is not None
    assert zoe.bounced == {}


def zoe_of(mail: World) -> Requester:
    zoe = requesters.by_address(mail.context("bob", "acme"), ZOE)
    assert zoe is not None
    return zoe


def test_a_report_that_anybody_can_write_changes_nothing_and_says_so(
    mail: World, ticket: int, inbox: MailReceiver
) -> None:
    received = answer(mail, ticket, inbox)
    acme = mail.tenants["acme"].tenant_id
    reply = address_of(acme, ticket, zoe_of(mail).id, is_agent=False)
    of_globex = return_address(mail.tenants["globex"].tenant_id, ticket, "new")
    for n, to in enumerate(("acme@desk.localhost", reply, of_globex)):
        come_in(report_on(received).replace(b"report-1", f"forged-{n}".encode()), to, sender="")
    assert {entry.delivery for entry in comments(mail, ticket)} == {"sent"}
    assert zoe_of(mail).bounced == {}
    reasons = [row.reason for row in rows(mail) if row.state == ledger.AUTOMATIC]
    assert reasons
    assert all(one.endswith("so it changes nothing.") for one in reasons)
    assert len(rows(mail, "globex")) == 1


@pytest.mark.parametrize(("which", "states"), [(0, ["bounced", "sent"]), (1, ["sent", "bounced"])])
def test_a_report_is_about_the_letter_whose_return_address_it_came_to_whatever_it_says(
    mail: World, ticket: int, inbox: MailReceiver, which: int, states: list[str]
) -> None:
    answers = [answer(mail, ticket, inbox), answer(mail, ticket, inbox, "Or sand.")]
    come_in(report_on(answers[1 - which]), inbox.envelopes[1 + which][0], sender="")
    assert [entry.delivery for entry in comments(mail, ticket)] == states


def test_a_report_on_somebody_who_had_no_such_letter_changes_nothing(
    mail: World, ticket: int, inbox: MailReceiver
) -> None:
    come_in(letter(sender="lin@customer.example", message_id="<lin@customer.example>"), sender="lin@customer.example")
    received = answer(mail, ticket, inbox)
    forged = report_on(received).replace(ZOE.encode(), b"lin@customer.example")
    come_in(forged, inbox.envelopes[-1][0], sender="")
    lin = requesters.by_address(mail.context("bob", "acme"), "lin@customer.example")
    assert lin is not None
    assert lin.bounced == zoe_of(mail).bounced == {}


def test_a_former_requester_reports_nothing_on_the_present_one(mail: World, ticket: int, inbox: MailReceiver) -> None:
    received = answer(mail, ticket, inbox)
    bob = mail.context("bob", "acme")
    lin = requesters.ensure(bob, "lin@customer.example")
    changing.change(bob, ticket, Wishes(requester=lin))
    forged = report_on(received).replace(ZOE.encode(), b"lin@customer.example")
    come_in(forged, inbox.envelopes[-1][0], sender="")
    now = requesters.find(bob, lin.id)
    assert now is not None
    assert now.bounced == {}
    assert comments(mail, ticket)[-1].delivery == "sent"


def test_a_letter_to_a_return_address_that_is_no_report_waits_for_a_person(
    mail: World, ticket: int, inbox: MailReceiver
) -> None:
    answer(mail, ticket, inbox)
    come_in(letter(message_id="<new@customer.example>", body="I am away."), inbox.envelopes[-1][0])
    assert (rows(mail)[0].state, rows(mail)[0].number) == (ledger.WAITING, 0)


def test_each_letter_has_a_return_address_of_its_own_and_the_desks_address_in_from(
    mail: World, ticket: int, inbox: MailReceiver
) -> None:
    letters = [answer(mail, ticket, inbox), answer(mail, ticket, inbox, "Or sand.")]
    senders = [sender for sender, _ in inbox.envelopes]
    assert len(set(senders)) == 3, "the acknowledgement, too"
    assert all(sender.startswith("bounce+") for sender in senders)
    assert {str(one["From"]) for one in letters} == {"Acme <acme@desk.localhost>"}


def test_two_programs_that_answer_everything_fall_silent(mail: World, inbox: MailReceiver) -> None:
    """The other side answers each letter by a program that does not say that it is one."""
    come_in(letter())
    for turn in range(20):
        mailing.carry()
        if turn >= len(inbox.letters):
            break
        come_in(*reply_to(inbox.letters[turn], f"I am away until Monday. {turn}"))
    assert len(inbox.letters) <= 5


def report_on(received: Letter) -> bytes:
    """A delivery report by RFC 3464 on a letter."""
    return "\r\n".join(
        [
            "Return-Path: <>",
            "From: MAILER-DAEMON@customer.example",
            "To: acme@desk.localhost",
            "Subject: Undelivered Mail Returned to Sender",
            "Message-ID: <report-1@customer.example>",
            "Auto-Submitted: auto-replied",
            "MIME-Version: 1.0",
            'Content-Type: multipart/report; report-type=delivery-status; boundary="b1"',
            "",
            "--b1",
            "Content-Type: text/plain",
            "",
            "It could not be delivered.",
            "--b1",
            "Content-Type: message/delivery-status",
            "",
            "Reporting-MTA: dns; mx.customer.example",
            "",
            f"Final-Recipient: rfc822; {ZOE}",
            "Action: failed",
            "Status: 5.1.1",
            "Diagnostic-Code: smtp; 550 5.1.1 no such user",
            "",
            "--b1",
            "Content-Type: text/rfc822-headers",
            "",
            f"Message-ID: {received['Message-ID']}",
            f"Subject: {received['Subject']}",
            "",
            "--b1--",
            "",
        ]
    ).encode()
