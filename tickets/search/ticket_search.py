"""Find tickets: the index proposes, the text of each ticket decides.

    1  the state of the index, the number of tickets, the members where some are named     at the same time
    2  the index's blocks, the list of a status or a person where that is asked for         at the same time
    3  the texts of the CHECKED best proposals                                              at the same time

Three round trips, two where the process remembers the index's headers. Filters that neither the index nor a list knows,
such as days, take one more: the third then brings the SUMMARYs of the SIFTED best proposals, and the fourth the texts
of those that pass. Only where none of these texts matches, the others that passed are read, in a fifth.

Tickets that no longer match are dropped, the others are ranked by their text, and a signed cursor leads to the further
candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Final

from portal import clock
from portal.dynamo import paging
from portal.dynamo.client import fan_out
from tenants.membership import members
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tickets.counting.contributions import UNRESOLVED
from tickets.desk import lists
from tickets.search import index_lookup, ranking, search_query, snippets, ticket_texts, tokenizer
from tickets.search.index.postings import Places
from tickets.search.index_lookup import BLOCKS_LIMIT, AskedTerm, IndexLookup
from tickets.search.ranking import PagePosition, Proposal, ProposalPage, Proposals, TermRead
from tickets.search.results import Found, Hit, Piece, Where
from tickets.search.search_query import ME, NOBODY, Filters, SearchQuery
from tickets.search.text_match import TextMatcher, TicketMatch
from tickets.search.ticket_texts import TicketText
from tickets.ticket import stored
from tickets.ticket.fields import Status
from tickets.ticket.stored import CounterItem

LISTED: Final = 500  # tickets of a list that are read to narrow a search down


@dataclass(frozen=True)
class Conditions:
    """Hold what is asked beside words. None asks nothing; `resolvers` has "" for nobody."""

    query: SearchQuery
    within: Filters
    statuses: frozenset[Status] | None = None
    resolvers: frozenset[str] | None = None
    requesters: frozenset[str] | None = None

    def hold(self, text: TicketText) -> bool:
        """Tell whether a ticket is what was asked for, whatever its words are."""
        row, query = text.summary(), self.query
        opened = date.fromisoformat(row.created_at[:10])
        return (
            (self.statuses is None or row.status in self.statuses)
            and (self.resolvers is None or row.resolver in self.resolvers)
            and self._is_requested(text)
            and all(tag in row.tags for tag in query.tags)
            and all(getattr(row, name) == word for name, word in query.choices.items())
            and (query.before is None or opened < query.before)
            and (query.after is None or opened >= query.after)
            and self.within.only.matches(row)
        )

    def are_known(self, *, by_list: bool) -> bool:
        """Tell whether the index and, `by_list`, what `listing` read leave nothing to ask of each ticket."""
        query, only = self.query, self.within.only.without("tag")
        if query.choices or query.before or query.after or only or (query.requester and self.requesters is None):
            return False
        if self.statuses is None and self.resolvers is None:
            return True
        return by_list and (self.resolvers is None or len(self.resolvers) == 1)

    def _is_requested(self, text: TicketText) -> bool:
        if self.requesters is not None:
            return text.requester in self.requesters
        name = {folded for word in tokenizer.words(text.requester_name) for folded in word.folded}
        return all(name.intersection(word.folded) for word in tokenizer.words(self.query.requester))

    def listing(self, tenant: TenantContext) -> Callable[[], set[int] | None] | None:
        """Return what reads the numbers of the tickets that can hold, None where no list is short enough to say so.

        It also returns None if the list turned out to be longer than LISTED.
        """
        resolver = next(iter(self.resolvers)) if self.resolvers and len(self.resolvers) == 1 else None
        if resolver is None and not (self.statuses and self.statuses.issubset(UNRESOLVED)):
            return None
        statuses = [status for status in Status if self.statuses is None or status in self.statuses]

        def read() -> set[int] | None:
            page = lists.page(tenant, status=statuses, resolver=resolver, size=LISTED)
            return None if page.next else {int(row.number) for row in page.rows}

        return read


def needs_members(query: SearchQuery) -> bool:
    """Tell whether the query names people whose ids the list of members tells."""
    return query.assignee not in ("", ME, NOBODY) or "@" in query.requester


def understood(
    tenant: TenantContext, query: SearchQuery, within: Filters, people: Sequence[Member]
) -> tuple[Conditions, tuple[str, ...]]:
    """Return the conditions with ids for names, and a sentence for each name that nobody has."""
    problems = []
    resolvers = None if within.resolver is None else frozenset({within.resolver})
    if query.assignee:
        named = _ids(tenant, query.assignee, people)
        if not named:
            problems.append(f"“assignee:{query.assignee}” was ignored: nobody here is called so.")
        else:
            resolvers = named if resolvers is None else named & resolvers
    statuses = None if query.statuses is None else frozenset(query.statuses)
    if within.statuses is not None:
        statuses = frozenset(within.statuses) if statuses is None else statuses & frozenset(within.statuses)
    requesters = _ids(tenant, query.requester, people) if query.requester == ME or "@" in query.requester else None
    if requesters is not None and not requesters:
        problems.append(
            f"Nobody here has the address “{query.requester}”: from: was taken for a part of the requester’s name."
        )
    return Conditions(query, within, statuses, resolvers, requesters or None), tuple(problems)


def _ids(tenant: TenantContext, name: str, people: Sequence[Member]) -> frozenset[str]:
    """Return the ids of those who are meant by a name, a part of it, or a mail address; "" for nobody."""
    if name == ME:
        return frozenset({tenant.user_id})
    if name == NOBODY:
        return frozenset({""})
    return frozenset(one.id for one in people if name in one.name.casefold() or name in one.email.casefold())


def members_of(tenant: TenantContext) -> list[Member]:
    """Return the members by whom names are understood: see `members.members_of`."""
    return members.members_of(tenant.repository)


# --- the search ---


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
    query, explanations = search_query.parse(text)
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
        is_counted=proposed.is_complete and not search.sifts and index_lookup.tell_all(query),
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
        if needs_members(self.query):
            first.append(lambda: people.extend(members_of(self.tenant)))
        fan_out(first)
        self._conditions, self.explanations = understood(self.tenant, self.query, self._within, people)
        among: list[set[int] | None] = []
        second: list[Callable[[], Any]] = [self._lookup.finish]
        if listing := self._conditions.listing(self.tenant):
            second.append(lambda: among.append(listing()))
        ranges = iter(fan_out(second)[0])
        self.sifts = not self._conditions.are_known(by_list=next(iter(among), None) is not None)
        self._beside = ranking.read_terms(self._also, ranges, with_notes=False)
        self._reads = [
            ranking.read_terms(terms, ranges, with_notes=self._with_notes)
            for terms in self._terms(self._lookup.versions)
        ]
        self._rarities = ranking.rarities(self._reads, self.tickets)
        if self._lookup.is_empty and self.tickets:
            self.explanations += (NOTHING_INDEXED,)
        elif self._lookup.is_damaged:
            self.explanations += (PARTLY_LOST,)
        elif not all(read.is_complete for reads in self._reads for read in reads):
            self.explanations += (TOO_MANY,)
        return ranking.propose(
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

        The part that was read can only rule the ticket out. Else single words stand in older comments where the index
        says so. A phrase may, or its words may stand apart: so it is not found, and the ticket nearly matches.
        """
        phrases = self.query.phrases
        match = matcher.match(text, range(len(phrases)))
        if match is None:
            return None
        there = {place.phrase for one in match.fields for place in one.places}
        missing = [n for n in range(len(phrases)) if n not in there]
        if not all(ranking.may_be_in_comments(self._reads, n, text.number) for n in missing):
            return matcher.match(text)
        self._unread.add(text.number)
        if missing:
            self.in_older.add(text.number)
        are_words = {n: len(tokenizer.words(phrases[n].text)) == 1 for n in missing}
        is_whole = all(
            ranking.is_in_comments(self._reads, n, text.number, is_word=is_word) for n, is_word in are_words.items()
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
            terms = index_lookup.asked_terms(self.query, people=requesters, version=version)
            terms = [term if term.places else replace(term, places=self._places) for term in terms]
            if terms not in found:
                found.append(terms)
        return found

    def _ranges(self, versions: Sequence[int]) -> list[index_lookup.TermRange]:
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
