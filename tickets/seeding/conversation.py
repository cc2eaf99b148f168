"""Play the conversations of the demonstration: customers write by SMTP, agents answer, and one customer writes back.

The letters take the way of all letters, so the development mail server and the workers have to run. Running it again
writes nothing twice: a customer who has a ticket has written, and a ticket with a first answer was answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any, Final

from django.conf import settings

from portal.errors import Unavailable
from portal.mailing import development_mail
from tenants.sign_in import accounts
from tenants.tenancy import context
from tenants.tenancy.context import TenantContext
from tickets.desk import changing, commenting, timelines
from tickets.replies import message_ids, reply_addresses
from tickets.requesters import requester_tickets, requesters
from tickets.seeding import cast
from tickets.seeding.cast import CastDesk
from tickets.ticket import stored
from tickets.ticket.fields import Status
from tickets.ticket.stored import ActivityItem, SummaryItem

_PAUSE: Final = 0.25  # seconds between two looks


@dataclass(frozen=True)
class Conversation:
    """A customer's letter, what an agent answers ("" for nothing yet), and what the customer writes back."""

    key: str
    name: str
    address: str
    subject: str
    text: str
    copy: str = ""
    html: str = ""
    charset: str = "utf-8"
    file: str = ""
    content: str = ""
    agent: str = ""
    answer: str = ""
    status: str = ""
    back: str = ""

    @property
    def sender(self) -> str:
        return f"{self.name} <{self.address}>"


@dataclass
class Played:
    """Count what was written; zeros where all was there."""

    letters: int = 0
    answers: int = 0


def conversations() -> tuple[Conversation, ...]:
    return tuple(Conversation(**raw) for raw in cast.load("conversations.toml")["conversation"])


def play(desk: CastDesk, *, seconds: float) -> Played:
    """Play what is missing on this desk, and wait up to so many seconds for each letter to become a ticket or comment.

    Raises Invalid where the mail server takes no letter, and Unavailable where nobody files or sends one in time.
    """
    return _Player(desk, seconds).play()


class _Player:
    def __init__(self, desk: CastDesk, seconds: float) -> None:
        self._desk, self._seconds = desk, seconds
        self._tenant = self._as(desk.owner.email)
        self._played = Played()

    def play(self) -> Played:
        for one in conversations():
            number = self._opened(one)
            if one.answer and changing.read(self._tenant, number).responded_at is None:
                self._answer(one, number)
            if one.back and int(changing.read(self._tenant, number).comment_count) < 2:
                self._write_back(one, number)
        return self._played

    def _as(self, email: str) -> TenantContext:
        user = accounts.find_by_email(email)
        entered = context.enter(user, self._desk.tenant_id) if user else None
        if entered is None:
            raise Unavailable(f"{email} is no member of {self._desk.name}. Run seed first.")
        return entered

    # --- letters ---

    def _opened(self, one: Conversation) -> int:
        """Return the number of the customer's ticket, after a letter where there is none."""
        found = self._ticket(one)
        if found is None:
            self._send(one, _letter(one, f"{self._desk.slug}@{settings.MAIL_DOMAIN}"))
            found = self._wait(lambda: self._ticket(one), "No worker has filed the letter")
        return int(found.number)

    def _ticket(self, one: Conversation) -> SummaryItem | None:
        person = requesters.by_address(self._tenant, one.address)
        rows = requester_tickets.newest(self._tenant, person.ids, limit=requester_tickets.SHOWN) if person else []
        return rows[-1] if rows else None

    def _write_back(self, one: Conversation, number: int) -> None:
        """Let the customer answer the agent's letter, once it has left."""
        answer = self._wait(lambda: self._sent(number), "No worker has sent the answer")
        person_id = changing.read(self._tenant, number).requester
        to = reply_addresses.address_of(self._tenant.tenant_id, number, person_id, is_agent=False)
        named = message_ids.message_id(self._tenant.tenant_id, number, message_ids.entry_of(answer.sk))
        letter = development_mail.letter(
            sender=one.sender,
            to=to,
            subject=f"Re: {one.subject}",
            text=f"{one.back.strip()}\n\n{_quoted(one.answer)}\n",
            answers=named,
            message_id=f"<{one.key}.back@{one.address.partition('@')[2]}>",
        )
        self._send(one, letter)
        self._wait(lambda: int(changing.read(self._tenant, number).comment_count) > 1, "No worker has filed the answer")

    def _sent(self, number: int) -> ActivityItem | None:
        activity = timelines.ticket(self._tenant, number).activity
        return next((entry for entry in activity if entry.kind == "comment" and entry.delivery == stored.SENT), None)

    def _send(self, one: Conversation, letter: EmailMessage) -> None:
        to = [address.addr_spec for address in letter["To"].addresses]
        development_mail.hand_in(settings.MAIL_RECEIVER, letter.as_bytes(), sender=one.address, recipients=to)
        self._played.letters += 1

    def _wait(self, found: Callable[[], Any], otherwise: str) -> Any:
        deadline = time.monotonic() + self._seconds
        while not (result := found()):
            if time.monotonic() > deadline:
                raise Unavailable(f"{otherwise} within {self._seconds:g} s. Are the workers running?")
            time.sleep(_PAUSE)
        return result

    # --- answers ---

    def _answer(self, one: Conversation, number: int) -> None:
        then = Status(one.status) if one.status else None
        commenting.comment(self._as(one.agent), number, body=one.answer, then=then)
        self._played.answers += 1


def _letter(one: Conversation, to: str) -> EmailMessage:
    domain = one.address.partition("@")[2]
    made = development_mail.letter(
        sender=one.sender, to=to, subject=one.subject, text="", message_id=f"<{one.key}@{domain}>"
    )
    if one.copy:
        made["Cc"] = one.copy
    made.set_content(f"{one.text.strip()}\n", charset=one.charset)
    if one.html:
        made.add_alternative(f"{one.html.strip()}\n", subtype="html", charset=one.charset)
    if one.file:
        made.add_attachment(one.content.lstrip().encode(one.charset), maintype="text", subtype="csv", filename=one.file)
    return made


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
