"""Find articles by their words, and suggest some for what somebody writes: with the language, the ranks and the texts'
last word of the search for tickets.

The catalogue has the terms of all published articles, so it proposes as the index of tickets does, for no further
request. It is written together with each publication: an article is found at once, and nothing else ever is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from portal import clock
from tenants.tenancy.context import TenantContext
from tickets.articles import articles, catalogue
from tickets.articles.catalogue import Card, Catalogue
from tickets.articles.stored import PublishedItem
from tickets.search import index_lookup, ranking, search_query, snippets, tokenizer
from tickets.search.index.postings import Places
from tickets.search.index_lookup import AskedTerm, TermRead
from tickets.search.results import Piece
from tickets.search.text_match import TextMatcher, WordMatcher
from tickets.search.ticket_texts import TicketText
from tickets.ticket.stored import SummaryItem

CHECKED: Final = 20  # proposals whose texts are read
SHOWN: Final = 10
SUGGESTED: Final = 5
SUGGESTED_LIMIT: Final = 2_000  # characters of what somebody writes that are looked at
_WORDS: Final = 12  # of them, the longest
_LEAST: Final = 3  # letters of a word that suggests something
_ONLY_TICKETS: Final = ("statuses", "assignee", "tags", "requester", "choices", "before", "after")


@dataclass(frozen=True)
class ArticleHit:
    """An article that was found: its title with what was sought, and a stretch of its text."""

    card: Card
    title: tuple[Piece, ...]
    snippet: tuple[Piece, ...]


def find(desk: TenantContext, text: str, *, public: bool, at_once: bool = True) -> list[ArticleHit]:
    """Return the best articles that have all that somebody typed, nothing for a query about tickets alone.

    Two round trips: the catalogue, `at_once` or not, and one BatchGetItem for the texts. Raises Invalid for a query
    that says nothing.
    """
    return find_in(catalogue.read(desk, public=public, at_once=at_once), desk, text, public=public)


def find_in(known: Catalogue, desk: TenantContext, text: str, *, public: bool) -> list[ArticleHit]:
    """Do the same with a catalogue that was read: one round trip."""
    query, _ = search_query.parse(text)
    if not query.phrases or any(getattr(query, name) for name in _ONLY_TICKETS):
        return []
    reads = [_read(known, term) for term in dict.fromkeys(index_lookup.asked_terms(query))]
    if not reads or not known.cards:
        return []
    counts = ranking.counted(reads, len(known.cards))
    best = ranking.propose(reads, counts=counts, newest_first=False).best
    rarities = ranking.rarities(reads, counts)
    matcher, now = TextMatcher(query), clock.now()
    found = []
    for item in articles.several(desk, [*map(ranking.number_of, best[:CHECKED])]):
        match = matcher.match(_text(item))
        if match is not None and match.is_whole and (item.is_public or not public):
            found.append((ranking.score(match, rarities, now), match, item))
    found.sort(key=lambda one: (-one[0], int(one[2].number)))
    return [
        ArticleHit(card_of(item), snippets.title(match), snippets.snippet(match)[0]) for _, match, item in found[:SHOWN]
    ]


def suggest(desk: TenantContext, text: str, *, public: bool, limit: int = SUGGESTED) -> list[Card]:
    """Return a few articles that may answer what somebody writes: those with a telling word of it in the title, or with
    several in the text.

    One request: for the edition of the catalogue, or all of it.
    """
    return suggest_from(catalogue.read(desk, public=public), text, limit=limit) if _telling(text) else []


def suggest_from(known: Catalogue, text: str, *, limit: int = SUGGESTED) -> list[Card]:
    """Do the same with a catalogue that was read."""
    words = _telling(text)
    reads = [_read(known, AskedTerm(WordMatcher((word,), has_forms=True), n)) for n, word in enumerate(words)]
    if not words or not known.cards:
        return []
    proposed = ranking.propose(reads, counts=ranking.counted(reads, len(known.cards)), newest_first=False)
    ranked = dict.fromkeys(map(ranking.number_of, [*proposed.best, *proposed.nearly]))
    return [known.cards[number] for number in ranked if _fits(reads, number)][:limit]


def card_of(item: PublishedItem) -> Card:
    """Return an article as lists show it, without the beginning of its text."""
    return Card(int(item.number), item.title, "", item.section, bool(item.is_public), item.published_at)


def _read(known: Catalogue, term: AskedTerm) -> TermRead:
    """Return what the catalogue has of a word, as a lookup in the index of tickets does."""
    entries = {name: [entry] for bounds in term.ranges for name, entry in known.words.between(*bounds)}
    return TermRead.of(term, True, entries)


def _telling(text: str) -> list[str]:
    """Return the words of a text that say what it is about, folded."""
    found = [word.folded[0] for word in tokenizer.words(text[:SUGGESTED_LIMIT])]
    telling = [
        word
        for word in dict.fromkeys(found)
        if (len(word) >= _LEAST or tokenizer.is_unspaced(word))
        and not tokenizer.is_function_word(word)
        and word not in search_query.ASKING
    ]
    return sorted(telling, key=len, reverse=True)[:_WORDS]


def _fits(reads: Sequence[TermRead], number: int) -> bool:
    places = [read.postings[number] for read in reads if number in read.postings]
    return len(places) > 1 or any(place & Places.TITLE for place in places)


def _text(item: PublishedItem) -> TicketText:
    """Return an article as the search reads texts: as a ticket with a title and a description."""
    summary = SummaryItem(
        item.pk, item.sk, title=item.title, updated_at=item.published_at, status="", tags=[], requester_name=""
    )
    return TicketText(int(item.number), summary, item.body)
