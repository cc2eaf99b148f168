"""Read a letter: the bytes of a mail become a `Letter`, which is plain data.

`read` takes any bytes. Each part of the work passes over its text once and is bounded, so that nobody can stop the
reader with a letter. It raises `Unreadable` with a sentence for people, and nothing else. No feature is known here:
callers decide which desk and which ticket a letter belongs to, and whether to believe its sender.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.utils.translation import gettext_noop

from portal.mailing import automatic_letters, letter_body, letter_headers, mime, quote_phrases, quotes
from portal.mailing.automatic_letters import DeliveryReport, Kind
from portal.mailing.letter_body import LetterPart
from portal.mailing.letter_headers import Address
from portal.mailing.letter_html import images_allowed
from portal.mailing.mime import MimePart
from portal.mailing.quotes import MARKER

__all__ = ["MARKER", "Address", "DeliveryReport", "Letter", "LetterPart", "Unreadable", "images_allowed", "read"]

SIZE_LIMIT: Final = 25_000_000  # bytes of a letter
TEXT_LIMIT: Final = 200_000  # characters of the visible text, and of the folded


class Unreadable(ValueError):
    """A letter cannot be read; the message is a sentence for people."""


@dataclass(frozen=True)
class Letter:
    """A letter that was read.

    Message-IDs keep their angle brackets; addresses are in lower case. `text` is the part that people read first, and
    `folded` the quoted letters and the signature below it: together they are the whole text.
    """

    message_id: str
    in_reply_to: str
    references: tuple[str, ...]
    sender: Address
    is_sole_sender: bool  # no reader of the letter could take another address for its sender
    reply_to: tuple[Address, ...]
    to: tuple[Address, ...]
    cc: tuple[Address, ...]
    original_sender: Address  # where a forwarder or a mailing list has replaced From
    subject: str
    date: datetime | None
    text: str
    folded: str
    html: str  # safe to show; images are blocked until `images_allowed`
    has_remote_images: bool
    automatic: str  # a sentence about why nobody wrote this by hand, "" where somebody did
    automatic_kind: Kind
    report: DeliveryReport | None
    attachments: tuple[LetterPart, ...]
    remarks: tuple[str, ...]  # sentences about how the letter was read
    digest: str  # equal for the same letter, however often and on which ways it arrives
    auto_submitted: str
    precedence: str
    list_id: str
    return_path: str
    x_loop: str


def read(raw: bytes) -> Letter:
    """Read a letter. Raises Unreadable for an empty one and for one of more than 25 MB."""
    if len(raw) > SIZE_LIMIT:
        raise Unreadable(gettext_noop("The letter is larger than 25 MB."))
    if not raw.strip():
        raise Unreadable(gettext_noop("The letter is empty."))
    root, remarks = mime.split(raw)
    headers = root.headers
    headers.assume_charset(root.parameters.get("charset", ""))
    body = letter_body.body_of(root)
    content = letter_body.content_of(body)
    subject, sender = headers.text("subject"), letter_headers.address(headers.raw("from"))
    folded = quotes.fold(content.text, is_forwarded=quote_phrases.is_forward(subject))
    report = automatic_letters.report_of(root)
    automatic = automatic_letters.recognise(root, report)
    ids = letter_headers.message_ids
    return Letter(
        message_id=next(iter(ids(headers.raw("message-id"))), ""),
        in_reply_to=next(iter(ids(headers.raw("in-reply-to"))), ""),
        references=ids(headers.raw("references")),
        sender=sender,
        is_sole_sender=letter_headers.is_sole_sender(raw, headers, sender),
        reply_to=letter_headers.addresses(headers.raw("reply-to")),
        to=letter_headers.addresses(headers.raw("to")),
        cc=letter_headers.addresses(headers.raw("cc")),
        original_sender=letter_headers.address(headers.raw("x-original-from") or headers.raw("x-original-sender")),
        subject=subject,
        date=letter_headers.date(headers.raw("date")),
        text=folded.text[:TEXT_LIMIT],
        folded=folded.folded[:TEXT_LIMIT],
        html=content.html,
        has_remote_images=content.has_remote_images,
        automatic=automatic.sentence,
        automatic_kind=automatic.kind,
        report=report,
        attachments=tuple(body.attachments),
        remarks=tuple(dict.fromkeys([*remarks, *body.remarks, *_cut(folded)])),
        digest=_digest(root),
        auto_submitted=headers.text("auto-submitted"),
        precedence=headers.text("precedence"),
        list_id=headers.text("list-id"),
        return_path=headers.raw("return-path"),
        x_loop=headers.text("x-loop"),
    )


def _cut(folded: quotes.Folded) -> list[str]:
    is_cut = len(folded.text) > TEXT_LIMIT or len(folded.folded) > TEXT_LIMIT
    return [gettext_noop("The letter is long; its end is in the original only.")] if is_cut else []


def _digest(root: MimePart) -> str:
    """Return a digest of what a letter says. Lines of its way and encodings of its parts do not change it."""
    headers = root.headers
    found = hashlib.sha256()
    for one in (
        headers.raw("message-id"),
        letter_headers.address(headers.raw("from")).address,
        headers.text("subject"),
    ):
        found.update(one.encode("utf-8", "replace") + b"\0")
    for part in root.leaves():
        content = part.content.replace(b"\r\n", b"\n").strip()
        found.update(part.type.encode() + b"\0" + hashlib.sha256(content).digest())
    return found.hexdigest()
