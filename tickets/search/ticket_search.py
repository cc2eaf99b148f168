"""Find tickets: the index proposes, the text of each ticket decides.

    1  the state of the index, the members where some are named                            at the same time
    2  the index's blocks, the list of a status or a person where that is asked for         at the same time
    3  the texts of the CHECKED best proposals                                              at the same time

Three round trips, two where the process remembers the index's headers. Filters that neither the index nor a list knows,
such as days, take one more: the third then brings the SUMMARYs of the SIFTED best proposals, and the fourth what else
of the texts of those that pass may have the words. Only where none of these texts matches, the others that passed are
read, in a fifth.

Tickets that no longer match are dropped, the others are ranked by their text, and a signed cursor leads to the further
candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any, Final, NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo import paging
from portal.dynamo.client import fan_out
from tenants.membership import members
from tenants.membership.members import ListedMember
from tenants.tenancy.context import TenantContext
from tickets.custom_fields import definitions
from tickets.desk import lists
from tickets.requesters import requesters
from tickets.search import index_lookup, ranking, search_query, snippets, ticket_texts, tokenizer
from tickets.search.index.postings import Places
from tickets.search.index_lookup import BLOCKS_LIMIT, AskedTerm, IndexLookup, TermRead
from tickets.search.ranking import Proposals, number_of
from tickets.search.results import Found, Hit, Piece, Where
from tickets.search.search_query import ME, NOBODY, Filters, SearchQuery
from tickets.search.text_match import TextMatcher, TicketMatch
from tickets.search.ticket_texts import TicketText
from tickets.ticket.fields import UNRESOLVED, Status
from tickets.ticket.stored import SummaryItem

LISTED: Final = 500  # tickets of a list that are read to narrow a search down


@dataclass(frozen=True)
class Conditions:
    """Hold what is asked beside words. None asks nothing; `resolvers` has "" for nobody."""

    query: SearchQuery
    within: Filters
    statuses: frozenset[Status] | None = None
    resolvers: frozenset[str] | None = None
    requesters: frozenset[str] | None = None
    zone: str = clock.UTC_NAME

    def hold(self, row: SummaryItem) -> bool:
        """Tell whether a ticket is what was asked for, whatever its words are."""
        query = self.query
        opened = date.fromisoformat(clock.day_of(row.created_at, self.zone))
        return (
            (self.statuses is None or row.status in self.statuses)
            and (self.resolvers is None or row.resolver in self.resolvers)
            and self._is_requested(row)
            and all(tag in row.tags for tag in query.tags)
            and all(getattr(row, name) == word for name, word in query.choices.items())
            and all(one.takes(row.custom) for one in query.custom)
            and (query.before is None or opened < query.before)
            and (query.after is None or opened >= query.after)
            and self.within.only.matches(row)
        )

    def are_known(self, *, by_list: bool) -> bool:
        """Tell whether the index and, `by_list`, what `listing` read leave nothing to ask of each ticket."""
        query, only = self.query, self.within.only.without("tag")
        if (
            query.choices
            or query.custom
            or query.before
            or query.after
            or only
            or (query.requester and self.requesters is None)
        ):
            return False
        if self.statuses is None and self.resolvers is None:
            return True
        return by_list and (self.resolvers is None or len(self.resolvers) == 1)

    def _is_requested(self, row: SummaryItem) -> bool:
        if self.requesters is not None:
            return row.requester in self.requesters
        name = {folded for word in tokenizer.words(row.requester_name or "") for folded in word.folded}
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


def outside(tenant: TenantContext, query: SearchQuery) -> frozenset[str]:
    """Return the ids of people outside the desk whose address begins with the one that the query names.

    A Query, and a BatchGetItem for those who were merged into them; nothing where the query names no address.
    """
    if "@" not in query.requester:
        return frozenset()
    found = requesters.complete(tenant, query.requester)
    return frozenset(one for person in requesters.stored_people(tenant, [p.id for p in found]) for one in person.ids)


def understood(
    tenant: TenantContext,
    query: SearchQuery,
    within: Filters,
    people: Sequence[ListedMember],
    people_outside: frozenset[str] = frozenset(),
) -> tuple[Conditions, tuple[str, ...]]:
    """Return the conditions with ids for names, and a sentence for each name that nobody has."""
    problems = []
    resolvers = None if within.resolver is None else frozenset({within.resolver})
    if query.assignee:
        named = _ids(tenant, query.assignee, people)
        if not named:
            problems.append(
                _("“assignee:%(assignee)s” was ignored: nobody here is called so.") % {"assignee": query.assignee}
            )
        else:
            resolvers = named if resolvers is None else named & resolvers
    statuses = None if query.statuses is None else frozenset(query.statuses)
    if within.statuses is not None:
        statuses = frozenset(within.statuses) if statuses is None else statuses & frozenset(within.statuses)
    is_named = query.requester == ME or "@" in query.requester
    asking = (_ids(tenant, query.requester, people) | people_outside) if is_named else None
    if asking is not None and not asking:
        problems.append(
            _("Nobody here has the address “%(requester)s”: from: was taken for a part of the requester’s name.")
            % {"requester": query.requester}
        )
    within = replace(within, only=within.only.in_zone(tenant.zone))
    return Conditions(query, within, statuses, resolvers, asking or None, tenant.zone), tuple(problems)


def _called(tenant: TenantContext, query: SearchQuery) -> list[ListedMember]:
    """Return those whom the query may name, at the cost of `members.matching` for each of two names."""
    names = [query.assignee] if query.assignee not in ("", ME, NOBODY) else []
    names += [query.requester] if "@" in query.requester else []
    return [
        one
        for found in fan_out([partial(members.matching, tenant.repository, name) for name in names])
        for one in found
    ]


def _ids(tenant: TenantContext, name: str, people: Sequence[ListedMember]) -> frozenset[str]:
    """Return the ids of those who are meant by a name, a part of it, or a mail address; "" for nobody."""
    if name == ME:
        return frozenset({tenant.user_id})
    if name == NOBODY:
        return frozenset({""})
    return frozenset(one.id for one in people if name in one.name.casefold() or name in one.email.casefold())


# --- the search ---


CHECKED: Final = 30  # proposals whose texts are read
SIFTED: Final = 100  # proposals whose SUMMARYs are read first, where filters are left that the index does not know
SHOWN: Final = 20  # tickets of one page
_EVERYWHERE: Final = Places.TITLE | Places.DESCRIPTION | Places.COMMENT | Places.LABEL
NOTHING_INDEXED: Final = "The tickets of this desk are not indexed yet."
PARTLY_LOST: Final = gettext_noop(
    "A part of the search index is lost. Some tickets may be missing here until it is made anew."
)
TOO_MANY: Final = gettext_noop(
    "So many tickets have these words that not all of them were looked at. Add a word that is rarer."
)

UNREAD: Final = gettext_noop(
    "The history of %(tickets)s is too long to be read to its end. Older comments were searched for single words, "
    "but not for phrases or words with a minus."
)
OLDER: Final = gettext_noop("an older one, which was not read.")
_LISTED: Final = 5  # tickets in a sentence


def parsed(tenant: TenantContext, text: str, *, is_typing: bool = False) -> tuple[SearchQuery, tuple[str, ...]]:
    """Return the query of a text, as `search_query.parse` does. Only an operator needs the desk's definitions."""
    defined = definitions.of(tenant) if ":" in text else definitions.NOTHING_DEFINED
    return search_query.parse(text, is_typing=is_typing, defined=defined)


def find(
    tenant: TenantContext, text: str, *, newest_first: bool = False, further: str = "", within: Filters | None = None
) -> Found:
    """Return the best tickets for what somebody typed; `further` is a former page's cursor.

    `newest_first` asks for those with the highest numbers instead, as a query without words always does.
    Raises Invalid for a query with nothing to search for and for a bad cursor; Throttled, Unavailable.
    """
    query, explanations = parsed(tenant, text)
    binding = ("results", text, newest_first, repr(within))
    start, left, counts = paging.load(further, tenant_id=tenant.tenant_id, query=binding) if further else (0, (), ())
    search = Search(tenant, query, within or Filters(), counts=counts)
    newest_first = newest_first or not query.phrases
    proposed = search.propose(newest_first=newest_first)
    last, is_last = start, True
    read: list[TicketMatch] = []
    for part in search.parts([rank for rank in proposed.best if not further or rank < start], left, start):
        last, is_last = part.last, part.is_last
        nearly = [] if further or not is_last else proposed.nearly
        read += search.matches(part, nearly, is_first=not further)
        if any(map(_is_whole, read)):
            break
    read.sort(key=search.score, reverse=True)
    matches = [match for match in read if match.is_whole]
    if newest_first:
        matches.sort(key=lambda match: match.text.number, reverse=True)
    matches.sort(key=lambda match: match.text.number != query.number)
    unshown = tuple(match.text.number for match in matches[SHOWN:])
    has_more = bool(unshown) or not is_last
    position = [last, unshown, search.counts]
    return Found(
        hits=tuple(search.hit(match) for match in matches[:SHOWN]),
        further=paging.dump(position, tenant_id=tenant.tenant_id, query=binding) if has_more else "",
        explanations=(*explanations, *search.explanations),
        about=len(proposed.best) if proposed.is_complete else None,
        nearly=tuple(search.hit(match) for match in read if not match.is_whole)[:SHOWN],
        is_counted=proposed.is_complete and not search.sifts and index_lookup.tell_all(query),
        rest=len(unshown) + sum(rank < last for rank in proposed.best) if has_more else 0,
    )


class ProposalPage(NamedTuple):
    """Proposals whose texts are read at once, down to the rank `last`, and tickets `left` that matched before.

    `is_last` says that there are no more of them.
    """

    ranks: Sequence[int]
    left: Sequence[int]
    is_last: bool
    last: int


class Search:
    """One search: what was read for it so far, and what it was asked for.

    With `places` the index proposes only what has the words there; `also` are words that it is asked for beside. A page
    ranks as the first one did, by the `counts` of that.
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
        counts: Sequence[int] = (),
    ) -> None:
        if (tag := within.only.get("tag")) and tag not in query.tags:  # the index knows them
            query = replace(query, tags=(*query.tags, tag))
        self.tenant, self.query, self._within, self._also, self._places = tenant, query, within, also, places
        self._conditions = Conditions(query, within, zone=tenant.zone)
        self._lookup = IndexLookup(tenant.repository, self._ask, limit=limit)
        self._reads: list[TermRead] = []
        self._beside: list[TermRead] = []
        self._rarities: dict[int, float] = {}
        self._sifted: dict[int, TicketText] = {}  # tickets with their summaries alone
        self._now = clock.now()
        self.counts = counts
        self.sifts = False
        self.explanations: tuple[str, ...] = ()
        self.in_older: set[int] = set()  # tickets that may have the rest of the query in comments that were not read
        self._unread: set[int] = set()  # these, and those that may have there what was to be left out

    def propose(self, *, newest_first: bool = False, beside: Callable[[], Any] = lambda: None) -> Proposals:
        """Ask the index: two round trips at most. `beside` is read along with the first one."""
        people: list[ListedMember] = []
        others: list[frozenset[str]] = []
        first: list[Callable[[], Any]] = [self._lookup.begin, beside]
        if needs_members(self.query):
            first.append(lambda: people.extend(_called(self.tenant, self.query)))
            first.append(lambda: others.append(outside(self.tenant, self.query)))
        fan_out(first)
        self._conditions, self.explanations = understood(
            self.tenant, self.query, self._within, people, frozenset().union(*others)
        )
        listing = self._conditions.listing(self.tenant)
        answers: list[Any] = fan_out([self._lookup.finish, *([listing] if listing else [])])
        found, among = answers[0], answers[1] if listing else None
        self.sifts = not self._conditions.are_known(by_list=among is not None)
        self._beside = [found[term] for term in self._also]
        self._reads = [found[term] for term in dict.fromkeys(self._terms())]
        newest = (max(read.postings, default=0) for read in self._reads)  # newer than when the tickets were counted
        if len(self.counts) != 1 + len(self._reads):  # of a first page, or the words are asked for in another way now
            self.counts = ranking.counted(self._reads, max(self._lookup.tickets, *newest))
        self._rarities = ranking.rarities(self._reads, self.counts)
        if self._lookup.is_empty and self._lookup.tickets:
            self.explanations += (NOTHING_INDEXED,)
        elif self._lookup.is_damaged:
            self.explanations += (PARTLY_LOST,)
        elif not all(read.is_complete for read in self._reads):
            self.explanations += (TOO_MANY,)
        return ranking.propose(self._reads, counts=self.counts, among=among, newest_first=newest_first)

    def matches(self, part: ProposalPage, nearly: Sequence[int], *, is_first: bool) -> list[TicketMatch]:
        """Read the texts of some proposals and keep those that match, and of others those that nearly do.

        The ticket whose number was typed is looked at on the first page, and so on no other one.
        """
        first = self.query.number if is_first else None
        room = max(0, CHECKED - len(part.ranks))
        proposed = [*part.left, *map(number_of, (*part.ranks, *nearly[:room]))]
        wanted = {first: _EVERYWHERE} if first else {}
        wanted |= {n: self._may_stand(n) for n in proposed if n not in wanted and (is_first or n != self.query.number)}
        read = ticket_texts.read_texts(self.tenant, wanted, self._sifted)
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
        kept = [match for match in found.values() if match and self.holds(match.text)]
        if unread := [f"#{match.text.number}" for match in kept if match.text.number in self._unread]:
            listed = ", ".join(unread[:_LISTED])
            listed = _("%(tickets)s and others") % {"tickets": listed} if len(unread) > _LISTED else listed
            self.explanations += (_(UNREAD) % {"tickets": listed},)
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

    def parts(self, ranks: Sequence[int], left: Sequence[int], start: int) -> list[ProposalPage]:
        """Return of proposals those that one page reads, in two parts where the filters leave many: what to read, and
        what to read if nothing of that matches. One round trip for the summaries of many."""
        chosen = ranks[: max(0, (SIFTED if self.sifts else CHECKED) - len(left))]
        last, is_last = chosen[-1] if chosen else start, len(chosen) == len(ranks)
        room = max(0, CHECKED - len(left))
        if len(chosen) > room:
            self._sifted = ticket_texts.read_summaries(self.tenant, list(map(number_of, chosen)))
            chosen = [r for r in chosen if (text := self._sifted.get(number_of(r))) and self.holds(text)]
        if len(chosen) <= room:
            return [ProposalPage(chosen, left, is_last, last)]
        begin = ProposalPage(chosen[:room], left, False, chosen[room - 1] if room else start)
        return [begin, ProposalPage(chosen[room:], (), is_last, last)]

    def holds(self, text: TicketText) -> bool:
        """Tell whether a ticket is what was asked for beside its words, and no spam."""
        return not text.summary.spam_at and self._conditions.hold(text.summary)

    def newest_by_term(self) -> dict[str, int]:
        """Return the terms that were asked for `also`, those of most tickets first, each with its newest ticket."""
        found = [one for read in self._beside for one in read.by_term.items()]
        found.sort(key=lambda one: (-len(one[1]), one[0]))
        return {term: max(numbers) for term, numbers in found if numbers}

    def score(self, match: TicketMatch) -> float:
        return ranking.score(match, self._rarities, self._now)

    def hit(self, match: TicketMatch) -> Hit:
        """Return how a match is shown."""
        (pieces, source), text = snippets.snippet(match), match.text
        hit = Hit(text.summary, snippets.title(match), pieces, source.where if source else Where.TITLE)
        if not pieces and text.number in self.in_older:
            older = (Piece(_(OLDER), is_match=False),)
            # Not where reading ended: that may be a note, and the cursor that names it can be read.
            unread = text.history[-1].sk if text.rest and text.history else ""
            return replace(hit, snippet=older, where=Where.COMMENT, unread=unread)
        in_title = {place.phrase for one in match.fields if one.where is Where.TITLE for place in one.places}
        is_in_head = text.number == self.query.number or len(in_title) == len(self.query.phrases)
        return replace(hit, entry=source.entry if source else None, is_in_head=is_in_head)

    def _terms(self) -> list[AskedTerm]:
        people = sorted(self._conditions.requesters or ())
        with_notes = self.tenant.is_agent and (self._places is None or Places.COMMENT in self._places)
        terms = index_lookup.asked_terms(self.query, people=people, with_notes=with_notes)
        return [term if term.places else replace(term, places=self._places) for term in terms]

    def _ask(self) -> list[AskedTerm]:
        return [*self._also, *self._terms()]

    def _may_stand(self, number: int) -> Places:
        """Return the places in which words of the query may stand in a ticket, for all that the index knows."""
        asked = {read.term.part for read in self._reads if read.is_complete}
        if self.query.without or not asked.issuperset(range(len(self.query.phrases))):
            return _EVERYWHERE
        found = 0
        for read in self._reads:
            found |= read.postings.get(number, 0)
        return Places(found & _EVERYWHERE)


def named_match(matcher: TextMatcher, query: SearchQuery, text: TicketText) -> TicketMatch | None:
    """Return how the ticket whose number was typed matches, None where the rest of the query is not in it."""
    numbers = {n for n, phrase in enumerate(query.phrases) if phrase.text == str(query.number)}
    match = matcher.match(text, numbers)
    there = {place.phrase for one in match.fields for place in one.places} if match else set()
    return replace(match, is_whole=True) if match and len(there | numbers) == len(query.phrases) else None


def _is_whole(match: TicketMatch | None) -> bool:
    return match is not None and match.is_whole
