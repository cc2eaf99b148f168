"""Recognise and remove characters that a short text such as a name must not hold.

They are control characters, line separators, marks that turn the reading direction around, and characters of no
width. Joiners (U+200C, U+200D) are allowed, because Persian words and many emoji need them.

Source: Unicode Technical Report 36, "Unicode Security Considerations", on bidirectional text spoofing.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

_CONTROLS: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
# Letters and symbols by category that nevertheless show nothing: Hangul fillers, the blank Braille pattern.
_BLANK_LETTERS: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5")
# What begins like a link, a mail address, and a host with a path or port.
_LINK: Final = re.compile(r"(?i)[a-z][a-z0-9+.-]*:/|mailto:|\bwww\.\w|\w@[\w-]+\.\w|\w\.\w{2,}[/:?#]\S")
# Behind these a program reads on in a host, an address or a link.
_LINKED: Final = re.compile(r"(?<=\w)[.\uff0e\u3002\uff61](?=\w{2})|(?i:\bmailto:)|:(?=//?\S)|(?<=\w)[@\uff20](?=\w)")
_BLANK_CATEGORIES: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
# Signs around Arabic, Syriac and Kaithi numbers are of the category of formats, but can be seen.
_SEEN_FORMATS: Final = frozenset(map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD)))
# Joiners that shape a word or an emoji stand between two characters beyond ASCII, or behind an Indic virama; the
# letters of a flag's region stand behind a black flag.
_SHAPING: Final = re.compile(
    "(?<=[^\x00-\x7f\u200c\u200d])[\u200c\u200d](?=[^\x00-\x7f\u200c\u200d])"
    "|(?<=[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca])[\u200c\u200d]"
    "|(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"
)
_HALVES: Final = re.compile("[\ud800-\udfff]")
_SHAPERS: Final = frozenset({"\u200c", "\u200d", *map(chr, range(0xE0030, 0xE0080))})


def is_blank(char: str) -> bool:
    """Tell whether a character shows nothing: white space, or one that is invisible."""
    if char in _SEEN_FORMATS:
        return False
    return char in _BLANK_LETTERS or unicodedata.category(char) in _BLANK_CATEGORIES


def has_visible_text(text: str) -> bool:
    """Tell whether anybody could see this text: it is not empty, and holds more than what is invisible."""
    return not all(map(is_blank, text))


def visible(text: str) -> str:
    """Return the text without what is invisible or turns its direction around, but for white space and what shapes a
    word or an emoji: joiners in Persian and Indic words, say."""
    spaced = text.replace("\u2800", " ")  # blank Braille pattern, the space of Braille
    rest = "".join(c for c in spaced if c.isspace() or not is_blank(c) or c in _SHAPERS)
    kept = {at for match in _SHAPING.finditer(rest) for at in range(*match.span())}
    return "".join(c for at, c in enumerate(rest) if at in kept or c.isspace() or not is_blank(c))


def name_fault(text: str) -> str:
    """Return why a text cannot be the name of a person, desk or key, "" where it can: it can be seen, nothing turns it
    around, and it is no link, because names stand in mails."""
    if not has_visible_text(text) or has_controls(text):
        return _("Use characters that can be seen.")
    if _LINK.search(unicodedata.normalize("NFKC", text).replace("\u3002", ".")):
        return _("Leave links and addresses out: names stand in e-mails.")
    return ""


def amount(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: "1 tenant", "2,000 tenants", "0 entries"."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def file_size(count: int, number: Callable[[int | float, int], str] = "{:,.{}f}".format) -> str:
    """Return a number of bytes as people read it: "6 bytes", "1.5 KB", "25 MB". As in all limits, 1,000 are a KB."""
    if count < 1000:
        return ngettext("%(num)s byte", "%(num)s bytes", count) % {"num": count}
    size, units = float(count), ["KB", "MB", "GB"]
    while (unit := units.pop(0)) and round(size := size / 1000, 1) >= 1000 and units:
        pass
    return f"{number(round(size), 0) if f'{size:.1f}'.endswith('.0') else number(size, 1)} {unit}"


def whole_number(text: str, *, digits: int = 9) -> int | None:
    """Return the number that a text from outside writes in at most so many digits, None for any other text.

    `int` and `str.isdigit` take the digits of all scripts, and `int` fails for more digits than Python reads.
    """
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


def named(text: str, *, limit: int) -> str:
    """Return a name for a mail: one line of at most `limit` characters, of which no mail program makes a link."""
    return without_controls(unlinked(text), limit=limit)


def unlinked(text: str) -> str:
    """Return a name that no program makes a link of: "evil. example" and "https: //" have a space more."""
    return _LINKED.sub(r"\g<0> ", text)


def mixes_scripts(text: str) -> bool:
    """Tell whether a word mixes letters of Latin, Greek and Cyrillic, many of which look alike: "\u0410cme" and "Acme".

    Source: Unicode Technical Standard 39, "Restriction-Level Detection": no level but the loosest allows such a word.
    """
    return any(len({_script(char) for char in word} - {""}) > 1 for word in re.findall(r"\w+", text))


def _script(char: str) -> str:
    first = unicodedata.name(char, "").partition(" ")[0]
    return first if first in ("LATIN", "GREEK", "CYRILLIC") else ""


def has_halves(text: str) -> bool:
    """Tell whether the text holds half of a surrogate pair, which no UTF-8 can, so nothing can store or show it."""
    return not text.isascii() and _HALVES.search(text) is not None


class HalfCharacter(ValueError):
    """A text holds half of a surrogate pair."""


def read_json(text: bytes | str, **options: Any) -> Any:
    """Return what a JSON text of a file says. Raises ValueError, HalfCharacter where one of its texts does."""
    text = text if isinstance(text, str) else text.decode()
    told = json.loads(text, **options)
    try:
        if "\\u" in text:
            json.dumps(told, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise HalfCharacter("it holds half of a character") from error
    return told


def has_controls(text: str) -> bool:
    """Tell whether the text holds a character that `without_controls` removes. A tab and a line end are such."""
    return _CONTROLS.search(text) is not None


def without_controls(text: str, *, limit: int) -> str:
    """Return the text as one line of at most `limit` characters, cut with an ellipsis where it was longer."""
    line = " ".join(_CONTROLS.sub(" ", text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


# What cannot be stored becomes this, which can be seen. Lines and words lose what is invisible, such as marks that turn
# the reading direction around; texts of several lines keep it.
REPLACEMENT: Final = "\ufffd"

# Control characters but tab and line feed, and halves of surrogate pairs, which no UTF-8 holds.
_UNSTORABLE: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LINE_ENDS: Final = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
# An "@" behind a letter is part of a mail address.
_MENTION: Final = re.compile(r"(?<![\w@.+/-])@(?=\w)")


def block(text: str) -> str:
    """Return a text of several lines, as comments and descriptions are: LF ends its lines, no white space around it."""
    return _UNSTORABLE.sub(REPLACEMENT, _LINE_ENDS.sub("\n", text)).strip()


def line(text: str) -> str:
    """Return a text of one line, as titles and names are: composed characters, single spaces, nothing invisible."""
    return " ".join(unicodedata.normalize("NFC", visible(block(text))).split())


def word(text: str) -> str:
    """Return a word that is compared, as tags are: lower case, compatible characters made one, nothing invisible in it.

    White space inside becomes a hyphen.
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", block(text)).casefold())
    return "-".join(visible(plain).split())


def mentions(text: str) -> list[int]:
    """Return where the names begin that a text mentions, each just behind its "@". Whom they mean, tickets/notices
    looks up."""
    return [found.end() for found in _MENTION.finditer(text)]
