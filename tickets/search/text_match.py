"""Decide on a ticket's own text whether it matches, and say where its words stand."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Final

from tickets.search import tokenizer
from tickets.search.index.fragments import NOTE
from tickets.search.results import Where
from tickets.search.search_query import Phrase, SearchQuery
from tickets.search.ticket_texts import TicketText
from tickets.search.tokenizer import Spelling
from tickets.ticket import custom_values
from tickets.ticket.stored import ActivityItem

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
        return [b for s in self.spellings for b in (tokenizer.beginnings(s) if self.has_forms else [s])]

    @cached_property
    def _stems(self) -> list[dict[str, str]]:
        return [tokenizer.stems(spelling) for spelling in self.spellings]

    def _weight(self, folded: str) -> float:
        if folded in self.spellings:
            return EXACT
        if self.has_forms and self._is_form(folded):
            return FORM
        return BEGINS if self.is_beginning and folded.startswith(self.spellings) else 0.0

    def _is_form(self, folded: str) -> bool:
        if not folded.isalpha() or not folded.startswith(tuple(self.beginnings)):
            return False
        return next(self._stemmed) < FORMS_LIMIT and any(tokenizer.has_stem(folded, found) for found in self._stems)


def matchers(phrase: Phrase) -> tuple[WordMatcher, ...]:
    """Return a matcher for each word of a phrase, in order. Only a word that stands alone has other forms."""
    found = tokenizer.words(phrase.text)
    last = len(found) - 1
    return tuple(
        WordMatcher(
            word.folded if phrase.is_exact else tokenizer.with_article(word.folded),
            has_forms=not last and not phrase.is_exact,
            is_beginning=phrase.is_prefix and at == last,
            is_spelt=phrase.is_exact and not phrase.is_prefix,
        )
        for at, word in enumerate(found)
    )


# --- texts ---


PLACES_LIMIT: Final = 200  # of one phrase in one text: beyond it a text is ranked and shown no better
_TRIES: Final = 200  # words that may be a sought one and are looked at by themselves; where there are more, all are
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
    """Hold a text of the ticket with the places of phrases in it, in order. `entry` is the one whose text it is."""

    where: Where
    text: str
    places: list[Occurrence]
    entry: ActivityItem | None = None


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
        self._phrases = len(query.phrases)
        self._wanted = _PhraseFinder(query.phrases, limit=PLACES_LIMIT)
        self._needed = {n for n, phrase in enumerate(query.phrases) if phrase.is_exact}
        self._unwanted = _PhraseFinder(query.without, limit=1)

    def match(self, text: TicketText, elsewhere: Collection[int] = ()) -> TicketMatch | None:
        """Return where the phrases stand, or None where none does, one that was quoted is missing, or one stands there
        that must not. Those `elsewhere` are not missed."""
        fields = list(_fields(text))
        plain = [tokenizer.without_symbols(body) for _, body, _ in fields]
        bare = [tokenizer.bare(body) for body in plain]
        if any(map(self._unwanted.places, plain, bare)):
            return None
        places = map(self._wanted.places, plain, bare)
        found = [
            FieldMatch(where, body, stand, entry)
            for (where, body, entry), stand in zip(fields, places, strict=True)
            if stand
        ]
        phrases = {place.phrase for one in found for place in one.places}
        if not self._needed <= {*phrases, *elsewhere} or (self._phrases and not phrases and not elsewhere):
            return None
        words: Counter[Where] = Counter()
        for where, body, _ in fields:
            words[where] += max(1 + body.count(" "), len(body) // _CHARACTERS_OF_A_WORD)
        return TicketMatch(text, found, len(phrases) == self._phrases, words)


class _PhraseMatcher:
    """Match one phrase; `number` is its place in the query, `end` the bit of its last word."""

    def __init__(self, number: int, phrase: Phrase) -> None:
        self._number = number
        self.words = matchers(phrase)
        self.end = 0
        begins = dict.fromkeys(tuple(map(tokenizer.bare, word.beginnings)) for word in self.words)
        self._beginnings = list(begins)
        self._has_umlauts = any(_UMLAUT.search(begin) for begins in self._beginnings for begin in begins)
        single = self._beginnings[0] if len(self.words) == 1 else ()
        self._single = re.compile("|".join(map(re.escape, single))) if single else None

    def may_stand_in(self, bare: str, *, had_umlauts: bool) -> bool:
        """Tell by a text that has lost its case and marks whether the phrase may stand in it: a may stand for ae."""
        return all(any(begin in bare for begin in begins) for begins in self._beginnings) or (
            self._has_umlauts and had_umlauts
        )

    def place(self, start: int, end: int, spelling: Spelling) -> Occurrence:
        """Return the place of the phrase in a text. `spelling` is how its last word stands there."""
        return Occurrence(start, end, self._number, self.words[-1].weight_of(spelling))

    def places_in_ascii(self, text: str, lowered: str, *, limit: int) -> list[Occurrence] | None:
        """Return the places in a text by looking at those words only that may be meant, None if this is of no use."""
        if self._single is None:
            return None
        found: list[Occurrence] = []
        tries = at = 0
        while len(found) < limit and (match := self._single.search(lowered, at)):
            tries += 1
            if tries > _TRIES:
                return None
            at = match.end()
            if word := _word_at(text, match.start()):
                at = max(at, word[1])
                if self.words[0].weight_of(word[2]):
                    found.append(self.place(*word))
        return found


class _PhraseFinder:
    """Find phrases in texts, in one pass over the words of a text however they repeat.

    Each word of each phrase has a bit, and each word of a text the bits of those that it may be. From word to word the
    bits of the phrases that stand there so far move on by one.

    Source: Baeza-Yates and Gonnet, "A new approach to text searching", 1992.
    """

    def __init__(self, phrases: Sequence[Phrase], *, limit: int) -> None:
        self._limit = limit
        self._phrases = [_PhraseMatcher(n, phrase) for n, phrase in enumerate(phrases)]
        self._starts = self._spelt = 0
        self._exact: dict[str, int] = defaultdict(int)
        self._others: list[tuple[int, WordMatcher]] = []  # words that may be spelt otherwise
        self._bits: dict[Spelling, int] = {}
        bit = 1
        for phrase in self._phrases:
            self._starts |= bit
            for word in phrase.words:
                for spelling in word.spellings:
                    self._exact[spelling] |= bit
                if word.is_spelt:
                    self._spelt |= bit
                if word.has_forms or word.is_beginning:
                    self._others.append((bit, word))
                phrase.end = bit
                bit <<= 1
        beginnings = {re.escape(begin) for _, word in self._others for begin in word.beginnings}
        self._begins_so = re.compile("|".join(beginnings)).match if beginnings else None

    def places(self, text: str, bare: str) -> list[Occurrence]:
        """Return the places of all phrases in a text `without_symbols`, in order, at most `limit` of each."""
        found: list[Occurrence] = []
        together: list[_PhraseMatcher] = []
        for phrase in self._phrases:
            if phrase.may_stand_in(bare, had_umlauts=not text.isascii()):
                places = phrase.places_in_ascii(text, bare, limit=self._limit) if text.isascii() else None
                if places is None:
                    together.append(phrase)
                else:
                    found += places
        if together:
            found += self._in_one_pass(text, {phrase.end: phrase for phrase in together})
        return sorted(found, key=lambda place: (place.start, place.end))

    def _in_one_pass(self, text: str, by_end: Mapping[int, _PhraseMatcher]) -> Iterator[Occurrence]:
        starts: list[int] = []
        so_far, left = 0, sum(by_end)
        times: Counter[int] = Counter()
        for start, end, spelling in tokenizer.spelt(text):
            starts.append(start)
            bits = self._bits.get(spelling)
            if bits is None:
                bits = self._bits[spelling] = self._bits_of(spelling)
            so_far = (so_far << 1 | self._starts) & bits
            complete = so_far & left
            while complete:
                bit = complete & -complete
                complete ^= bit
                phrase = by_end[bit]
                yield phrase.place(starts[-len(phrase.words)], end, spelling)
                times[bit] += 1
                if times[bit] == self._limit:
                    left ^= bit
            if not left:
                return

    def _bits_of(self, spelling: Spelling) -> int:
        forms, humps = spelling
        bits = 0
        for form in forms:
            bits |= self._exact.get(form, 0)
        for hump in humps:
            bits |= self._exact.get(hump, 0) & ~self._spelt
        if self._begins_so and any(map(self._begins_so, (*forms, *humps))):
            for bit, word in self._others:
                bits |= bit if word.weight_of(spelling) else 0
        return bits


def _word_at(text: str, at: int) -> tuple[int, int, Spelling] | None:
    """Return the word around a position in a text of ASCII alone, None where there is none."""
    end = at
    while at and text[at - 1].isalnum():
        at -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    return next(tokenizer.spelt(text, at, end), None)


def _fields(text: TicketText) -> Iterator[tuple[Where, str, ActivityItem | None]]:
    """Yield the texts of a ticket one by one, with the entry of each that has one: no phrase goes from one to the
    next."""
    yield Where.TITLE, text.summary.title, None
    yield Where.DESCRIPTION, text.description, None
    for entry in text.history:
        yield Where.NOTE if entry.kind == NOTE else Where.COMMENT, entry.body, entry
    for tag in text.summary.tags:
        yield Where.TAGS, tag, None
    for field_id, value in text.summary.custom.items():
        if custom_values.has_words(field_id):
            yield Where.CUSTOM, value, None
    yield Where.REQUESTER, text.summary.requester_name or "", None
