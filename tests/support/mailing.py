"""Mail that leaves by the outbox: what is in it, a worker's turn in this process, and carriers that refuse."""

from __future__ import annotations

import email
import email.policy
import json
import socketserver
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from email.message import EmailMessage as Letter
from typing import Any, ClassVar

from django.conf import settings
from django.core import mail
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend

from delivery.mail.outbox_backend import MAIL
from delivery.outbox import publisher
from delivery.outbox.stored import OutboxItem
from delivery.queues.message_handling import MessageHandler
from portal.dynamo.placement import POOL, Placement
from tenants.membership import mails
from tests.support import deliveries
from tests.support.outbox import rows

OUTBOX = "delivery.mail.outbox_backend.OutboxEmailBackend"
AT_ONCE = "django.core.mail.backends.locmem.EmailBackend"
REFUSING = "tests.support.mailing.RefusingBackend"


class RefusingBackend(BaseEmailBackend):
    """Raise the next of `errors` for each mail, and the last of them from then on."""

    errors: ClassVar[list[Exception]] = []

    def send_messages(self, messages: Sequence[EmailMessage]) -> int:
        errors = type(self).errors
        raise errors.pop(0) if len(errors) > 1 else errors[0]


def waiting() -> list[OutboxItem]:
    """The mails of the outbox that are not sent yet, oldest first."""
    return [row for row in rows() if row.pending]


def content(row: OutboxItem) -> dict[str, Any]:
    """What a row's mail says."""
    written: dict[str, Any] = json.loads(row.private)
    return written


def carry() -> list[str]:
    """Let a worker handle each mail that waits, whenever it is due, and return what it did."""
    did = []
    for row in waiting():
        for member in sorted(row.open or ()):
            index, destination = publisher.member_parts(member)
            # A mail that is written down stands in the pool, and all else where its desk lies.
            where = POOL if destination == MAIL else Placement.parse(settings.PLACEMENT)
            message = deliveries.message(row, destination, index=index, where=where)
            did.append(MessageHandler().handle(deliveries.received(message)).did)
    return did


def letter_to(address: str) -> Letter:
    """The latest mail that left this process at once to an address, as it left."""
    mails.wait_until_sent()  # it is sent beside the request
    sent = next(message for message in reversed(mail.outbox) if address in message.to)
    return email.message_from_bytes(sent.message().as_bytes(), policy=email.policy.default)


class _Conversation(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        self._say("220 mail.test")
        while line := self.rfile.readline().decode().strip():
            verb = line.split(":")[0].split(" ")[0].upper()
            self._say(self.server.answers.get(verb, "250 ok") if verb != "DATA" else "354 go on")
            if verb == "DATA":
                text = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.server.letters.append(text.decode())
                self._say(self.server.answers.get("DATA", "250 taken"))
            if verb == "QUIT":
                return

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


class MailServer(socketserver.ThreadingTCPServer):
    """Speaks enough SMTP to take a mail, or answers a verb as a test says: {"RCPT": "550 5.1.1 unknown"}."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Conversation)
        self.answers: dict[str, str] = {}
        self.letters: list[str] = []

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextmanager
def mail_server() -> Iterator[MailServer]:
    """A mail server on a free port of loopback, which answers while the block lasts."""
    with MailServer() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()
