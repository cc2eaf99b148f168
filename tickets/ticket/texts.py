"""Bring what people and programs send into the one form in which tickets store and compare it, and find mentions."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from portal import plain_text

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
    return " ".join(unicodedata.normalize("NFC", plain_text.visible(block(text))).split())


def word(text: str) -> str:
    """Return a word that is compared, as tags are: lower case, compatible characters made one, nothing invisible in it.

    White space inside becomes a hyphen.
    """
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", block(text)).casefold())
    return "-".join(plain_text.visible(plain).split())


def mentions(text: str) -> list[int]:
    """Return where the names begin that a text mentions, each just behind its "@". Whom they mean, tickets/notices
    looks up."""
    return [found.end() for found in _MENTION.finditer(text)]
