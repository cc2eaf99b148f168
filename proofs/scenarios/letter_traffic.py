"""Kill what receives, files, answers and sends letters, and ask whether each was filed once and each answer was sent.

A mail program sends letters by SMTP to temporary desks and sends one again until it was taken, as mail servers do. An
agent answers each ticket that comes of it. Three things are asked: is each letter one ticket; was each answer sent;
does the ticket say so. Rows of the outbox stay until their TTL.
"""

from __future__ import annotations

import re
import smtplib
import threading
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from email.message import EmailMessage
from typing import Any, ClassVar, Final

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
_BETWEEN: Final = "-" * 79  # two letters of a file


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


def work(told: Journal, seed: int, *, sent: str, visible: int) -> None:
    """File what has come in and send what goes out, as files of this folder, until it is killed."""
    settings.MAIL_TRANSPORT = "django.core.mail.backends.filebased.EmailBackend"
    settings.EMAIL_FILE_PATH = sent
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
        plan = self.plan
        QueueTransport().create_all()
        queue_readers.create_missing()
        object_store.create_bucket()
        self.make_tenants(plan.tenants)
        addresses = [f"{tenant.slug}@{settings.MAIL_DOMAIN}" for tenant in self.tenants]
        port, self.sent = free_port(), self.folder / "sent"
        self.start_all(
            receiver=(1, receive, {"port": port}),
            worker=(plan.workers, work, {"sent": str(self.sent), "visible": plan.visible}),
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
            for _, items in patiently(lambda: list(stored.collections(Store("tenant", tenant_id)))):  # noqa: B023
                titles = [item.title for item in items if isinstance(item, SummaryItem)]
                self.tickets.update(titles)
                if any(isinstance(item, ActivityItem) and item.delivery == SENT for item in items):
                    self.marked.update(titles)

    def figures(self) -> dict[str, Any]:
        sent = {f"letter {number}" for number in range(1, self.plan.letters + 1)}
        rows = [
            row for tenant_id in self.ids for row in Store("tenant", tenant_id).query_all(LedgerRow, letter_rows.ledger)
        ]
        files = [path.read_text() for path in self.sent.glob("*")]
        answers = Counter(one for text in files for letter in text.split(_BETWEEN) for one in _answers(letter))
        return {
            "letters": len(sent),
            "answers_that_came_twice": answers.total() - len(answers),
            "lost": sorted(sent - self.tickets.keys())[:100],
            "filed_twice": sorted(title for title, many in self.tickets.items() if many > 1)[:100],
            "not_filed": sorted(f"{row.subject}: {row.state} {row.reason}" for row in rows if row.state != FILED)[:100],
            "left_in_the_bucket": _incoming()[:100],
            "unanswered": sorted(sent - answers.keys())[:100],
            "unmarked": sorted(sent - self.marked)[:100],
            "kills": dict(self.kills),
        }


def _incoming() -> list[str]:
    return [one.key for one in ObjectStore("delivery").list(INCOMING)]


def _answers(letter: str) -> set[str]:
    """Return which letters are answered by one that was sent; its own quotes do not count."""
    return set(_ANSWER.findall(letter.partition("\n>")[0]))
