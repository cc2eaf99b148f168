"""Kill what receives, files, answers and sends letters, and ask whether each was filed once and each answer was sent.

A mail program sends letters by SMTP to temporary desks and sends one again until it was taken, as mail servers do. An
agent answers each ticket that comes of it. Three things are asked: is each letter one ticket; has each answer reached
a mail server on this machine; does the ticket say so. Rows of the outbox stay until their TTL.
"""

from __future__ import annotations

import email
import email.policy
import re
import smtplib
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from email.message import EmailMessage
from functools import partial
from typing import Any, ClassVar, Final

from aiosmtpd.controller import Controller
from django.conf import settings
from django.core.management import call_command

from delivery.queues import queue_readers
from delivery.queues.queue_transport import QueueTransport
from portal.dynamo.store import Store
from portal.engines.endpoint import free_port
from portal.objects import object_store
from portal.objects.object_store import ObjectStore
from proofs import stored
from proofs.forked import Journal
from proofs.harness import DRAIN_SECONDS, Torture, TortureFailed, count, patiently
from proofs.scenarios import load
from tickets.desk import commenting
from tickets.letters import reconciling, smtp_receiver
from tickets.letters import stored as letter_rows
from tickets.letters.ledger import FILED
from tickets.letters.stored import INCOMING, LedgerRow
from tickets.ticket.stored import SENT, ActivityItem, SummaryItem

ROLES: Final = ("receiver", "worker", "dispatcher", "agent")
_HOST: Final = "127.0.0.1"
_RETRY: Final = 0.2  # seconds until a letter that was not taken is sent again
_ANSWER: Final = re.compile(r"Answer to (letter \d+)\b")


def write(told: Journal, seed: int, *, port: int, addresses: list[str], letters: int) -> None:
    """Send so many letters, each until the receiver has taken it."""
    for number in range(1, letters + 1):
        letter = EmailMessage()
        letter["From"] = f"Customer {number} <customer-{number}@customers.example>"
        letter["To"] = addresses[number % len(addresses)]
        letter["Subject"] = f"letter {number}"
        letter["Message-ID"] = f"<{seed}.{number}@customers.example>"
        letter.set_content(f"This is what letter {number} says.")
        while True:
            try:
                with smtplib.SMTP(_HOST, port, timeout=60) as connection:
                    connection.send_message(letter)
                break
            except (smtplib.SMTPException, OSError):
                time.sleep(_RETRY)
        told.write(events=number)


def receive(told: Journal, seed: int, *, port: int) -> None:
    smtp_receiver.controller(_HOST, port).start()
    threading.Event().wait()


def work(told: Journal, seed: int, *, port: int, visible: int) -> None:
    """File what has come in and send what goes out to the customers' mail server, until it is killed."""
    settings.MAIL_TRANSPORT = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = _HOST, port
    settings.EMAIL_USE_TLS = settings.EMAIL_USE_SSL = False
    load.see_again_after(visible)
    call_command("run_delivery", "--worker", "1", "--of", "1", "--metrics", "0")


def answer(told: Journal, seed: int, *, tenants: list[str]) -> None:
    """Answer each ticket of these tenants that has no answer yet, until it is killed."""
    while True:
        for desk in load.desks(tenants):
            agent = desk.agent
            for number, items in stored.collections(agent.repository):
                summary = next((item for item in items if isinstance(item, SummaryItem)), None)
                if summary is not None and not summary.comment_count:
                    commenting.comment(agent, number, body=f"Answer to {summary.title}.", request_id=f"answer-{number}")
        time.sleep(_RETRY)


class CustomersMail:
    """The mail server of the customers: counts the answers to each letter."""

    def __init__(self) -> None:
        self.answers: Counter[str] = Counter()

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        """Take a letter."""
        message: Any = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.answers.update(set(_ANSWER.findall(message.get_body(("plain",)).get_content().partition("\n>")[0])))
        return "250 taken"

    @contextmanager
    def serving(self) -> Iterator[int]:
        """Serve on this machine while the context lasts. Yields the port."""
        controller = Controller(self, hostname=_HOST, port=free_port())
        controller.start()
        try:
            yield controller.port
        finally:
            controller.stop()


class Letters(Torture):
    options: ClassVar = {
        "letters": count(1_000, "N", "to send"),
        "kills": count(12, "K", "of all processes", 0),
        "tenants": count(3, "T", "to write to"),
        "workers": count(2, "W", "at a time"),
        "visible": load.VISIBLE,
    }
    must_be_empty = ("lost", "filed_twice", "not_filed", "left_in_the_bucket", "unanswered", "unmarked")
    kept = "Each letter is one ticket, and each answer was sent and is marked so."

    def work(self) -> None:
        plan, self.customers = self.plan, CustomersMail()
        QueueTransport().create_all()
        queue_readers.create_missing()
        object_store.create_bucket()
        self.make_tenants(plan.tenants)
        addresses = [f"{tenant.slug}@{settings.MAIL_DOMAIN}" for tenant in self.tenants]
        with ExitStack() as context:
            customers, port = context.enter_context(self.customers.serving()), free_port()
            self.start_all(
                receiver=(1, receive, {"port": port}),
                worker=(plan.workers, work, {"port": customers, "visible": plan.visible}),
                dispatcher=(1, load.dispatch, {}),
                agent=(1, answer, {"tenants": self.ids}),
                writer=(1, write, {"port": port, "addresses": addresses, "letters": plan.letters}),
            )
            with self.stage("Writing letters", plan.letters) as progress:
                self.inject(self.kills_in_turn(ROLES), "writer", plan.letters, progress.advance, replace=ROLES)
                self.wait_while_it_moves(self._are_answered, progress.label, *ROLES, seconds=DRAIN_SECONDS)
                self._reconcile()
            self.end("writer", *ROLES)

    def _are_answered(self) -> tuple[bool, object]:
        self._look()
        return len(self.marked) >= self.plan.letters, f"{self.tickets.total()} filed, {len(self.marked)} answered"

    def _reconcile(self) -> None:
        """Let those letters be handed on that a killed receiver stored without telling of them, as `reconcile_mail`
        does. Their senders sent them again, so they change nothing."""
        reconciling.arrived(grace=timedelta(0))
        with suppress(TortureFailed):  # then the figures have them
            self.wait_until(lambda: not _incoming())
        self._look()

    def _look(self) -> None:
        """Read which tickets there are by title, and to which an answer is marked as sent."""
        self.tickets, self.marked = Counter[str](), set[str]()
        for tenant_id in self.ids:
            for _, items in patiently(partial(_collections, tenant_id)):
                titles = [item.title for item in items if isinstance(item, SummaryItem)]
                self.tickets.update(titles)
                if any(isinstance(item, ActivityItem) and item.delivery == SENT for item in items):
                    self.marked.update(titles)

    def figures(self) -> dict[str, Any]:
        sent = {f"letter {number}" for number in range(1, self.plan.letters + 1)}
        rows = [
            row for tenant_id in self.ids for row in Store("tenant", tenant_id).query_all(LedgerRow, letter_rows.ledger)
        ]
        doubles = sum(self.customers.answers.values()) - len(self.customers.answers)
        return {
            "letters": len(sent),
            "answers_that_came_twice": doubles,
            "lost": sorted(sent - self.tickets.keys())[:100],
            "filed_twice": sorted(title for title, many in self.tickets.items() if many > 1)[:100],
            "not_filed": sorted(f"{row.subject}: {row.state} {row.reason}" for row in rows if row.state != FILED)[:100],
            "left_in_the_bucket": _incoming()[:100],
            "unanswered": sorted(sent - self.customers.answers.keys())[:100],
            "unmarked": sorted(sent - self.marked)[:100],
            "kills": dict(self.kills),
        }


def _collections(tenant_id: str) -> list[Any]:
    return [*stored.collections(Store("tenant", tenant_id))]


def _incoming() -> list[str]:
    return [one.key for one in ObjectStore("delivery").list(INCOMING)]
