"""Open winmail.dat, the file in which Outlook and Exchange pack a letter (MS-OXTNEF), and its packed RTF (MS-OXRTFCP).

Only the text and the files are read. The lengths in a file are not believed: whatever it says, each byte is passed
over once, and a letter in a letter is a file. Zip files are not unpacked, and packed RTF only up to 500 KB, and only
where a letter has no other text.
"""

from __future__ import annotations

import mimetypes
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from portal.mailing import charsets

_OUTPUT_LIMIT: Final = 500_000  # bytes; a byte of packed RTF can become nine
_DEPTH_LIMIT: Final = 500
_PACKED: Final = 0x75465A4C
_PLAIN: Final = 0x414C454D
# The words that a packed text may refer to before it has said any.
_DICTIONARY: Final = (
    rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor "
    rb"MS Sans SerifSymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
    + b"\r\n"
    + rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
)
_WINDOW: Final = 4096
_TOKEN: Final = re.compile(
    r"\\([a-zA-Z]{1,32})(-?[0-9]{1,9})? ?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z'])|([{}])|([^\\{}\r\n]+)", re.DOTALL
)
_SKIPPED: Final = frozenset(
    {"fonttbl", "colortbl", "stylesheet", "info", "pict", "object", "header", "footer", "listtable"}
)
_SIGNS: Final = {
    "par": "\n", "line": "\n", "sect": "\n", "page": "\n", "row": "\n", "tab": "\t", "cell": "  ", "emdash": "\u2014",
    "endash": "\u2013", "lquote": "\u2018", "rquote": "\u2019", "ldblquote": "\u201c", "rdblquote": "\u201d",
    "bullet": "\u2022",
}  # fmt: skip
_PLAIN_SIGNS: Final = {"~": " ", "_": "-", "\n": "\n", "\r": "\n", "\\": "\\", "{": "{", "}": "}"}


def text_of_rtf(packed: bytes) -> str:
    """Return the text of packed RTF, "" where it is none."""
    return _text_of_words(_unpacked(packed).decode("latin-1")).strip()


def _unpacked(packed: bytes) -> bytes:
    if len(packed) < 16:
        return b""
    size, kind = struct.unpack_from("<4xII", packed)
    if kind == _PLAIN:
        return packed[16 : 16 + min(size, _OUTPUT_LIMIT)]
    if kind != _PACKED:
        return b""
    out = bytearray(_DICTIONARY)
    begun, at = len(out), 16
    while at < len(packed) and len(out) < begun + _OUTPUT_LIMIT:
        flags = packed[at]
        at += 1
        for bit in range(8):
            if flags >> bit & 1:
                if at + 2 > len(packed):
                    return bytes(out[begun:])
                said = packed[at] << 8 | packed[at + 1]
                at += 2
                # The window is a ring: the distance back from here tells the place.
                back = (len(out) - (said >> 4)) % _WINDOW
                if not back or back > len(out):
                    return bytes(out[begun:])
                for _ in range((said & 15) + 2):
                    out.append(out[-back])
            elif at < len(packed):
                out.append(packed[at])
                at += 1
    return bytes(out[begun : begun + size])


def _text_of_words(source: str) -> str:
    if not source.startswith("{\\rtf"):
        return ""
    made: list[str] = []
    waiting = bytearray()  # characters of the code page: one may take two of them
    page, skips, unicode_skip = "cp1252", 0, 1
    groups: list[bool] = []  # for each open group, whether it is left out
    hidden = False
    for match in _TOKEN.finditer(source):
        word, number, code, sign, brace, plain = match.groups()
        if code and not hidden and not skips:
            waiting.append(int(code, 16))
            continue
        if waiting:
            made.append(charsets.decode(bytes(waiting), page).text)
            waiting.clear()
        if brace == "{" and len(groups) < _DEPTH_LIMIT:
            groups.append(hidden)
        elif brace == "}" and groups:
            hidden = groups.pop()
        elif word == "ansicpg":
            page = f"cp{number}"
        elif word == "uc":
            unicode_skip = min(int(number or 1), 8) if int(number or 1) >= 0 else 1
        elif word in _SKIPPED or sign == "*":
            hidden = True
        elif hidden:
            continue
        elif word == "u" and number:
            made.append(_character(int(number)))
            skips = unicode_skip
        elif code or skips:
            told = plain or ""
            made.append(told[skips:])
            skips = max(0, skips - (len(told) or 1))
        else:
            made.append(_SIGNS.get(word or "", "") or _PLAIN_SIGNS.get(sign or "", "") or plain or "")
    made.append(charsets.decode(bytes(waiting), page).text)
    return "".join(made).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _character(number: int) -> str:
    return chr(number % 0x10000)


_SIGNATURE: Final = 0x223E9F78
_HEAD: Final = struct.Struct("<BII")  # the level, the attribute with its type, the length
_U32: Final = struct.Struct("<I")
_ATTRIBUTES_LIMIT: Final = 20_000
_FILES_LIMIT: Final = 100

_BODY: Final = 0x800C
_FILE_DATA: Final = 0x800F
_FILE_TITLE: Final = 0x8010
_FILE_BEGINS: Final = 0x9002
_PROPERTIES: Final = 0x9003
_FILE_PROPERTIES: Final = 0x9005
_CODEPAGE: Final = 0x9007

_P_BODY: Final = 0x1000
_P_HTML: Final = 0x1013
_P_RTF: Final = 0x1009
_P_CODEPAGE: Final = 0x3FDE
_P_DISPLAY_NAME: Final = 0x3001
_P_DATA: Final = 0x3701
_P_NAME: Final = 0x3704
_P_LONG_NAME: Final = 0x3707
_P_TYPE: Final = 0x370E
_NAMES: Final = (_P_LONG_NAME, _P_NAME, _P_DISPLAY_NAME)

_FIXED: Final = {0x2: 4, 0xB: 4, 0x3: 4, 0x4: 4, 0xA: 4, 0x5: 8, 0x6: 8, 0x7: 8, 0x14: 8, 0x40: 8, 0x48: 16}
_SIZED: Final = frozenset({0xD, 0x1E, 0x1F, 0x102})
_MULTIPLE: Final = 0x1000
_UNICODE: Final = 0x1F
_NAMED: Final = 0x8000
_OBJECT_INTERFACE: Final = 16  # bytes before the data of an embedded object
_PAGES: Final = {20127: "ascii", 65001: "utf-8", 20866: "koi8-r", 21866: "koi8-u", 50220: "iso-2022-jp", 932: "cp932"}


@dataclass
class _File:
    title: bytes = b""
    data: bytes = b""
    properties: dict[int, str | bytes] = field(default_factory=dict)


@dataclass
class Opened:
    """The content of a winmail.dat. A file is its name, its type and its bytes."""

    text: str = ""
    html: str = ""
    files: list[tuple[str, str, bytes]] = field(default_factory=list)


def read(data: bytes) -> Opened | None:
    """Return the content of a winmail.dat, None where it is none."""
    if len(data) < 6 or _U32.unpack_from(data)[0] != _SIGNATURE:
        return None
    properties: dict[int, str | bytes] = {}
    files: list[_File] = []
    body, page = b"", 1252
    for name, value in _attributes(data):
        if name == _CODEPAGE and len(value) >= 4:
            page = _U32.unpack_from(value)[0]
        elif name == _BODY:
            body = value
        elif name == _PROPERTIES:
            properties |= dict(_properties(value, page))
        elif name == _FILE_BEGINS:
            files.append(_File())
        elif files and name == _FILE_TITLE:
            files[-1].title = value
        elif files and name == _FILE_DATA:
            files[-1].data = value
        elif files and name == _FILE_PROPERTIES:
            files[-1].properties |= dict(_properties(value, page))
    made = [_named(one, page, number) for number, one in enumerate(files[:_FILES_LIMIT], 1)]
    inner = _page_of(properties.get(_P_CODEPAGE)) or page
    text = _text(properties.get(_P_BODY, b"") or body, inner)
    html = _text(properties.get(_P_HTML, b""), inner)
    if not text and not html and isinstance(packed := properties.get(_P_RTF), bytes):
        text = text_of_rtf(packed)
    return Opened(
        text=text,
        html=html,
        files=[one for one in made if one[2]],
    )


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 6
    for _ in range(_ATTRIBUTES_LIMIT):
        if at + _HEAD.size > len(data):
            return
        _level, name, length = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield name & 0xFFFF, data[at : at + length]
        at += length + 2  # the checksum


def _properties(data: bytes, page: int) -> Iterator[tuple[int, str | bytes]]:
    """Yield properties of MAPI until one that cannot be read."""
    at = 4
    try:
        for _ in range(min(_U32.unpack_from(data)[0], _ATTRIBUTES_LIMIT)):
            kind, name = struct.unpack_from("<HH", data, at)
            at += 4
            if name >= _NAMED:
                at = _after_name(data, at)
            count = 1
            if kind & _MULTIPLE or kind in _SIZED:
                count = _U32.unpack_from(data, at)[0]
                at += 4
            kind &= ~_MULTIPLE
            if kind not in _FIXED and kind not in _SIZED:
                return
            for _one in range(min(count, _ATTRIBUTES_LIMIT)):
                size = _FIXED.get(kind, 0)
                if kind in _SIZED:
                    size = _U32.unpack_from(data, at)[0]
                    at += 4
                value = data[at : at + size]
                at += size + -size % 4
                yield name, _decoded(value, kind, page)
    except struct.error:
        return


def _after_name(data: bytes, at: int) -> int:
    """Return where a property goes on behind its GUID and its name."""
    has_text, number = struct.unpack_from("<II", data, at + 16)
    return at + 24 + (number + -number % 4 if has_text else 0)


def _decoded(value: bytes, kind: int, page: int) -> str | bytes:
    if kind == _UNICODE:
        return value.decode("utf-16-le", "replace").rstrip("\0")
    return _text(value, page) if kind == 0x1E else value


def _page_of(value: str | bytes | None) -> int | None:
    return _U32.unpack_from(value)[0] if isinstance(value, bytes) and len(value) >= 4 else None


def _text(value: str | bytes, page: int) -> str:
    if isinstance(value, str):
        return value
    return charsets.decode(value.rstrip(b"\0"), _PAGES.get(page, f"cp{page}")).text


def _named(one: _File, page: int, number: int) -> tuple[str, str, bytes]:
    said = next((name for key in _NAMES if (name := one.properties.get(key))), "") or _text(one.title, page)
    name = _text(said, page).replace("/", "_").replace("\\", "_").replace("\0", "")[:255] or f"file {number}"
    embedded = one.properties.get(_P_DATA, b"")
    data = one.data or (embedded[_OBJECT_INTERFACE:] if isinstance(embedded, bytes) else b"")
    told = one.properties.get(_P_TYPE, "")
    guessed = mimetypes.guess_type(name)[0] or "application/octet-stream"
    return name, _text(told, page) if told else guessed, data
