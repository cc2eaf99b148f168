"""Answer which tickets have a word by reading all of their texts: slow, short, and right.

It shares no code with the tokenizer. A word is a run of letters and digits; of a name in camel case its humps are words
too. Where words are said to be the same in other forms, Snowball's own stemmers say so.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import snowballstemmer

from proofs.search.stored_tickets import StoredTicket

_LANGUAGES: Final = ("english", "german", "french")
_RUN: Final = re.compile(r"[^\W_]+")
_ENDING: Final = re.compile(r"(?<=\w)['\u2019]\w(?!\w)")
_HUMP: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class PlainRecount:
    """Hold for each word of the stored texts the numbers of the tickets that have it."""

    def __init__(self, tickets: Iterable[StoredTicket], *, with_notes: bool = True) -> None:
        self._tickets: dict[str, set[int]] = defaultdict(set)
        self._texts: dict[int, list[str]] = {}
        for ticket in tickets:
            self._texts[ticket.number] = ticket.texts(with_notes=with_notes)
            for word in (form for text in self._texts[ticket.number] for forms in _runs(text) for form in forms):
                self._tickets[word].add(ticket.number)
        self._stemmers = [snowballstemmer.stemmer(language) for language in _LANGUAGES]
        self._by_stem: list[dict[str, set[str]]] = []
        for stemmer in self._stemmers:
            stems: dict[str, set[str]] = defaultdict(set)
            for word in self._tickets:
                stems[stemmer.stemWord(word)].add(word)
            self._by_stem.append(stems)

    def having(self, word: str) -> set[int]:
        """Return the tickets that have exactly this word."""
        return set(self._tickets.get(word, ()))

    def beginning(self, prefix: str) -> set[int]:
        """Return the tickets that have a word that begins so."""
        return self._having_any(word for word in self._tickets if word.startswith(prefix))

    def inflected(self, word: str) -> set[int]:
        """Return the tickets that have the word in any of its forms, in any of the languages."""
        forms = {word}
        for stemmer, stems in zip(self._stemmers, self._by_stem, strict=True):
            forms |= stems.get(stemmer.stemWord(word), set())
        return self._having_any(forms)

    def in_a_row(self, words: Sequence[str]) -> set[int]:
        """Return the tickets that have these words one behind the other in one text, as words or as humps of names."""
        likely = set.intersection(*(self.having(word) for word in words))
        found = {number for number in likely if any(_has_row(text, words) for text in self._texts[number])}
        # A single letter behind an apostrophe, as in "that's another", stands between no two words.
        bare = {number: [_ENDING.sub("", text) for text in self._texts[number]] for number in likely - found}
        return found | {number for number, texts in bare.items() if any(_has_row(text, words) for text in texts)}

    def _having_any(self, words: Iterable[str]) -> set[int]:
        return set().union(*(self._tickets.get(word, ()) for word in words))


def _runs(text: str) -> Iterator[set[str]]:
    """Yield the forms of each word of a text, in order: the word itself, and its humps."""
    for run in _RUN.findall(unicodedata.normalize("NFKC", text)):
        humps = _HUMP.findall(run)
        yield {_folded(run)} | ({_folded(hump) for hump in humps} if len(humps) > 1 else set())


def _has_row(text: str, words: Sequence[str]) -> bool:
    runs = list(_runs(text))
    starts = range(len(runs) - len(words) + 1)
    return any(all(word in runs[start + n] for n, word in enumerate(words)) for start in starts)


def _folded(word: str) -> str:
    bare = "".join(char for char in unicodedata.normalize("NFD", word) if not unicodedata.combining(char))
    return bare.casefold()
