"""Decide on a ticket's own text whether it matches, and say where its words stand."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tickets.search import tokenizer
from tickets.search.results import Where
from tickets.search.sought import Phrase, SearchQuery
from tickets.search.ticket_texts import TicketText
from tickets.search.tokenizer import Word
from tickets.search.word_matcher import matchers

_CHARACTERS_OF_A_WORD: Final = 12  # at most, on average
_UMLAUT: Final = re.compile("[aou]e")


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Hold a stretch of a text where a phrase stands: its bounds, and how much it counts (`word_matcher`)."""

    start: int
    end: int
    phrase: int
    weight: float


@dataclass(frozen=True)
class FieldMatch:
    """Hold a text of the ticket with the places of phrases in it, in order."""

    where: Where
    text: str
    places: list[Occurrence]


@dataclass(frozen=True)
class TicketMatch:
    """Hold a ticket with its texts that have something of the query. `is_whole` says that nothing is missing, `words`
    how many there are, about, in all texts of a kind."""

    text: TicketText
    fields: list[FieldMatch] = field(default_factory=list)
    is_whole: bool = True
    words: Mapping[Where, int] = field(default_factory=dict)


class TextMatcher:
    """Match the texts of tickets with a query."""

    def __init__(self, query: SearchQuery) -> None:
        self._wanted = [_PhraseMatcher(n, phrase) for n, phrase in enumerate(query.phrases)]
        self._needed = {n for n, phrase in enumerate(query.phrases) if phrase.is_exact}
        self._unwanted = [_PhraseMatcher(n, phrase) for n, phrase in enumerate(query.without)]

    def match(self, text: TicketText, elsewhere: Collection[int] = ()) -> TicketMatch | None:
        """Return where the phrases stand, or None where none does, one that was quoted is missing, or one stands there
        that must not. Those `elsewhere` are not missed."""
        fields = list(_fields(text))
        if any(_places(self._unwanted, body) for _, body in fields):
            return None
        found = [FieldMatch(where, body, places) for where, body in fields if (places := _places(self._wanted, body))]
        phrases = {place.phrase for one in found for place in one.places}
        if not self._needed <= {*phrases, *elsewhere} or (self._wanted and not phrases and not elsewhere):
            return None
        words: Counter[Where] = Counter()
        for where, body in fields:
            words[where] += max(1 + body.count(" "), len(body) // _CHARACTERS_OF_A_WORD)
        return TicketMatch(text, found, len(phrases) == len(self._wanted), words)


class _PhraseMatcher:
    """Match one phrase; `number` is its place in the query."""

    def __init__(self, number: int, phrase: Phrase) -> None:
        self._number = number
        self._words = matchers(phrase)
        self._beginnings = [tuple(map(tokenizer.bare, word.beginnings)) for word in self._words]
        self._has_umlauts = any(_UMLAUT.search(begin) for begins in self._beginnings for begin in begins)
        single = self._beginnings[0] if len(self._words) == 1 else ()
        self.single = re.compile("|".join(map(re.escape, single))) if single else None

    def may_stand_in(self, bare: str, *, had_umlauts: bool) -> bool:
        """Tell by a text that has lost its case and marks whether the phrase may stand in it: a may stand for ae."""
        return all(any(begin in bare for begin in begins) for begins in self._beginnings) or (
            self._has_umlauts and had_umlauts
        )

    def places(self, words: Sequence[Word]) -> Iterator[Occurrence]:
        """Return the places among the words of a text."""
        first, others = self._words[0], self._words[1:]
        for at in range(len(words) - len(others)):
            weight = first.weight_of(words[at])
            if weight and all(other.weight_of(words[at + n]) for n, other in enumerate(others, 1)):
                yield Occurrence(words[at].start, words[at + len(others)].end, self._number, weight)

    def places_in_ascii(self, text: str, lowered: str) -> Iterator[Occurrence]:
        """Return the places in a text in which only those words are looked at that may be meant."""
        end = -1
        for match in self.single.finditer(lowered) if self.single else ():
            if match.start() >= end and (word := tokenizer.word_at(text, match.start())):
                end = word.end
                if weight := self._words[0].weight_of(word):
                    yield Occurrence(word.start, word.end, self._number, weight)


def _places(phrases: Sequence[_PhraseMatcher], text: str) -> list[Occurrence]:
    text = tokenizer.without_symbols(text)
    bare = tokenizer.bare(text)
    phrases = [phrase for phrase in phrases if phrase.may_stand_in(bare, had_umlauts=not text.isascii())]
    found: list[Occurrence] = []
    if text.isascii():
        found += (place for phrase in phrases for place in phrase.places_in_ascii(text, bare))
        phrases = [phrase for phrase in phrases if not phrase.single]
    if phrases:
        words = tokenizer.words(text)
        found += (place for phrase in phrases for place in phrase.places(words))
    return sorted(found, key=lambda place: (place.start, place.end))


def _fields(text: TicketText) -> Iterator[tuple[Where, str]]:
    """The texts of a ticket one by one: no phrase goes from one to the next."""
    yield Where.TITLE, text.title
    yield Where.DESCRIPTION, text.description
    for entry in text.history:
        yield Where.NOTE if entry.is_note else Where.COMMENT, entry.body
    for tag in text.tags:
        yield Where.TAGS, tag
    yield Where.REQUESTER, text.requester_name
