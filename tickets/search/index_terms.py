"""Choose what the index is asked for: which of a query's words, as which ranges of terms.

Few words narrow a search down far enough, and the text of each ticket decides anyway: so at most WORDS_LIMIT words, the
longest of each phrase first, and the reserved terms of tags and of the requester.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, zip_longest
from typing import Final

from tickets.search import tokenizer
from tickets.search.index.fragments import requester_term, tag_term
from tickets.search.index.postings import Places, noted
from tickets.search.parsed_query import Phrase, SearchQuery
from tickets.search.word_matcher import WordMatcher, matchers

WORDS_LIMIT: Final = 4
_BEGINNING_LEAST: Final = 3  # characters of a beginning that narrows a search down
_BEHIND: Final = b"\xff"  # in no UTF-8: greater than all that can follow a beginning
_NOTE_MARK: Final = noted(b"")


@dataclass(frozen=True, slots=True)
class TermRange:
    """Hold the first and the last term of a range, both included."""

    low: bytes
    high: bytes


@dataclass(frozen=True)
class AskedTerm:
    """Hold a word that the index is asked for. `part` counts the parts of the query: phrases, tags, the requester.

    A ticket without it does not match, unless it `only_ranks`. With `places` it must stand in one of these.
    """

    matcher: WordMatcher
    part: int
    only_ranks: bool = False
    places: Places | None = None

    def ranges(self, *, with_notes: bool) -> list[TermRange]:
        """Return where the term's forms lie in the index, those of internal notes only where they are wanted."""
        if self.matcher.has_forms or self.matcher.is_beginning:
            beginnings = {*self.matcher.spellings} if self.matcher.is_beginning else set()
            beginnings |= {*self.matcher.beginnings}
            return [TermRange(low := b.encode(), low + _BEHIND) for b in sorted(_shortest(beginnings))]
        found = [spelling.encode() for spelling in self.matcher.spellings]
        return [TermRange(low, noted(low) if with_notes else low) for low in found]

    def weight(self, term: bytes, *, with_notes: bool) -> float:
        """Return how much a term of the index counts for this word, 0 for one that is not meant."""
        if term.endswith(_NOTE_MARK):
            if not with_notes:
                return 0.0
            term = term.removesuffix(_NOTE_MARK)
        return self.matcher.weight(term.decode(errors="replace"))


def asked_terms(query: SearchQuery, *, people: Sequence[str], version: int) -> list[AskedTerm]:
    """Return what the index is asked for. `people` are the ids of those who are meant by `from:`, where it is known."""
    of_phrases = [_of_phrase(n, phrase, version) for n, phrase in enumerate(query.phrases)]
    in_turns = chain.from_iterable(zip_longest(*sorted(of_phrases, key=_usefulness, reverse=True)))
    found = [term for term in in_turns if term is not None][:WORDS_LIMIT]
    for tag in query.tags:
        found.append(AskedTerm(WordMatcher((tag_term(tag),)), _next_part(query, found)))
    if people:
        found.append(AskedTerm(WordMatcher(tuple(map(requester_term, people))), _next_part(query, found)))
    elif query.requester:
        longest = max(matchers(Phrase(query.requester, is_exact=True), version), key=_length)
        found.append(AskedTerm(longest, _next_part(query, found), places=Places.LABEL))
    return found


def tell_all(query: SearchQuery) -> bool:
    """Tell whether who has all terms matches, so that no text can deny it: plain words, and nothing left out."""
    plain = [p for p in query.phrases if (p.is_prefix or not p.is_exact) and len(tokenizer.words(p.text)) == 1]
    return len(plain) == len(query.phrases) <= WORDS_LIMIT and not query.without and not query.number


def _next_part(query: SearchQuery, found: Sequence[AskedTerm]) -> int:
    return max([len(query.phrases) - 1, *(term.part for term in found)]) + 1


def _of_phrase(at: int, phrase: Phrase, version: int) -> list[AskedTerm]:
    """Return the terms that a ticket with the phrase has, the most telling one first."""
    parts = matchers(phrase, version)
    telling = [
        part for part in parts if part.is_beginning or not tokenizer.is_function_word(part.spellings[0], version)
    ]
    if tokenizer.is_unspaced(phrase.text):
        return _of_characters(at, phrase.text) + [
            AskedTerm(part, at) for part in telling if not tokenizer.is_unspaced(part.spellings[0])
        ]
    # Too many terms begin with a last part that is short: the others narrow down, and the compound's beginning ranks.
    is_short = phrase.is_prefix and _length(parts[-1]) < _BEGINNING_LEAST
    if is_short and len(telling) > 1:
        telling.remove(parts[-1])
    found = [AskedTerm(part, at) for part in sorted(dict.fromkeys(telling), key=_length, reverse=True)]
    joined = tokenizer.whole(phrase.text) if is_short or not phrase.is_prefix else None
    if joined:
        found.insert(1, AskedTerm(WordMatcher((joined,), is_beginning=is_short), at, only_ranks=True))
    return found


def _of_characters(at: int, text: str) -> list[AskedTerm]:
    """Return the terms of what stands without spaces in a text: pairs of its characters, or all that begin with its
    only one.

    A space between words makes no pair.
    """
    matchers_of = {
        matcher: None
        for run in tokenizer.unspaced_runs(text)
        for matcher in ([WordMatcher((a + b,)) for a, b in pairwise(run)] or [WordMatcher((*run,), is_beginning=True)])
        if run
    }
    return [AskedTerm(matcher, at) for matcher in matchers_of]


def _length(matcher: WordMatcher) -> int:
    return len(matcher.spellings[0])


def _usefulness(terms: Sequence[AskedTerm]) -> int:
    return max((_length(term.matcher) for term in terms), default=0)


def _shortest(beginnings: Iterable[str]) -> list[str]:
    """Leave out what begins with another one."""
    kept: list[str] = []
    for one in sorted(beginnings):
        if not kept or not one.startswith(kept[-1]):
            kept.append(one)
    return kept
