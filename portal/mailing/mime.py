"""Split a letter into its parts (RFC 2045 to 2049).

The parser of the standard library asks each line for each open boundary: 100 nested parts and 25 MB of short lines
take minutes, and 500 nested messages exceed its recursion limit. This one looks for each boundary once, at most
20 levels deep.
"""

from __future__ import annotations

import binascii
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import Final

from django.utils.translation import gettext_noop

from portal.mailing import charsets
from portal.mailing.letter_headers import Headers, base64_bytes, read_head

DEPTH_LIMIT: Final = 20
PARTS_LIMIT: Final = 500
_LOOKS_LIMIT: Final = 20_000  # places that may be a boundary
_TYPE: Final = re.compile(r"[\w!#$&^.+-]{1,80}/[\w!#$&^.+-]{1,80}", re.ASCII)
_FIRST_BOUNDARY: Final = re.compile(rb"\s{0,20}--([^\r\n]{1,200})\r?\n")


@dataclass(eq=False)
class MimePart:
    """A part of a letter: its headers, its type, and its children or its decoded content."""

    headers: Headers
    type: str
    parameters: dict[str, str]
    disposition: str = ""
    name: str = ""
    content: bytes = b""
    children: list[MimePart] = field(default_factory=list)

    def text(self) -> charsets.Decoded:
        return charsets.decode(self.content, self.parameters.get("charset", ""))

    def leaves(self) -> Iterator[MimePart]:
        """Yield this part or the parts below it that have none below them, in order."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


@dataclass
class _Budget:
    parts: int = PARTS_LIMIT
    looks: int = _LOOKS_LIMIT


def split(data: bytes) -> tuple[MimePart, tuple[str, ...]]:
    """Return a letter as its outermost part, and sentences about what was not read."""
    if b"\n" not in data[: 64 * 1024]:
        data = data.replace(b"\r", b"\n")
    start = len(data) - len(data.lstrip(b"\r\n"))
    budget = _Budget()
    part = _part(data, start, len(data), budget, depth=0)
    exhausted = budget.parts <= 0 or budget.looks <= 0
    return part, (gettext_noop("The letter has more parts than can be shown."),) if exhausted else ()


def _part(data: bytes, start: int, end: int, budget: _Budget, *, depth: int, usual: str = "text/plain") -> MimePart:
    budget.parts -= 1
    headers, body = read_head(data, start, end)
    part = _described(headers, usual)
    if depth >= DEPTH_LIMIT:
        budget.looks = 0
    elif part.type.startswith("multipart/"):
        of_children = "message/rfc822" if part.type == "multipart/digest" else "text/plain"
        for from_, to in _ranges(data, body, end, part, budget):
            if budget.parts <= 0:
                break
            part.children.append(_part(data, from_, to, budget, depth=depth + 1, usual=of_children))
    if not part.children:
        if part.type.startswith("multipart/"):
            part.type = "text/plain"  # a leaf that calls itself a container
        part.content = _decoded(data[body:end], headers)
    return part


def _described(headers: Headers, usual: str) -> MimePart:
    said, parameters = headers.parameters("content-type")
    type_ = said if _TYPE.fullmatch(said) else {"text": "text/plain", "html": "text/html"}.get(said, "")
    if not type_:
        # An encoded word in place of a type, "charset" without a type, or none at all.
        type_ = "application/octet-stream" if parameters.get("name") else usual
    disposition, more = headers.parameters("content-disposition")
    name = more.get("filename") or parameters.get("name") or ""
    if not name and disposition == "attachment":
        name = headers.text("content-description")
    return MimePart(headers, type_, parameters, disposition, name.replace("/", "_").replace("\\", "_")[:255])


def _ranges(data: bytes, start: int, end: int, part: MimePart, budget: _Budget) -> Iterator[tuple[int, int]]:
    boundary = part.parameters.get("boundary", "").encode("utf-8", "replace")
    if not boundary or data.find(b"--" + boundary, start, end) < 0:
        guess = _FIRST_BOUNDARY.match(data, start, end)
        if guess is None:
            return
        boundary = guess[1].rstrip()
    mark = b"--" + boundary
    begun: int | None = None
    at = start
    while budget.looks > 0 and (at := data.find(mark, at, end)) >= 0:
        budget.looks -= 1
        after, closes = _delimiter(data, at, at + len(mark), end, start)
        if after < 0:
            at += len(mark)
            continue
        if begun is not None:
            yield begun, _without_line_end(data, begun, at)
        begun, at = after, max(after - 1, at + len(mark))
        if closes:
            begun = None
            break
    if begun is not None and begun < end:
        yield begun, end  # no closing delimiter


def _delimiter(data: bytes, at: int, after_mark: int, end: int, start: int) -> tuple[int, bool]:
    """Return where the line of a delimiter ends, -1 where this is none, and whether it closes the container."""
    if at > start and data[at - 1] not in b"\r\n":
        return -1, False
    newline = data.find(b"\n", after_mark, min(end, after_mark + 200))
    rest = data[after_mark : newline if newline >= 0 else min(end, after_mark + 200)].strip()
    if rest not in (b"", b"--"):
        return -1, False
    return newline + 1 if newline >= 0 else end, rest == b"--"


def _without_line_end(data: bytes, start: int, end: int) -> int:
    """Leave out the line end before a delimiter: it belongs to the delimiter."""
    if end > start and data[end - 1] == 0x0A:
        end -= 1
    if end > start and data[end - 1] == 0x0D:
        end -= 1
    return end


def _decoded(body: bytes, headers: Headers) -> bytes:
    encoding = headers.raw("content-transfer-encoding").lower().strip("\"' ;")
    if encoding == "base64":
        return base64_bytes(body)
    if encoding == "quoted-printable":
        return binascii.a2b_qp(body)
    if encoding in ("x-uuencode", "uuencode", "x-uue"):
        return _uudecoded(body)
    return body  # 7bit, 8bit, binary, and misspelt ones such as 8bits


def _uudecoded(body: bytes) -> bytes:
    made = bytearray()
    lines = BytesIO(body)  # one line after the other: millions of short ones would fill the memory
    for line in lines:
        if line.startswith(b"begin "):
            break
    for line in lines:
        # A short line may say that it is a long one: zeros fill the rest.
        if line.strip() in (b"", b"end", b"`") or len(made) > len(body):
            break
        with contextlib.suppress(binascii.Error):
            made += binascii.a2b_uu(line)
    return bytes(made)
