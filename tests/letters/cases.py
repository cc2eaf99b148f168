"""One letter of our own making, and the result that is expected of reading it."""

from __future__ import annotations

import base64
import quopri
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from portal.mailing.html_text import names
from portal.mailing.letters import Letter


@dataclass(frozen=True)
class Case:
    name: str
    raw: bytes
    expected: dict[str, Any] = field(repr=False)


def case(name: str, raw: bytes | str, **expected: Any) -> Case:
    """A letter that Jane wrote by hand, unless it is said otherwise."""
    return Case(
        name,
        raw.encode("utf-8", "surrogatepass") if isinstance(raw, str) else raw,
        {"sender": "jane@example.org", "kind": ""} | expected,
    )


def seen(letter: Letter) -> dict[str, Any]:
    """The sides of a letter that a case may expect something of."""
    return {
        "sender": letter.sender.address,
        "who": letter.sender.name,
        "kind": letter.automatic_kind,
        "to": [one.address for one in letter.to],
        "to_names": [one.name for one in letter.to],
        "cc": [one.address for one in letter.cc],
        "reply_to": [one.address for one in letter.reply_to],
        "original": letter.original_sender.address,
        "id": letter.message_id,
        "in_reply_to": letter.in_reply_to,
        "references": list(letter.references),
        "subject": letter.subject,
        "date": letter.date.isoformat() if letter.date else None,
        "text": letter.text,
        "folded": letter.folded,
        "html": letter.html,
        "remote_images": letter.has_remote_images,
        "files": [(one.name, one.type) for one in letter.attachments],
        "sizes": [one.size for one in letter.attachments],
        "remarks": list(letter.remarks),
        "report": letter.report and (letter.report.recipient, letter.report.status, letter.report.original_message_id),
    }


SAFE_TAGS = names(
    "a abbr address article aside b big blockquote br caption center cite code dd del div dl dt em fieldset figcaption figure "
    "font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main nav ol p pre q s samp section small span strike strong "
    "sub sup table tbody td tfoot th thead tr tt u ul var",
)
SAFE_ATTRIBUTES = names(
    "align alt color colspan data-src dir height href lang rel rowspan start style target title valign width",
)
SAFE_STYLE = re.compile(
    r"(?:(?:color|background-color|font-weight|font-style|text-decoration|text-align):[^:;()]*(?:\([^():/]*\))?;?)*"
)


class Unsafe(HTMLParser):
    """Collects all that HTML from a stranger must not hold. Python's parser is another than the one that made it."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in SAFE_TAGS:
            self.found.append(tag)
        for name, value in attrs:
            if name not in SAFE_ATTRIBUTES:
                self.found.append(f"{tag} {name}")
            elif name == "href" and not (value or "").lower().startswith(("http://", "https://", "mailto:", "tel:")):
                self.found.append(f"href {value}")
            elif name == "style" and not SAFE_STYLE.fullmatch(value or ""):
                self.found.append(f"style {value}")

    def handle_comment(self, data: str) -> None:
        self.found.append(f"comment {data}")


HEADERS = {
    "From": "Jane <jane@example.org>",
    "To": "help@desk.example",
    "Subject": "Printer",
    "Message-ID": "<1@example.org>",
}


def head(**changed: str) -> str:
    """Headers of a letter: `head(Subject="x", Content_Type="y")`. An empty value leaves one out."""
    told = HEADERS | {name.replace("_", "-"): value for name, value in changed.items()}
    return "".join(f"{name}: {value}\n" for name, value in told.items() if value)


def plain(text: str = "Hello", **changed: str) -> str:
    """A letter of plain text."""
    return f"{head(**changed)}\n{text}"


def encoded(content: bytes, encoding: str) -> bytes:
    """Content in a transfer encoding."""
    if encoding == "base64":
        return base64.encodebytes(content)
    return quopri.encodestring(content) if encoding == "quoted-printable" else content


def part(type_: str, content: bytes | str, *, encoding: str = "", disposition: str = "", extra: str = "") -> bytes:
    """A part of a letter, with its headers."""
    raw = content.encode() if isinstance(content, str) else content
    lines = [f"Content-Type: {type_}"] if type_ else []
    lines += [f"Content-Disposition: {disposition}"] if disposition else []
    lines += [f"Content-Transfer-Encoding: {encoding}"] if encoding else []
    lines += [extra] if extra else []
    return "".join(f"{line}\n" for line in lines).encode() + b"\n" + encoded(raw, encoding)


def joined(kind: str, *parts: bytes, boundary: str = "b1", parameters: str = "") -> bytes:
    """A container of parts, with its header."""
    inner = b"".join(b"--" + boundary.encode() + b"\n" + one + b"\n" for one in parts)
    top = f'Content-Type: multipart/{kind}; boundary="{boundary}"{parameters}\n\n'
    return top.encode() + inner + f"--{boundary}--\n".encode()


def letter(content: bytes, **changed: str) -> bytes:
    """A letter made of a part or a container."""
    return head(**changed).encode() + content


TEXT = part("text/plain; charset=utf-8", "Hello")
HTML = part("text/html; charset=utf-8", "<p>Hello <b>there</b></p>")
PDF = part('application/pdf; name="a.pdf"', b"%PDF-1", encoding="base64", disposition='attachment; filename="a.pdf"')
