"""Read a whole ticket with its history, and make of it what it was at a moment: without its later changes and entries.

Exports and rehearsals use it. docs/restore.md says what a history does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from portal import clock
from portal.errors import NotFound
from tenants.tenancy.context import TenantContext
from tickets.desk import comment_changes, history, timelines
from tickets.desk.history import History, PastEntry
from tickets.ticket import stored
from tickets.ticket.fields import ASSIGNEE, DESCRIPTION, REQUESTER
from tickets.ticket.stored import TICKET_ITEMS, ActivityItem, DetailItem, LinkMap, SummaryItem
from tickets.time_machine import past_tickets
from tickets.time_machine.past_tickets import PastTicket

_TRIES: Final = 3  # for a ticket that changes while it is read
_BEHIND: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class WholeTicket:
    """Hold a ticket with all of its activity, oldest first, now or at a moment; `as_of` says what is `not_kept`."""

    summary: SummaryItem
    description: str
    activity: tuple[ActivityItem, ...]
    addresses: tuple[str, ...] = ()  # of the requester, where it is a person outside the desk
    not_kept: tuple[str, ...] = ()
    links: tuple[LinkMap, ...] = ()

    @property
    def adds_up(self) -> bool:
        """Tell whether the summary and the history are of one moment: a change writes both, a reading may part them."""
        comments = sum(one.kind == "comment" for one in self.activity)
        versions = 1 + sum(bool(one.changes) for one in self.activity)
        return (comments, versions) == (int(self.summary.comment_count), self.summary.version_told)


def read(tenant: TenantContext, number: int) -> WholeTicket | None:
    """Return one ticket, or None where there is none. It is read again, consistently, where it does not add up."""
    found = _read(tenant, number, consistent=False)
    for _ in range(_TRIES - 1):
        if found is None or found.adds_up:
            break
        found = _read(tenant, number, consistent=True)
    return found


def _read(tenant: TenantContext, number: int, *, consistent: bool) -> WholeTicket | None:
    # Newest first, so that the summary comes first: what is added meanwhile is then in neither.
    found = tenant.repository.query_all(TICKET_ITEMS, stored.ticket, number, descending=True, consistent=consistent)
    items = list(found)
    links = next((tuple(one.links or ()) for one in items if isinstance(one, DetailItem)), ())
    try:
        summary, description, activity = timelines.parted(number, items)
    except NotFound:
        return None
    return WholeTicket(summary, description, tuple(reversed(activity)), links=links)


# --- at a moment ---


def as_of(tenant: TenantContext, now: WholeTicket, *, at: str) -> WholeTicket | None:
    """Return the ticket at this moment, a stamp, or None where it did not exist yet.

    A field whose value of then was not kept has that of now, and is named in `not_kept`.
    """
    if now.summary.created_at > at:
        return None
    now = replace(now, activity=tuple(comment_changes.as_of(one, at) for one in now.activity))
    later = [one for one in reversed(now.activity) if one.at > at]
    if not later:
        return now
    then = past_tickets.taken_back(PastTicket.of(now.summary, now.description), later)
    not_kept = tuple(name for name, value in then.values.items() if value is None)
    of_now = {DESCRIPTION.name: now.description, ASSIGNEE.name: now.summary.resolver}
    values = {name: of_now[name] if value is None else value for name, value in then.values.items()}
    resolver_name = now.summary.resolver_name if ASSIGNEE.name in not_kept else then.resolver_name
    until = tuple(one for one in now.activity if one.at <= at)
    entries = tuple(map(_entry, until, _moments(until)))
    past = History(
        identity="",
        values=values,
        created_at=clock.parse(then.created_at),
        updated_at=max((one.at for one in entries if one.kind != "note"), default=clock.parse(then.created_at)),
        requester=_requester(now, later),
        requester_name=then.requester_name,
        resolver_name=resolver_name,
        entries=entries,
    )
    summary = history.summary(tenant, then.number, past)
    return replace(now, summary=summary, description=str(values[DESCRIPTION.name]), activity=until, not_kept=not_kept)


def _requester(now: WholeTicket, later: Sequence[ActivityItem]) -> str:
    """Return the id of the requester before these entries, newest first."""
    requester = now.summary.requester
    for entry in later:
        if any(change.field == REQUESTER for change in entry.changes):
            requester = entry.former_requester or ""
    return requester


def _moments(entries: Sequence[ActivityItem]) -> Iterator[datetime]:
    """Yield when each entry was made. An event that a comment led to is told a microsecond after it, to come behind it;
    the ticket remembers the moment of the comment."""
    before: datetime | None = None
    for one in entries:
        at = clock.parse(one.at)
        if before is None or one.kind != "event" or at - before != _BEHIND:
            before = at
        yield before


def _entry(one: ActivityItem, at: datetime) -> PastEntry:
    changes = tuple((change.field, change.before, change.after) for change in one.changes)
    return PastEntry(one.kind, at, one.author, one.author_name, one.body, one.verb, changes)
