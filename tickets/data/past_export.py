"""Make of a whole ticket what it was at a moment, for a file: its later changes taken back, its later entries left out.

The file has the format of every export of tickets, so `import_archive` takes it into any desk. docs/restore.md says
what a history does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from portal import clock
from tenants.tenancy.context import TenantContext
from tickets.data.exporting import WholeTicket
from tickets.desk import comment_changes, history
from tickets.desk.history import History, PastEntry
from tickets.ticket.fields import ASSIGNEE, DESCRIPTION, REQUESTER
from tickets.ticket.stored import ActivityItem
from tickets.time_machine import past_tickets
from tickets.time_machine.past_tickets import PastTicket

_BEHIND: Final = timedelta(microseconds=1)


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
    summary = history.collection(tenant, then.number, past).summary
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
