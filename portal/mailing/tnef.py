"""Open winmail.dat, the file in which Outlook and Exchange pack a letter (MS-OXTNEF).

Only the text and the files are read. The lengths in a file are not believed: whatever it says, each byte is passed
over once, and a letter in a letter is a file. Zip files are not unpacked, and packed RTF only up to 500 KB, and only
where a letter has no other text.
"""

from __future__ import annotations

import mimetypes
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from portal.mailing import charsets, rtf

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
        text = rtf.text_of(packed)
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
