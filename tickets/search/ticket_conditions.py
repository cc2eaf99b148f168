"""Decide what a ticket must be beside its words: status, people, tags, days. Asked of each summary that is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from tenants.membership import members
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tickets.counting.contributions import UNRESOLVED
from tickets.desk import lists
from tickets.desk.ticket_rows import TicketRow
from tickets.search import tokenizer
from tickets.search.parsed_query import ME, NOBODY, Filters, SearchQuery
from tickets.search.ticket_texts import TicketText
from tickets.ticket.fields import Status

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
        row, query = TicketRow.from_raw(dict(text.raw_summary)), self.query
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

        What it returns is None, too, where the list turned out to be longer than LISTED.
        """
        resolver = next(iter(self.resolvers)) if self.resolvers and len(self.resolvers) == 1 else None
        if resolver is None and not (self.statuses and self.statuses.issubset(UNRESOLVED)):
            return None
        statuses = [status for status in Status if self.statuses is None or status in self.statuses]

        def read() -> set[int] | None:
            page = lists.page(tenant, status=statuses, resolver=resolver, size=LISTED)
            return None if page.next else {row.number for row in page.rows}

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
