"""Tell whether two words are forms of one: stem both by Snowball's rules for English, German, French or Russian.

Nothing is stemmed in the index. A search asks it for the range of terms that begin like the word, and takes those with
the same stem in some language. So the rules may change without a word being indexed anew.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import snowballstemmer

LEAST: Final = 3  # letters of a word that has other forms, and that all of them begin with
_LATIN: Final = ("english", "german", "french")
_CYRILLIC: Final = ("russian",)
_OTHER_LAST: Final = {"e": "i", "y": "i", "i": "y"}
_stemmers: dict[str, Any] = {}
_lock: Final = threading.Lock()  # a stemmer holds the word that it is at work on


def stems(word: str) -> dict[str, str]:
    """Return the stem of a folded word by language of its script; nothing for what has no other forms."""
    if len(word) < LEAST or not word.isalpha():
        return {}
    languages = _CYRILLIC if "а" <= word[0] <= "я" else _LATIN if word.isascii() else ()
    return {language: _stem(language, word) for language in languages}


def has_stem(word: str, found: Mapping[str, str]) -> bool:
    """Tell whether a folded word has one of these stems, which are those of another word (`stems`)."""
    if len(word) < LEAST or not word.isalpha():
        return False
    # Stemming takes long, and a stem is its word's beginning but for the last letter: most words need not be stemmed.
    return any(word.startswith(stem[:-1]) and _stem(language, word) == stem for language, stem in found.items())


def beginnings(word: str) -> list[str]:
    """Return what the forms of a folded word begin with: the word itself where it has no other forms.

    The last letter of a stem may be another one in a form: possible and possibility, using and use, tries and try.
    """
    found = list(stems(word).values())
    if not found:
        return [word]
    common = min(_shared(word, stem) for stem in found)
    first = word[: max(LEAST, min(common, min(map(len, found)) - 1))]
    short = {stem for stem in found if len(stem) <= LEAST}
    others = {stem[:-1] + last for stem in short for last in _OTHER_LAST.get(stem[-1], "")}
    others |= {stem for stem in found if not stem.startswith(first)}
    return [first, *sorted(other for other in others if not other.startswith(first))]


def _shared(one: str, other: str) -> int:
    """Count the letters with which both begin."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


@lru_cache(maxsize=50_000)
def _stem(language: str, word: str) -> str:
    with _lock:
        if language not in _stemmers:
            _stemmers[language] = snowballstemmer.stemmer(language)
        return str(_stemmers[language].stemWord(word))
