"""Compare words: what the index has, or stands in a text, with a word that is sought."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Final

from tickets.search import stems, tokenizer
from tickets.search.parsed_query import Phrase
from tickets.search.tokenizer import Spelling

# How much a word counts that is as it was typed, another form of it, or only begins so.
EXACT: Final = 1.0
FORM: Final = 0.8
BEGINS: Final = 0.6
FORMS_LIMIT: Final = 3_000  # words that are stemmed for one sought word, because that is slow: no language has as many


@dataclass(frozen=True)
class WordMatcher:
    """Match one folded word in one of its spellings, perhaps in other forms, perhaps as a beginning."""

    spellings: tuple[str, ...]
    has_forms: bool = False
    is_beginning: bool = False
    is_spelt: bool = False  # as a word of the text itself: none inside a camelCase name counts
    _known: dict[str, float] = field(default_factory=dict, compare=False, repr=False)
    _stemmed: Iterator[int] = field(default_factory=count, compare=False, repr=False)

    def weight(self, folded: str) -> float:
        """Return how much a folded word counts: EXACT, FORM, BEGINS, or 0 where it is another word."""
        if folded not in self._known:
            self._known[folded] = self._weight(folded)
        return self._known[folded]

    def weight_of(self, spelling: Spelling) -> float:
        """Return how much a word of a text counts, by its best form, or by a word inside it where that may be."""
        forms, humps = spelling
        return max(map(self.weight, forms if self.is_spelt else (*forms, *humps)))

    @cached_property
    def beginnings(self) -> list[str]:
        """Return texts of which each word that counts begins with one."""
        return [b for s in self.spellings for b in (stems.beginnings(s) if self.has_forms else [s])]

    @cached_property
    def _stems(self) -> list[dict[str, str]]:
        return [stems.stems(spelling) for spelling in self.spellings]

    def _weight(self, folded: str) -> float:
        if folded in self.spellings:
            return EXACT
        if self.has_forms and self._is_form(folded):
            return FORM
        return BEGINS if self.is_beginning and folded.startswith(self.spellings) else 0.0

    def _is_form(self, folded: str) -> bool:
        if not folded.isalpha() or not folded.startswith(tuple(self.beginnings)):
            return False
        return next(self._stemmed) < FORMS_LIMIT and any(stems.has_stem(folded, found) for found in self._stems)


def matchers(phrase: Phrase, version: int = tokenizer.VERSION) -> tuple[WordMatcher, ...]:
    """Return a matcher for each word of a phrase, in order. Only a word that stands alone has other forms."""
    found = tokenizer.words(phrase.text, version)
    last = len(found) - 1
    return tuple(
        WordMatcher(
            word.folded,
            has_forms=not last and not phrase.is_exact,
            is_beginning=phrase.is_prefix and at == last,
            is_spelt=phrase.is_exact and not phrase.is_prefix,
        )
        for at, word in enumerate(found)
    )
