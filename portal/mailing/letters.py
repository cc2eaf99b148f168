"""Read a letter: the bytes of a mail become a `Letter`, which is plain data.

`read` takes any bytes. Each part of the work passes over its text once and is bounded, so that nobody can stop the
reader with a letter. It raises `Unreadable` with a sentence for people, and nothing else. No feature is known here:
callers decide which desk and which ticket a letter belongs to, and whether to believe its sender.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from portal.mailing import letter_headers, mime
from portal.mailing.letter_headers import Address
from portal.mailing.mime import MimePart

SIZE_LIMIT: Final = 25 * 1024 * 1024  # bytes of a letter
TEXT_LIMIT: Final = 200_000  # characters of the visible text, and of the folded
MARKER: Final = "Please reply above this line"  # in mail that we send; a reply holds our text from there on


class Unreadable(ValueError):
    """A letter cannot be read; the message is a sentence for people."""


class LetterPart(NamedTuple):
    """A file that came with a letter. The size is in bytes."""

    name: str
    type: str
    size: int


class DeliveryReport(NamedTuple):
    """A report that a letter of ours was delivered late, or not at all (RFC 3464)."""

    recipient: str
    status: str  # of RFC 3463, such as 5.1.1
    original_message_id: str


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
        raise Unreadable("The letter is larger than 25 MB.")
    if not raw.strip():
        raise Unreadable("The letter is empty.")
    root, remarks = mime.split(raw)
    headers = root.headers
    headers.assume_charset(root.parameters.get("charset", ""))
    text, more = _text(root)
    ids = letter_headers.message_ids
    return Letter(
        message_id=next(iter(ids(headers.raw("message-id"))), ""),
        in_reply_to=next(iter(ids(headers.raw("in-reply-to"))), ""),
        references=ids(headers.raw("references")),
        sender=letter_headers.address(headers.raw("from")),
        reply_to=letter_headers.addresses(headers.raw("reply-to")),
        to=letter_headers.addresses(headers.raw("to")),
        cc=letter_headers.addresses(headers.raw("cc")),
        original_sender=letter_headers.address(headers.raw("x-original-from") or headers.raw("x-original-sender")),
        subject=headers.text("subject"),
        date=letter_headers.date(headers.raw("date")),
        text=text[:TEXT_LIMIT],
        folded="",
        html="",
        has_remote_images=False,
        automatic="",
        report=None,
        attachments=tuple(_attachments(root)),
        remarks=tuple(dict.fromkeys([*remarks, *more])),
        digest=_digest(root),
        auto_submitted=headers.text("auto-submitted"),
        precedence=headers.text("precedence"),
        list_id=headers.text("list-id"),
        return_path=headers.raw("return-path"),
        x_loop=headers.text("x-loop"),
    )


def _text(root: MimePart) -> tuple[str, list[str]]:
    texts = [part.text() for part in root.leaves() if part.type == "text/plain" and part.disposition != "attachment"]
    return "\n\n".join(one.text for one in texts).strip(), [one.remark for one in texts if one.remark]


def _attachments(root: MimePart) -> list[LetterPart]:
    return [
        LetterPart(part.name, part.type, len(part.content))
        for part in root.leaves()
        if part.disposition == "attachment" or not part.type.startswith("text/")
    ]


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
        content = b"\n".join(line.rstrip() for line in part.content.splitlines()).strip()
        found.update(part.type.encode() + b"\0" + hashlib.sha256(content).digest())
    return found.hexdigest()
