"""Show sentences that were stored in English, such as the reason why a letter waits, in the language of the page."""

from __future__ import annotations

import re
from typing import Final

from django.utils.translation import gettext

from portal.web import locales

_PLACE: Final = re.compile(r"%\\\((\w+)\\\)s")  # of a value, in an escaped message
_SENTENCES: Final = re.compile(r"(?<=[.!?:]) ")
_patterns: dict[str, re.Pattern[str]] = {}


def declare(message: str) -> str:
    """Return a message that is stored with values in it, which is found again by its other words.

    Mark it with `gettext_noop`. One without values need not be declared.
    """
    _patterns[message] = re.compile(_PLACE.sub(r"(?P<\1>.+)", re.escape(message)), re.DOTALL)
    return message


def stored_text(text: str) -> str:
    """Return a stored text of ours in the language of the page, sentence by sentence; unknown ones as they are."""
    if not text or locales.current().language == locales.ENGLISH:
        return text
    if (said := gettext(text)) != text:
        return said
    for message, pattern in _patterns.items():
        if found := pattern.fullmatch(text):
            return gettext(message) % found.groupdict()
    sentences = _SENTENCES.split(text)
    return " ".join(map(stored_text, sentences)) if len(sentences) > 1 else text
