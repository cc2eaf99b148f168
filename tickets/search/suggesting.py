"""Suggest tickets, tags and people while somebody types: cheaper than a search, because it is asked for more often.

A ticket is offered for the words of its title, tags and requester, which are read anyway and decide: the index does not
know which comments were deleted or made notes of. A tag is offered where the newest ticket that the index names for it
has it still.
"""

from __future__ import annotations

import re
from typing import Final

from portal import plain_text
from portal.errors import Invalid
from tenants.membership import members
from tenants.membership.members import ListedMember
from tenants.tenancy.context import TenantContext
from tickets.search import ticket_search, ticket_texts, tokenizer
from tickets.search.index.fragments import tag_term
from tickets.search.index.postings import Places
from tickets.search.index_lookup import WORDS_LIMIT, AskedTerm, IndexLookup
from tickets.search.ranking import number_of
from tickets.search.results import Suggestions
from tickets.search.search_query import Filters, SearchQuery
from tickets.search.text_match import TextMatcher, WordMatcher
from tickets.search.ticket_search import Search, named_match, parsed
from tickets.search.ticket_texts import TicketText

BLOCKS_LIMIT: Final = 48  # that the suggestions for one text read
TICKETS: Final = 8
READ: Final = 12  # tickets of which that many are chosen, because some have lost their words
TAGS: Final = 3
PEOPLE: Final = 3
LEAST: Final = 2  # characters of a text that anything is suggested for, 1 of a script without spaces
MISSPELT_LEAST: Final = 4  # letters of a word that another may be meant by
LONG_WORD: Final = 8  # letters from which on two slips are forgiven
_WORD: Final = re.compile(r"[^\W\d_]+")
_PLACES: Final = Places.TITLE | Places.LABEL
_NO_PART: Final = -1  # of the query: what is read beside it


def suggest(tenant: TenantContext, text: str) -> Suggestions:
    """Return what may be meant by a text that somebody is typing, nothing where it is too short or says nothing.

    Three round trips, two where the process remembers the index's headers. Raises Throttled, Unavailable.
    """
    typed = text.strip()
    try:
        query, _ = parsed(tenant, text, is_typing=True)
    except Invalid:
        return Suggestions((), (), ())
    if len(typed) < LEAST and not tokenizer.is_unspaced(typed) and not query.number:
        return Suggestions((), (), ())
    tag = AskedTerm(WordMatcher((tag_term(plain_text.word(typed)),), is_beginning=True), _NO_PART)
    search = Search(tenant, query, Filters(), limit=BLOCKS_LIMIT, also=(tag,), places=_PLACES)
    people: list[ListedMember] = []
    proposed = search.propose(beside=lambda: people.extend(_people(tenant, typed)))
    mark = len(tag_term(""))
    tags = {term[mark:]: number for term, number in list(search.newest_by_term().items())[:TAGS]}
    named = [query.number] if query.number else []
    numbers = list(dict.fromkeys([*named, *map(number_of, proposed.best[:READ])]))[:READ]
    read = ticket_texts.read_summaries(tenant, list(dict.fromkeys([*numbers, *tags.values()])))
    matcher = TextMatcher(query)
    having = [one for n in numbers if (one := read.get(n)) and _fits(matcher, query, one)]
    return Suggestions(
        tickets=tuple([one.summary for one in having if search.holds(one)][:TICKETS]),
        tags=tuple(tag for tag, n in tags.items() if n in read and tag in read[n].summary.tags),
        people=tuple(people),
    )


def meant(tenant: TenantContext, text: str, within: Filters | None = None) -> str:
    """Return a text that finds something and differs from one that finds nothing by a slip in its words; "" for none.

    Words that stand in internal notes alone are offered to nobody, and a first letter that is missing is not found. Two
    round trips, and those of one search more where a near word is known. Raises Throttled, Unavailable.
    """
    query, _ = parsed(tenant, text)
    sought = {w.folded[0] for phrase in query.phrases for w in tokenizer.words(phrase.text)}
    words = sorted((w for w in sought if len(w) >= MISSPELT_LEAST and w.isalpha()), key=len, reverse=True)[:WORDS_LIMIT]
    near = {w: WordMatcher((w[0], w[1] + w[0], w[1:3]), is_beginning=True) for w in words}
    if not near:
        return ""
    search = Search(tenant, query, Filters(), also=tuple(AskedTerm(matcher, _NO_PART) for matcher in near.values()))
    search.propose()
    known = list(search.newest_by_term())
    better = {word: found for word in near if word not in known and (found := _nearest(word, known))}
    changed = _WORD.sub(lambda match: better.get(match[0].casefold(), match[0]), text)
    return changed if better and changed != text and ticket_search.find(tenant, changed, within=within).hits else ""


def _nearest(word: str, known: list[str]) -> str:
    """Return the known word that differs least, of several the one of most tickets, which comes first; "" for none."""
    most = 2 if len(word) >= LONG_WORD else 1
    rated = [(slips, term) for term in known if 0 < (slips := _slips(word, term, most)) <= most]
    return min(rated, key=lambda one: one[0])[1] if rated else ""


def _slips(one: str, other: str, most: int) -> int:
    """Return how many letters were added, left out, mistaken or swapped with the next, more than `most` for many."""
    if abs(len(one) - len(other)) > most or not other.isalpha():
        return most + 1
    rows: list[list[int]] = [[*range(len(other) + 1)]]
    for i, a in enumerate(one, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            least = min(rows[-1][j] + 1, row[j - 1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and (a, one[i - 2]) == (other[j - 2], b):
                least = min(least, rows[-2][j - 2] + 1)
            row.append(least)
        rows.append(row)
    return rows[-1][-1]


def warm(tenant: TenantContext) -> None:
    """Read how the index stands, so that this process remembers its headers when the first word comes: one round trip.

    Raises Throttled, Unavailable.
    """
    IndexLookup(tenant.repository, lambda: ()).begin()


def _fits(matcher: TextMatcher, query: SearchQuery, text: TicketText) -> bool:
    match = matcher.match(text)
    return (match is not None and match.is_whole) or (
        text.number == query.number and named_match(matcher, query, text) is not None
    )


def _people(tenant: TenantContext, typed: str) -> list[ListedMember]:
    """Return those who can have tickets, and have a name or mail address with words that begin so: one Query. In
    a desk with more than a hundred members, those whose names begin with the text: two round trips."""
    wanted = [word.folded[0] for word in tokenizer.words(typed)]
    found = []
    for member in members.beginning_with(tenant.repository, [typed]):
        own = [folded for word in tokenizer.words(f"{member.name} {member.email}") for folded in word.folded]
        if member.is_agent and all(any(name.startswith(w) for name in own) for w in wanted):
            found.append(member)
    return found[:PEOPLE]
