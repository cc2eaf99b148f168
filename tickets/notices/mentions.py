"""Find the members whom a text mentions: "@Bob Example", or "@Bob" where only one member's name begins so.

Nothing but the text says whom it mentions, so that it can be written by hand, by mail and through the API.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from tenants.membership.members import ListedMember
from tickets.ticket import texts

_WORD: Final = re.compile(r"[\w'\u2019-]+")
_GOES_ON: Final = re.compile(r"\w")
MOST: Final = 50  # mentions in one text that are looked up


def mentioned(text: str, people: Sequence[ListedMember]) -> list[ListedMember]:
    """Return the members whom a text mentions, each once. Of two with the same name both are meant."""
    text = unicodedata.normalize("NFC", text)
    names = {person.id: _folded(person.name) for person in people}
    found: dict[str, ListedMember] = {}
    for begin in texts.mentions(text)[:MOST]:
        for person in _named(text, begin, people, names):
            found[person.id] = person
    return list(found.values())


def first_words(text: str) -> list[str]:
    """Return the words with which the names begin that a text may mention."""
    text = unicodedata.normalize("NFC", text)
    found = (_WORD.match(text, begin) for begin in texts.mentions(text)[:MOST])
    return [word[0] for word in found if word]


def _named(text: str, begin: int, people: Sequence[ListedMember], names: dict[str, str]) -> list[ListedMember]:
    """Return whom the longest name means that stands here, else the one whose first name does."""
    longest = max((len(name) for name in names.values()), default=0)
    here = _folded(text[begin : begin + longest + 1])
    whole = [one for one in people if _begins_with(here, names[one.id])]
    if whole:
        length = max(len(names[one.id]) for one in whole)
        return [one for one in whole if len(names[one.id]) == length]
    word = _WORD.match(text, begin)
    first = _folded(word[0]) if word else ""
    several = [one for one in people if names[one.id].partition(" ")[0] == first]
    return several if len(several) == 1 else []


def _begins_with(here: str, name: str) -> bool:
    return bool(name) and here.startswith(name) and not _GOES_ON.match(here, len(name))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()
