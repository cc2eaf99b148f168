"""Read the packed RTF in which Outlook writes letters of the kind "Rich Text" (MS-OXRTFCP), as plain text."""

from __future__ import annotations

import re
import struct
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


def text_of(packed: bytes) -> str:
    """Return the text of packed RTF, "" where it is none."""
    return _text(_unpacked(packed).decode("latin-1")).strip()


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


def _text(source: str) -> str:
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
