"""Know English, German, French and Russian: which words say nothing by themselves, and which are forms of one
because Snowball's rules give both the same stem.

Nothing is stemmed in the index. A search asks it for the range of terms that begin like the word, and takes those with
the same stem in some language. So the rules may change without a word being indexed anew.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

_ENGLISH: Final = (
    "a an and are as at be but by can do for from had has have he i if in is it its me my no not of on or our she so "
    "than that the their then there they this to was we were what when which who will with would you your"
)
_GERMAN: Final = (
    "aber als am auch auf aus bei das dem den der die du ein eine einem einen einer er es fur hat ich ihr im ist "
    "mit nicht oder sich sie sind uber um und von war wie wir zu zum zur"
)
_FRENCH: Final = (
    "au aux ce cette dans de du elle est et il je la le les mais nous ou par pas pour que qui sur un une vous"
)
_RUSSIAN: Final = "а без бы в вы для до и из или к как мы на не но о он она они от по с так то у что это я"
# Folded; changing them takes a new version of the tokenizer.
FUNCTION_WORDS: Final = frozenset(" ".join((_ENGLISH, _GERMAN, _FRENCH, _RUSSIAN)).split())

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
    import snowballstemmer  # the rules of all languages, of which most processes need none

    with _lock:
        if language not in _stemmers:
            _stemmers[language] = snowballstemmer.stemmer(language)
        return str(_stemmers[language].stemWord(word))
