"""Turn bytes of a letter into text.

A letter often names the wrong character set, or none. The declared one is believed where it decodes, then UTF-8, which
hardly ever decodes by accident, then Windows-1252. Guesses are the last resort: they overrule valid text otherwise.
"""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

from charset_normalizer import from_bytes
from django.utils.translation import gettext_noop

from portal import plain_text

# Supersets that mail programs mean by these names, as in the Encoding Standard of the WHATWG.
UNNAMED: Final = gettext_noop("The letter does not name its character set; it was read as %(used)s.")
MISNAMED: Final = gettext_noop("The letter is not in the character set that it names; it was read as %(used)s.")
_MEANT: Final = {
    "ascii": "utf-8",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "big5": "cp950",
    "iso2022_jp": "iso2022_jp_ext",
}
# Names that Python does not know.
_ALIASES: Final = {
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "x-ms-cp932": "cp932",
    "x-gbk": "gb18030",
    "x-euc-jp": "euc_jp",
    "iso-8859-8-i": "iso8859-8",
    "iso-8859-6-i": "iso8859-6",
    "windows-874": "cp874",
    "cp-850": "cp850",
    "unicode-1-1-utf-7": "utf-7",
    "utf-8mb4": "utf-8",
    "utf8mb4": "utf-8",
    "x-mac-roman": "mac-roman",
    "ansi": "cp1252",
    "x-unknown": "utf-8",
    "unknown-8bit": "utf-8",
    "8bit": "utf-8",
    "default": "utf-8",
    "_iso-2022-jp$esc": "iso2022_jp",
}
# Codecs of Python that are no character sets. The time of "punycode" grows with the square of the length.
_REFUSED: Final = frozenset({"punycode", "idna", "unicode_escape", "raw_unicode_escape", "undefined", "mbcs", "oem"})
_SAMPLE: Final = 8 * 1024  # bytes from which a set is guessed
_GUESS_LEAST: Final = 100  # bytes beyond ASCII
_GUESS_SHARE: Final = 0.3  # of the bytes; Latin letters beyond ASCII are rarer in all languages
_BEYOND_ASCII: Final = bytes(range(128, 256))
_FALLBACK: Final = "cp1252"
_JAPANESE: Final = re.compile(rb"\x1b(?:\$[@B]|\([BJI])")
_HALVES: Final = re.compile("[\ud800-\udfff]")
_WRONG_SHARE: Final = 0.02  # of the characters; a letter with more of them in its declared set is in another
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufeff\ufffe\uffff]")
_MARK: Final = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """Return text with plain line ends and without control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    return _CONTROLS.sub("", text)


class Decoded(NamedTuple):
    """A text, and a sentence about how it was read where that was a guess."""

    text: str
    remark: str = ""


def codec_of(name: str) -> str | None:
    """Return the name of Python's codec for a character set, None for an unknown one."""
    name = name.strip().strip("\"'").lower().partition("*")[0][:60]
    try:
        found = codecs.lookup(_ALIASES.get(name, name)).name if name else None
    except (LookupError, ValueError):
        return None
    if found is None or found.replace("-", "_") in _REFUSED:
        return None
    return _MEANT.get(found, found)


def decode(data: bytes, declared: str = "") -> Decoded:
    """Return the text of bytes in a declared character set. Never raises; unreadable bytes become U+FFFD."""
    codec = codec_of(declared)
    # Japanese letters of 7 bits decode as UTF-8, too.
    if codec in (None, "utf-8") and _JAPANESE.search(data) and (found := _strict(data, "iso2022_jp_ext")) is not None:
        return Decoded(found)
    if codec and (found := _strict(data, codec)) is not None:
        return Decoded(found)
    if codec != "utf-8" and (found := _strict(data, "utf-8")) is not None:
        return Decoded(found, _guessed("UTF-8", declared) if codec else "")
    if codec and (text := _replaced(data, codec)).count(_MARK) <= len(text) * _WRONG_SHARE:
        return Decoded(text, gettext_noop("Some characters of the letter could not be read."))
    if guess := _recognised(data):
        return Decoded(_replaced(data, guess), _guessed(guess, declared))
    return Decoded(_replaced(data, _FALLBACK), _guessed("Windows-1252", declared))


def _recognised(data: bytes) -> str:
    """Return the codec of a long text in another script than the Latin one, "" where none is recognised.

    Sets for Latin letters differ in so few characters that guesses among them are often wrong.
    """
    sample = data[:_SAMPLE]
    beyond = len(sample) - len(sample.translate(None, _BEYOND_ASCII))
    if beyond < _GUESS_LEAST or beyond < len(sample) * _GUESS_SHARE:
        return ""
    found = from_bytes(sample).best()
    return found.encoding if found is not None else ""


def _strict(data: bytes, codec: str) -> str | None:
    """Return the text, None where the bytes are none in that codec, or one that holds half of a surrogate pair: UTF-7
    can say that, and nothing can store it."""
    try:
        text = data.decode(codec)
    except (UnicodeError, LookupError, ValueError):
        return None
    return None if plain_text.has_halves(text) else text


def _replaced(data: bytes, codec: str) -> str:
    try:
        return _HALVES.sub(_MARK, data.decode(codec, "replace"))
    except (UnicodeError, LookupError, ValueError):  # UTF-16 without its mark, for example
        return data.decode("utf-8", "replace")


def _guessed(used: str, declared: str) -> str:
    if not declared:
        return UNNAMED % {"used": used}
    return MISNAMED % {"used": used}
