"""Mail on one machine, for development: read the mails that were written to files, and hand letters in by SMTP.

Source: Django, django/core/mail/backends/filebased.py: a file for each connection, and behind each mail a line of
hyphens.
"""

from __future__ import annotations

import smtplib
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import format_datetime, make_msgid, parseaddr
from pathlib import Path
from typing import Final

from portal import clock
from portal.errors import Invalid

SHOWN: Final = 50  # mails, the newest ones
_BETWEEN: Final = b"\n" + b"-" * 79 + b"\n"
_TIMEOUT: Final = 10  # seconds, of each step of the server


@dataclass(frozen=True)
class SentMail:
    """A mail that was written to a file. `html` is as it was sent: nothing in it has been made safe."""

    at: datetime
    sender: str
    to: str
    cc: str
    reply_to: str
    subject: str
    text: str
    html: str
    message_id: str
    references: str
    source: str
    files: tuple[str, ...]  # their names

    @property
    def answered_at(self) -> str:
        return parseaddr(self.reply_to or self.sender)[1]

    @property
    def answer_subject(self) -> str:
        return self.subject if self.subject.lower().startswith("re:") else f"Re: {self.subject}"

    @property
    def recipient(self) -> str:
        return parseaddr(self.to)[1]


def sent(folder: Path, *, most: int = SHOWN) -> list[SentMail]:
    """Return the last mails in a folder, newest first."""
    found: list[SentMail] = []
    for path in sorted(folder.glob("*.log"), key=_changed_at, reverse=True):
        with suppress(OSError):  # somebody empties the folder
            found += reversed([*_mails(path.read_bytes(), _changed_at(path))])
        if len(found) >= most:
            break
    return found[:most]


def _changed_at(path: Path) -> float:
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0


def _mails(content: bytes, at: float) -> Iterator[SentMail]:
    for raw in content.split(_BETWEEN):
        if raw.strip():
            yield _mail(raw, datetime.fromtimestamp(at, UTC))


def _mail(raw: bytes, at: datetime) -> SentMail:
    message: EmailMessage = message_from_bytes(raw, policy=policy.default)
    bodies = {kind: message.get_body((kind,)) for kind in ("plain", "html")}
    texts = {kind: str(body.get_content()) if body else "" for kind, body in bodies.items()}
    names = ("From", "To", "Cc", "Reply-To", "Subject", "Message-ID", "References")
    headers = [str(message.get(name, "")).strip() for name in names]
    sender, to, cc, reply_to, subject, message_id, references = headers
    return SentMail(
        at, sender, to, cc, reply_to, subject, texts["plain"], texts["html"], message_id, references,
        source=raw.decode("utf-8", "replace"),
        files=tuple(part.get_filename() or "no name" for part in message.iter_attachments()),
    )  # fmt: skip


def letter(
    *, sender: str, to: str, subject: str, text: str, answers: str = "", references: str = "", message_id: str = ""
) -> EmailMessage:
    """Return a letter as a mail program writes one. `answers` is the Message-ID of the mail that it answers."""
    made = EmailMessage(policy=policy.SMTP)
    made["From"], made["To"], made["Subject"] = sender, to, subject
    made["Date"] = format_datetime(clock.now())
    made["Message-ID"] = message_id or make_msgid(domain=parseaddr(sender)[1].rpartition("@")[2] or "localhost")
    if answers:
        made["In-Reply-To"], made["References"] = answers, f"{references} {answers}".strip()
    made.set_content(text)
    return made


def hand_in(server: str, raw: bytes, *, sender: str, recipients: Sequence[str]) -> None:
    """Give a letter to the mail server at `host:port`, as mail programs do. Raises Invalid with what went wrong."""
    host, _, port = server.rpartition(":")
    try:
        connection = smtplib.SMTP(host, int(port), timeout=_TIMEOUT)
        with closing(connection):
            connection.sendmail(sender, list(recipients), raw)
            connection.quit()
    except smtplib.SMTPRecipientsRefused as refused:
        code, answer = next(iter(refused.recipients.values()))
        raise Invalid(f"The mail server refused it: {code} {answer.decode(errors='replace')}", field="to") from refused
    except (smtplib.SMTPException, OSError, ValueError) as error:
        raise Invalid(f"The mail server at {server} did not take it: {error}") from error
