"""Say where in a text a mail address stands, and which characters around it belong to it.

All addresses of a text are found from left to right, each as long as it can be, and those that are equal to the one
that is looked for are its mentions. So neither a part of somebody else's address is one, nor hides one what stands
beside it: emphasis, a dash, dots. Texts are Markdown, and links are in them: an address is found as well where some of
its characters are written as HTML writes them, as links do, after a backslash, or in full width.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

# Not part of a local part here, though it may be in the standard: characters that stand around addresses far more often
# than in them, such as "=", "/", "'" and "*".
_WORD: Final = r"[^\W_]"  # a letter or a digit: an address begins with one, and so does each name of its domain
_LOCAL: Final = rf"(?<!{_WORD}){_WORD}(?:[\w+-]|\.(?!\.)){{0,63}}+"
_NEXT_NAME: Final = rf"(?:-(?:{_WORD}|-){{0,62}}(?<!-))?\."  # what leads to one more name of the domain
# The last name has letters alone, two of them at least. What an "@" follows is rather part of the next address.
_NAMES: Final = rf"{_WORD}++(?:{_NEXT_NAME}{_WORD}++)*{_NEXT_NAME}[^\W\d_]{{2,}}(?!{_WORD})"
_DOMAIN: Final = rf"(?:{_NAMES}(?!@{_WORD})|{_NAMES})"
_ADDRESS: Final = rf"{_LOCAL}@{_DOMAIN}"

_AT: Final = re.compile("@|\uff20|%40|&#|&commat;", re.IGNORECASE)  # without one of them there is no address
_SPELLED: Final = re.compile(
    r"&(?:#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]\w{1,31});|%[2-7][0-9a-f]|\\[!-/:-@\[-`{-~]|[\uff01-\uff5e]", re.IGNORECASE
)
_FULL_WIDTH: Final = 0xFEE0  # from an ASCII character to the one of full width


@dataclass(frozen=True)
class MailAddress:
    """An address that is looked for in texts, folded."""

    text: str

    def mentions(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where the address stands in a text, in whatever case: begin and end."""
        if "@" in self.text and not _AT.search(text):
            return
        plain = _PlainText.of(text)
        for found in self._pattern.finditer(plain.text):
            if found[0].casefold() == self.text:
                yield plain.place(found.start(), found.end())

    def is_in(self, text: str) -> bool:
        return next(self.mentions(text), None) is not None

    def replaced(self, text: str, name: str) -> str:
        """Return a text with this name in place of each mention."""
        parts, reached = [], 0
        for begin, end in self.mentions(text):
            parts += [text[reached:begin], name]
            reached = end
        return "".join((*parts, text[reached:]))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Return what finds all addresses. One of another form, such as `a@b`, is looked for by its letters first."""
        if re.fullmatch(_ADDRESS, self.text):
            return re.compile(_ADDRESS)
        before, behind = rf"(?<!{_WORD})(?<!{_WORD}[.+_-])", rf"(?!{_WORD})(?!{_NEXT_NAME}{_WORD})"
        return re.compile(rf"(?:{before}(?i:{re.escape(self.text)}){behind})|(?:{_ADDRESS})")


@dataclass(frozen=True)
class _PlainText:
    """A text in which each character is written as itself. Of each stretch, one character that was written otherwise or
    many that were not: where it begins here and in the text as it was, and where it ends there."""

    text: str
    begins: list[int]
    stretches: list[tuple[int, int, bool]]

    @classmethod
    def of(cls, text: str) -> _PlainText:
        parts: list[str] = []
        begins: list[int] = []
        stretches: list[tuple[int, int, bool]] = []
        length = reached = 0

        def add(part: str, begin: int, end: int, *, is_whole: bool) -> None:
            nonlocal length, reached
            begins.append(length)
            stretches.append((begin, end, is_whole))
            parts.append(part)
            length, reached = length + len(part), end

        for found in _SPELLED.finditer(text):
            if found.start() > reached:
                add(text[reached : found.start()], reached, found.start(), is_whole=False)
            add(_plain(found[0]), found.start(), found.end(), is_whole=True)
        add(text[reached:], reached, len(text), is_whole=False)
        return cls("".join(parts), begins, stretches)

    def place(self, begin: int, end: int) -> tuple[int, int]:
        """Return where in the text as it was a part of this one stands, which is not empty."""
        return self._there(begin)[0], self._there(end - 1)[1]

    def _there(self, position: int) -> tuple[int, int]:
        index = bisect_right(self.begins, position) - 1
        begin, end, is_whole = self.stretches[index]
        if is_whole:
            return begin, end
        at = begin + position - self.begins[index]
        return at, at + 1


def _plain(spelled: str) -> str:
    if spelled[0] == "&":
        return html.unescape(spelled)
    if spelled[0] == "%":
        return chr(int(spelled[1:], 16))
    return spelled[1] if spelled[0] == "\\" else chr(ord(spelled) - _FULL_WIDTH)
