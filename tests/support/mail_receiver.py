"""A real mail server on loopback that keeps what it receives, for letters that desks send."""

from __future__ import annotations

import email
import email.policy
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import EmailMessage as Letter
from typing import Any

from aiosmtpd.controller import Controller
from django.test import override_settings

BY_SMTP = "django.core.mail.backends.smtp.EmailBackend"


class MailReceiver:
    """Keeps letters with their envelope, and answers for addresses as a test says: {"ada@...": "550 5.1.1 unknown"}."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []
        self.envelopes: list[tuple[str, list[str]]] = []
        self.answers: dict[str, str] = {}

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        """Take a recipient, unless a test says otherwise."""
        if answer := self.answers.get(address):
            return answer
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        """Keep a letter."""
        if answer := self.answers.get("DATA"):
            return answer
        self.envelopes.append((envelope.mail_from, list(envelope.rcpt_tos)))
        self.letters.append(email.message_from_bytes(envelope.content, policy=email.policy.default))  # type: ignore[arg-type]
        return "250 taken"


@contextmanager
def mail_receiver() -> Iterator[MailReceiver]:
    """Receive mail on a free port of loopback, to which this process hands its mail while the block lasts."""
    receiver = MailReceiver()
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    controller = Controller(receiver, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        with override_settings(MAIL_TRANSPORT=BY_SMTP, EMAIL_HOST="127.0.0.1", EMAIL_PORT=port, EMAIL_TIMEOUT=30):
            yield receiver
    finally:
        controller.stop()


def parts(letter: Letter) -> tuple[str, str]:
    """Return the text and the HTML of a letter."""
    text, html = letter.get_body(("plain",)), letter.get_body(("html",))
    assert text is not None
    assert html is not None
    return str(text.get_content()), str(html.get_content())
