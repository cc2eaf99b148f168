"""Decide on a ticket's own text whether it matches, and say where its words stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tickets.search import tokenizer
from tickets.search.results import Where
from tickets.search.sought import Phrase, SearchQuery
from tickets.search.ticket_texts import TicketText
from tickets.search.tokenizer import Word
from tickets.search.word_matcher import WordMatcher, matchers


@dataclass(frozen=True, slots=True)
class Place:
    """Hold a stretch of a text where a phrase stands: its positions, and how much it counts (`word_matcher`)."""

    start: int
    end: int
    phrase: int
    weight: float


@dataclass(frozen=True)
class FieldMatch:
    """Hold a text of the ticket with the places of phrases in it, in order; `words` is how many it has, about."""

    where: Where
    text: str
    places: list[Place]
    words: int


@dataclass(frozen=True)
class TicketMatch:
    """Hold a ticket that matches, and its texts that have something of the query."""

    text: TicketText
    fields: list[FieldMatch] = field(default_factory=list)


class TextMatcher:
    """Match the texts of tickets with a query."""

    def __init__(self, query: SearchQuery) -> None:
        self._wanted = [_PhraseMatcher(n, phrase) for n, phrase in enumerate(query.phrases)]
        self._unwanted = [_PhraseMatcher(n, phrase) for n, phrase in enumerate(query.without)]

    def match(self, text: TicketText) -> TicketMatch | None:
        """Return where the phrases stand, or None where one is missing, or one stands there that must not."""
        fields = list(_fields(text))
        if any(_places(self._unwanted, body) for _, body in fields):
            return None
        found = [self._field(where, body) for where, body in fields]
        matched = TicketMatch(text, [one for one in found if one.places])
        phrases = {place.phrase for one in matched.fields for place in one.places}
        return matched if len(phrases) == len(self._wanted) else None

    def _field(self, where: Where, text: str) -> FieldMatch:
        return FieldMatch(where, text, _places(self._wanted, text), 1 + len(text) // _CHARACTERS_OF_A_WORD)


_CHARACTERS_OF_A_WORD = 6


class _PhraseMatcher:
    """Match one phrase; `number` is its place in the query."""

    def __init__(self, number: int, phrase: Phrase) -> None:
        self._number = number
        self._words = matchers(phrase)

    @cached_property
    def beginnings(self) -> list[str]:
        """What the phrase's longest word begins with, in any form: in a text without it there is no such phrase."""
        return max(self._words, key=lambda word: len(word.spellings[0])).beginnings()

    def places(self, words: Sequence[Word]) -> Iterator[Place]:
        first, others = self._words[0], self._words[1:]
        for at in range(len(words) - len(others)):
            weight = first.weight_of(words[at])
            if weight and all(_follows(other, words, at + n) for n, other in enumerate(others, 1)):
                yield Place(words[at].start, words[at + len(others)].end, self._number, weight)


def _follows(matcher: WordMatcher, words: Sequence[Word], at: int) -> bool:
    return bool(matcher.weight_of(words[at]))


def _places(phrases: Sequence[_PhraseMatcher], text: str) -> list[Place]:
    if text.isascii():  # then a word's letters are those that were folded, and need not be looked for twice
        lowered = text.lower()
        phrases = [phrase for phrase in phrases if any(begin in lowered for begin in phrase.beginnings)]
    if not phrases:
        return []
    words = tokenizer.words(text)
    return sorted((place for phrase in phrases for place in phrase.places(words)), key=lambda p: (p.start, p.end))


def _fields(text: TicketText) -> Iterator[tuple[Where, str]]:
    """The texts of a ticket one by one: no phrase goes from one to the next."""
    yield Where.TITLE, text.title
    yield Where.DESCRIPTION, text.description
    for entry in text.history:
        yield Where.NOTE if entry.is_note else Where.COMMENT, entry.body
    for tag in text.tags:
        yield Where.TAGS, tag
    yield Where.REQUESTER, text.requester_name
