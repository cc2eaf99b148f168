"""Put together what a letter says from its parts: its text, its HTML, and the files that came with it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from django.utils.translation import gettext_noop

from portal.mailing import calendar_entries, charsets, letter_html, tnef
from portal.mailing.letter_headers import Headers, read_head
from portal.mailing.mime import MimePart

MANY_FILES: Final = gettext_noop("The letter has more than %(count)s files; the others are in the original only.")
_ATTACHMENTS_LIMIT: Final = 100
_CHARACTERS_LIMIT: Final = 1_000_000  # of all texts together
_META_CHARSET: Final = re.compile(rb"(?i)<meta[^>]{0,200}charset\s{0,5}=\s{0,5}[\"']?\s{0,5}([\w.:-]{1,40})")
_ENRICHED: Final = re.compile(r"</?[a-zA-Z][\w-]{0,40}>")
_PLACEHOLDERS: Final = ("this message requires html", "html content follows", "to view the message, please use an html")
_INLINE_TYPES: Final = frozenset({"text/plain", "text/html", "text/enriched", "text/richtext", "text/markdown"})
_SEALED: Final = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime", "application/pgp-encrypted"})
_TNEF_TYPES: Final = frozenset({"application/ms-tnef", "application/vnd.ms-tnef"})
# Parts that say something to programs only.
_SILENT: Final = frozenset({
    "application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature",
    "application/pgp-encrypted", "text/x-amp-html", "message/delivery-status", "message/global-delivery-status",
    "message/disposition-notification", "message/feedback-report",
})  # fmt: skip


@dataclass(frozen=True)
class LetterPart:
    """A file that came with a letter. The size is in bytes."""

    name: str
    type: str
    size: int
    content: bytes = field(repr=False, default=b"", compare=False)


class Block(NamedTuple):
    """A stretch of a letter: as text, as HTML as it came, or as both."""

    text: str = ""
    html: str = ""
    is_packed: bool = False  # it comes from a winmail.dat, which mostly repeats what stands beside it


@dataclass
class Body:
    """The content of a letter in order, and its files."""

    blocks: list[Block] = field(default_factory=list)
    attachments: list[LetterPart] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)


class Content(NamedTuple):
    """The text of a letter, and its HTML made safe, "" where it has none."""

    text: str
    html: str = ""
    has_remote_images: bool = False


def body_of(root: MimePart) -> Body:
    found = _read(root)
    beside = [block for block in found.blocks if not block.is_packed]
    if _says(beside) or any(block.html.strip() for block in beside):
        found.blocks = beside
    if any(part.type in _SEALED for part in root.leaves()):
        found.remarks.append(
            gettext_noop("The letter is encrypted or sealed; its content can be read in a mail program only.")
        )
    if len(found.attachments) > _ATTACHMENTS_LIMIT:
        del found.attachments[_ATTACHMENTS_LIMIT:]
        found.remarks.append(MANY_FILES % {"count": _ATTACHMENTS_LIMIT})
    return found


def content_of(body: Body) -> Content:
    """Return text and safe HTML of a letter. Adds a remark to `body` where it is cut."""
    if not any(block.html for block in body.blocks):
        return Content(_joined(block.text for block in body.blocks))
    shown = letter_html.read_html("\n".join(_rich(block) for block in body.blocks))
    if shown.is_cut:
        body.remarks.append(gettext_noop("The formatted letter is long; its end is in the original only."))
    if not any(block.text.strip() for block in body.blocks):
        return Content(charsets.clean(shown.text), shown.html, shown.has_remote_images)
    left = letter_html.INPUT_LIMIT
    texts = []
    for block in body.blocks:
        if not block.text.strip() and block.html:
            texts.append(letter_html.read_html(block.html[:left]).text)
            left = max(0, left - len(block.html))
        else:
            texts.append(block.text)
    return Content(_joined(texts), shown.html, shown.has_remote_images)


def _joined(texts: Iterable[str]) -> str:
    return "\n\n".join(text.strip("\r\n") for text in map(charsets.clean, texts) if text.strip())


def _rich(block: Block) -> str:
    return block.html or (letter_html.as_html(charsets.clean(block.text)) if block.text.strip() else "")


def _read(part: MimePart) -> Body:
    if not part.children:
        return _leaf(part)
    children = [_read(child) for child in part.children]
    if part.type == "multipart/alternative":
        return _alternative(children)
    return _sequence(children)


def _alternative(children: list[Body]) -> Body:
    """Return one content of several forms of it: the first text and the last HTML that say something."""
    made = _gathered(children)
    plain = [one.blocks for one in children if _says(one.blocks) and not any(block.html for block in one.blocks)]
    rich = [one.blocks for one in children if any(block.html.strip() for block in one.blocks)]
    real = [one for one in plain if not one[0].text.strip().casefold().startswith(_PLACEHOLDERS)] or (
        plain * (not rich)
    )
    if real and rich:
        made.blocks = [Block(_joined(block.text for block in real[0]), "\n".join(map(_rich, rich[-1])))]
    else:
        made.blocks = next(iter(real), rich[-1] if rich else [])
    return made


def _says(blocks: list[Block]) -> bool:
    return any(block.text.strip() for block in blocks)


def _sequence(children: list[Body]) -> Body:
    made = _gathered(children)
    made.blocks = [block for child in children for block in child.blocks]
    return made


def _gathered(children: list[Body]) -> Body:
    return Body(
        attachments=[one for child in children for one in child.attachments],
        remarks=[one for child in children for one in child.remarks],
    )


def _leaf(part: MimePart) -> Body:
    is_file = part.disposition == "attachment" or (part.name and part.type != "text/html" and not _is_text(part))
    if part.type in _INLINE_TYPES and not is_file:
        return _text(part)
    if part.type == "text/calendar":
        return _invitation(part)
    if part.type in _TNEF_TYPES or part.name.lower() == "winmail.dat":
        return _opened(part)
    if part.type in _SILENT and part.disposition != "attachment":
        return Body()
    return Body(attachments=[_file(part)])


def _is_text(part: MimePart) -> bool:
    """Tell whether a part with a name is text to read, as some programs name the letter itself."""
    return part.type == "text/plain" and part.disposition == "inline" and len(part.content) < 20_000


def _text(part: MimePart) -> Body:
    decoded = _decoded(part)
    remarks = [decoded.remark] if decoded.remark else []
    text = decoded.text[:_CHARACTERS_LIMIT]
    if part.type == "text/html":
        return Body([Block(html=decoded.text)], remarks=remarks)
    if len(decoded.text) > _CHARACTERS_LIMIT:
        remarks.append(gettext_noop("The letter is long; its end is in the original only."))
    if part.type in ("text/enriched", "text/richtext"):
        text = _ENRICHED.sub("", text).replace("<<", "<")
    elif part.parameters.get("format", "").lower() == "flowed":
        text = _unwrapped(charsets.clean(text), joins=part.parameters.get("delsp", "").lower() == "yes")
    return Body([Block(text)], remarks=remarks)


def _decoded(part: MimePart) -> charsets.Decoded:
    if part.type == "text/html" and not part.parameters.get("charset"):
        declared = _META_CHARSET.search(part.content[:4096])
        if declared:
            return charsets.decode(part.content, declared[1].decode("ascii", "ignore"))
    return part.text()


def _unwrapped(text: str, *, joins: bool) -> str:
    """Return text of RFC 3676 with its paragraphs on one line each."""
    made: list[str] = []
    open_depth = -1  # of the quote whose last line goes on
    for line in text.split("\n"):
        rest = line.lstrip(">")
        depth = len(line) - len(rest)
        rest = rest.removeprefix(" ")
        flows = rest.endswith(" ") and rest != "-- "
        if flows and joins:
            rest = rest[:-1]
        if depth == open_depth and rest != "-- ":
            made.append(rest)
        else:
            made.append(("\n" if made else "") + (">" * depth + " " if depth else "") + rest)
        open_depth = depth if flows else -1
    return "".join(made)


def _file(part: MimePart) -> LetterPart:
    name = part.name
    if part.type in ("message/rfc822", "message/global", "text/rfc822-headers"):
        name = name or f"{_subject_of(part) or 'letter'}.eml"
    return LetterPart(name, part.type, len(part.content), part.content)


def _subject_of(part: MimePart) -> str:
    headers: Headers = read_head(part.content, 0, len(part.content))[0]
    return headers.text("subject").replace("/", "_").replace("\\", "_")[:100]


def _invitation(part: MimePart) -> Body:
    found = calendar_entries.read(part.content)
    name = part.name or "invitation.ics"
    return Body(
        [Block(found)] if found else [],
        attachments=[LetterPart(name, part.type, len(part.content), part.content)],
        remarks=[] if found else [gettext_noop("The letter holds a calendar entry that could not be read.")],
    )


def _opened(part: MimePart) -> Body:
    """Open the file in which Outlook packs a letter and its attachments."""
    found = tnef.read(part.content)
    if found is None:
        return Body(
            attachments=[_file(part)],
            remarks=[gettext_noop("The letter came with a winmail.dat that could not be opened.")],
        )
    return Body(
        [Block(found.text, found.html, is_packed=True)] if found.text or found.html else [],
        attachments=[LetterPart(name, type_, len(content), content) for name, type_, content in found.files],
        remarks=[gettext_noop("Outlook packed parts of the letter into a winmail.dat, which was opened.")],
    )
