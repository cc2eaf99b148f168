"""Find tickets: the index proposes, the text of each ticket decides.

    1  the state of the index, the number of tickets, the members where some are named     at the same time
    2  the index's blocks, the list of a status or a person where that is asked for         at the same time
    3  the texts of the CHECKED best proposals                                              at the same time

Three round trips, two where the process remembers the index's headers. Filters that neither the index nor a list knows,
such as days, take one more: the third then brings the SUMMARYs of the SIFTED best proposals, and the fourth the texts
of those that pass. Only where none of these texts matches, the others that passed are read, in a fifth.

What does not match any more is dropped, the rest is ranked by its text, and a signed cursor leads on to the proposals
behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from portal import clock
from portal.dynamo import paging
from portal.dynamo.client import fan_out
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tickets.search import (
    index_terms,
    proposals,
    query_parser,
    ranking,
    snippets,
    ticket_conditions,
    ticket_texts,
    tokenizer,
)
from tickets.search.index.postings import Places
from tickets.search.index_lookup import BLOCKS_LIMIT, IndexLookup
from tickets.search.index_terms import AskedTerm
from tickets.search.parsed_query import Filters, SearchQuery
from tickets.search.proposals import PagePosition, Proposal, ProposalPage, Proposals, TermRead
from tickets.search.results import Found, Hit, Piece, Where
from tickets.search.text_match import TextMatcher, TicketMatch
from tickets.search.ticket_conditions import Conditions
from tickets.search.ticket_texts import TicketText
from tickets.ticket import stored
from tickets.ticket.stored import CounterItem

CHECKED: Final = 30  # proposals whose texts are read
SIFTED: Final = 100  # proposals whose SUMMARYs are read first, where filters are left that the index does not know
SHOWN: Final = 20  # tickets of one page
NOTHING_INDEXED: Final = "The tickets of this desk are not indexed yet."
PARTLY_LOST: Final = "A part of the search index is lost. Some tickets may be missing here until it is made anew."
TOO_MANY: Final = "So many tickets have these words that not all of them were looked at. Add a word that is rarer."

UNREAD: Final = (
    "The history of {} is too long to be read to its end. Older comments were searched for single words, but not for "
    "phrases or words with a minus."
)
OLDER: Final = "an older one, which was not read."
_LISTED: Final = 5  # tickets in a sentence


def find(
    tenant: TenantContext, text: str, *, newest_first: bool = False, further: str = "", within: Filters | None = None
) -> Found:
    """Return the best tickets for what somebody typed; `further` is a former page's cursor.

    `newest_first` asks for those with the highest numbers instead, as a query without words always does.
    Raises Invalid for a query with nothing to search for and for a bad cursor; Throttled, Unavailable.
    """
    query, explanations = query_parser.parse(text)
    search = Search(tenant, query, within or Filters())
    binding = ("search", text, newest_first, repr(within))
    position = None
    if further:
        rank, left = paging.load(further, tenant_id=tenant.tenant_id, query=binding)
        position = PagePosition(rank, tuple(left))
    newest_first = newest_first or not query.phrases
    proposed = search.propose(newest_first=newest_first)
    read: list[TicketMatch] = []
    for page in search.parts(ProposalPage.of(proposed, position, SIFTED if search.sifts else CHECKED)):
        nearly = [] if position or not page.is_last else proposed.taken(proposed.nearly)
        read += search.matches(page, nearly, is_first=position is None)
        if any(map(_is_whole, read)):
            break
    read.sort(key=search.score, reverse=True)
    matches = [match for match in read if match.is_whole]
    if newest_first:
        matches.sort(key=lambda match: match.text.number, reverse=True)
    matches.sort(key=lambda match: match.text.number != query.number)
    end = page.end(tuple(match.text.number for match in matches[SHOWN:]))
    return Found(
        hits=tuple(search.hit(match) for match in matches[:SHOWN]),
        further=paging.dump(end, tenant_id=tenant.tenant_id, query=binding) if end else "",
        explanations=(*explanations, *search.explanations),
        about=len(proposed.best) if proposed.is_complete else None,
        query=query,
        nearly=tuple(search.hit(match) for match in read if not match.is_whole)[:SHOWN],
        is_counted=proposed.is_complete and not search.sifts and index_terms.tell_all(query),
        rest=sum(rank < page.last for rank in proposed.best) if end else 0,
    )


class Search:
    """One search: what was read for it so far, and what it was asked for.

    With `places` the index proposes only what has the words there.
    """

    def __init__(
        self,
        tenant: TenantContext,
        query: SearchQuery,
        within: Filters,
        *,
        limit: int = BLOCKS_LIMIT,
        also: Sequence[AskedTerm] = (),
        places: Places | None = None,
    ) -> None:
        if (tag := within.only.get("tag")) and tag not in query.tags:  # the index knows them
            query = replace(query, tags=(*query.tags, tag))
        self.tenant, self.query, self._within, self._also, self._places = tenant, query, within, also, places
        self._with_notes = tenant.is_agent and (places is None or Places.COMMENT in places)
        self._conditions = Conditions(query, within)
        self._lookup = IndexLookup(tenant.repository, self._ranges, limit=limit)
        self._reads: list[list[TermRead]] = []
        self._beside: list[TermRead] = []
        self._rarities: dict[int, float] = {}
        self._now = clock.now()
        self.tickets = 0
        self.sifts = False
        self.explanations: tuple[str, ...] = ()
        self.in_older: set[int] = set()  # tickets that may have the rest of the query in comments that were not read
        self._unread: set[int] = set()  # these, and those that may have there what was to be left out

    def propose(self, *, newest_first: bool = False, beside: Callable[[], Any] = lambda: None) -> Proposals:
        """Ask the index: two round trips at most. `beside` is read along with the first one."""
        people: list[Member] = []
        first: list[Callable[[], Any]] = [self._lookup.begin, self._read_counter, beside]
        if ticket_conditions.needs_members(self.query):
            first.append(lambda: people.extend(ticket_conditions.members_of(self.tenant)))
        fan_out(first)
        self._conditions, self.explanations = ticket_conditions.understood(
            self.tenant, self.query, self._within, people
        )
        among: list[set[int] | None] = []
        second: list[Callable[[], Any]] = [self._lookup.finish]
        if listing := self._conditions.listing(self.tenant):
            second.append(lambda: among.append(listing()))
        ranges = iter(fan_out(second)[0])
        self.sifts = not self._conditions.are_known(by_list=next(iter(among), None) is not None)
        self._beside = proposals.read_terms(self._also, ranges, with_notes=False)
        self._reads = [
            proposals.read_terms(terms, ranges, with_notes=self._with_notes)
            for terms in self._terms(self._lookup.versions)
        ]
        self._rarities = proposals.rarities(self._reads, self.tickets)
        if self._lookup.is_empty and self.tickets:
            self.explanations += (NOTHING_INDEXED,)
        elif self._lookup.is_damaged:
            self.explanations += (PARTLY_LOST,)
        elif not all(read.is_complete for reads in self._reads for read in reads):
            self.explanations += (TOO_MANY,)
        return proposals.propose(
            self._reads, tickets=self.tickets, among=next(iter(among), None), newest_first=newest_first
        )

    def matches(self, page: ProposalPage, nearly: Sequence[Proposal], *, is_first: bool) -> list[TicketMatch]:
        """Read the texts of a page of proposals and keep those that match, and of others those that nearly do.

        The ticket whose number was typed is looked at on the first page, and so on no other one.
        """
        named = self.query.number
        first = named if is_first else None
        proposed = [
            p for p in (*page.chosen, *nearly[: max(0, CHECKED - len(page.chosen))]) if is_first or p.number != named
        ]
        numbers = list(dict.fromkeys([*([first] if first else []), *page.left, *(p.number for p in proposed)]))
        by_index = {proposal.number for proposal in proposed if not self._needs_history(proposal)}
        read = ticket_texts.read_texts(self.tenant, numbers, with_history={*numbers} - by_index)
        matcher = TextMatcher(self.query)
        found = {number: matcher.match(text) for number, text in read.items()}
        # Long histories, where what was read does not decide.
        unsure = [t for t in read.values() if t.rest and (not _is_whole(found[t.number]) or self.query.without)]
        for text in ticket_texts.read_on(self.tenant, unsure) if unsure else ():
            read[text.number], found[text.number] = text, matcher.match(text)
        for number, text in read.items():
            if number == first and (match := named_match(matcher, self.query, text)):
                found[number] = match
            elif text.rest and (not _is_whole(found[number]) or self.query.without):
                found[number] = self._partly_read(matcher, text)
        kept = [match for match in found.values() if match and self._conditions.hold(match.text)]
        self._explain_unread([match.text.number for match in kept])
        return kept

    def _partly_read(self, matcher: TextMatcher, text: TicketText) -> TicketMatch | None:
        """Decide on a ticket whose history even then was not read to its end.

        What was read can deny. Else single words stand in older comments where the index says so. A phrase may, or its
        words may stand apart: so it is not found, and the ticket nearly matches.
        """
        phrases = self.query.phrases
        match = matcher.match(text, range(len(phrases)))
        if match is None:
            return None
        there = {place.phrase for one in match.fields for place in one.places}
        missing = [n for n in range(len(phrases)) if n not in there]
        if not all(proposals.may_be_in_comments(self._reads, n, text.number) for n in missing):
            return matcher.match(text)
        self._unread.add(text.number)
        if missing:
            self.in_older.add(text.number)
        are_words = {n: len(tokenizer.words(phrases[n].text)) == 1 for n in missing}
        is_whole = all(
            proposals.is_in_comments(self._reads, n, text.number, is_word=is_word) for n, is_word in are_words.items()
        )
        return replace(match, is_whole=is_whole)

    def _explain_unread(self, shown: Sequence[int]) -> None:
        if unread := [f"#{number}" for number in shown if number in self._unread]:
            listed = ", ".join(unread[:_LISTED]) + (" and others" if len(unread) > _LISTED else "")
            self.explanations += (UNREAD.format(listed),)

    def parts(self, page: ProposalPage) -> list[ProposalPage]:
        """Return the page, or if it is long two of what the filters leave of it: what to read, and what to read if
        nothing of that matches. One round trip for the SUMMARYs of a long one."""
        room = max(0, CHECKED - len(page.left))
        if len(page.chosen) <= room:
            return [page]
        read = ticket_texts.read_summaries(self.tenant, [proposal.number for proposal in page.chosen])
        passed = [p for p in page.chosen if p.number in read and self._conditions.hold(read[p.number])]
        if len(passed) <= room:
            return [replace(page, chosen=passed)]
        begin = replace(page, chosen=passed[:room], is_last=False, last=passed[room - 1].rank if room else page.start)
        return [begin, replace(page, chosen=passed[room:], left=())]

    def holds(self, text: TicketText) -> bool:
        """Tell whether a ticket is what was asked for beside its words."""
        return self._conditions.hold(text)

    def newest_by_term(self) -> dict[str, int]:
        """Return the terms that were asked for `also`, those of most tickets first, each with its newest ticket."""
        found = [one for read in self._beside for one in read.by_term.items()]
        found.sort(key=lambda one: (-len(one[1]), one[0]))
        return {term: max(numbers) for term, numbers in found if numbers}

    def score(self, match: TicketMatch) -> float:
        """Return how good a match is."""
        return ranking.score(match, self._rarities, self._now)

    def hit(self, match: TicketMatch) -> Hit:
        """Return a match as it is shown."""
        pieces, where = snippets.snippet(match)
        if not pieces and match.text.number in self.in_older:
            pieces, where = (Piece(OLDER, is_match=False),), Where.COMMENT
        return Hit(match.text.summary(), snippets.title(match), pieces, where)

    def _terms(self, versions: Sequence[int]) -> list[list[AskedTerm]]:
        """Return what the index is asked for, by the rules of each version of the tokenizer; once if they agree."""
        requesters = sorted(self._conditions.requesters or ())
        found: list[list[AskedTerm]] = []
        for version in versions:
            terms = index_terms.asked_terms(self.query, people=requesters, version=version)
            terms = [term if term.places else replace(term, places=self._places) for term in terms]
            if terms not in found:
                found.append(terms)
        return found

    def _ranges(self, versions: Sequence[int]) -> list[index_terms.TermRange]:
        asked = [term for terms in self._terms(versions) for term in terms]
        own = [r for term in asked for r in term.ranges(with_notes=self._with_notes)]
        return [r for term in self._also for r in term.ranges(with_notes=False)] + own

    def _read_counter(self) -> None:
        item = self.tenant.repository.get(CounterItem, stored.counter, sort=stored.COUNTER_TICKET)
        self.tickets = int(item.last) if item else 0

    def _needs_history(self, proposal: Proposal) -> bool:
        """Tell whether comments may decide about a ticket, or tell for it."""
        asked = {read.term.part for reads in self._reads for read in reads if read.is_complete}
        is_sure = not self.query.without and all(n in asked for n in range(len(self.query.phrases)))
        return not is_sure or bool(proposal.places & Places.COMMENT)


def named_match(matcher: TextMatcher, query: SearchQuery, text: TicketText) -> TicketMatch | None:
    """Return how the ticket whose number was typed matches, None where the rest of the query is not in it."""
    numbers = {n for n, phrase in enumerate(query.phrases) if phrase.text == str(query.number)}
    match = matcher.match(text, numbers)
    there = {place.phrase for one in match.fields for place in one.places} if match else set()
    return replace(match, is_whole=True) if match and len(there | numbers) == len(query.phrases) else None


def _is_whole(match: TicketMatch | None) -> bool:
    return match is not None and match.is_whole
