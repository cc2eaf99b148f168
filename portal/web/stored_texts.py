"""Show sentences that were stored in English, such as the reason why a letter waits, in the language of the page."""

from __future__ import annotations

import re
from typing import Final

from django.utils.translation import gettext

from portal.web import locales

_SENTENCES: Final = re.compile(r"(?<=[.!?:]) ")
_messages: list[str] = []


def declare(message: str) -> str:
    """Return a message that is stored with values in it, so that `stored_text` knows it.

    Mark it with `gettext_noop`. One without values need not be declared.
    """
    _messages.append(message)
    return message


def stored_text(text: str) -> str:
    """Return a stored text of ours in the language of the page, sentence by sentence; unknown ones as they are."""
    if not text or locales.current().language == locales.ENGLISH:
        return text
    if (said := gettext(text)) != text or (said := locales.from_stored(text, _messages)) != text:
        return said
    sentences = _SENTENCES.split(text)
    return " ".join(map(stored_text, sentences)) if len(sentences) > 1 else text
