"""A language made by machine: each text is between marks and 40% longer. Words outside of them are not translated."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from gettext import NullTranslations
from html.parser import HTMLParser
from typing import Final
from unittest.mock import patch

from django.utils.translation import trans_real

from portal.web import locales

LEFT_TO_RIGHT: Final = "fi"  # codes that nothing else uses, so that no text is kept for them
RIGHT_TO_LEFT: Final = "he"
BEGIN, END = "⟦", "⟧"
_LONGER = 0.4
_PADDING = " łøñgér"


class PseudoLanguage(NullTranslations):
    """Stand for the catalogue of a language."""

    domain = "django"

    def __init__(self, code: str) -> None:
        super().__init__()
        self.code = code

    def gettext(self, message: str) -> str:
        more = math.ceil(len(re.sub(r"<[^>]*>|%\(\w+\)s", "", message)) * _LONGER)
        return f"{BEGIN}{message}{(_PADDING * more)[:more]}{END}"

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        return self.gettext(msgid1 if n == 1 else msgid2)

    def language(self) -> str:
        return self.code

    def to_language(self) -> str:
        return self.code


@contextmanager
def spoken(code: str = LEFT_TO_RIGHT) -> Iterator[dict[str, str]]:
    """Let the pages have the language inside; the result are the headers of a browser that asks for it."""
    with (
        patch.object(locales, "LANGUAGES", (*locales.LANGUAGES, code)),
        patch.dict(trans_real._translations, {code: PseudoLanguage(code)}),
    ):
        yield {"HTTP_ACCEPT_LANGUAGE": code}


def unmarked(page: str, data: re.Pattern[str]) -> tuple[list[str], list[str]]:
    """Return what people see or hear of a page in this language that has no translation: in its main part, and around.

    `data` are values that pages show. An element with translate="no" holds nothing but values.
    """
    reader = _Reader(data)
    reader.feed(page.replace("<wbr>", ""))
    reader.close()
    return reader.found[True], reader.found[False]


_VOID: Final = frozenset({"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"})
_SILENT: Final = frozenset({"script", "style", "code", "kbd", "pre"})
# The texts of scripts with their English, and choices of zones and countries, whose names are not ours.
_OF_VALUES: Final = frozenset({"words", "id_zone", "id_country", "default-zone"})
_SPOKEN: Final = ("title", "aria-label", "placeholder", "alt", "label", "data-label")


class _Reader(HTMLParser):
    """Collect words outside of the marks. A text may hold tags and other texts, so marks are counted across them."""

    def __init__(self, data: re.Pattern[str]) -> None:
        super().__init__(convert_charrefs=True)
        self.found: dict[bool, list[str]] = {True: [], False: []}
        self._data = data
        self._depth = 0
        self._silent: list[str] = []  # the element of values that is open, and those of its name in it
        self._is_main = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._is_main |= tag == "main"
        is_silent = tag in _SILENT or given.get("translate") == "no" or given.get("id") in _OF_VALUES
        if self._silent or is_silent:
            if tag not in _VOID and (not self._silent or self._silent[-1] == tag):
                self._silent.append(tag)
            return
        for name in _SPOKEN:
            self._look(given.get(name) or "", 0)

    def handle_endtag(self, tag: str) -> None:
        self._is_main &= tag != "main"
        if self._silent and self._silent[-1] == tag:
            self._silent.pop()

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._depth = self._look(data, self._depth)

    def _look(self, text: str, depth: int) -> int:
        outside = ""
        for piece in re.split(f"([{BEGIN}{END}])", text):
            if piece in (BEGIN, END):
                depth += 1 if piece == BEGIN else -1
            elif depth <= 0:
                outside += f" {piece}"
        left = " ".join(re.findall(r"[^\W\d_]{2,}", self._data.sub(" ", outside)))
        if left and left not in self.found[self._is_main]:
            self.found[self._is_main].append(left)
        return max(depth, 0)
