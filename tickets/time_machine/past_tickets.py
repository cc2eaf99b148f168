"""Tell what a ticket was at a moment: the ticket as it is now, with each later change of its history taken back.

Every change has its entry, written in the same transaction, so the result is exact. Two things were not always kept:
the text of a description before it was changed, and the id of an assignee. Where an entry lacks one of them, that field
is None here. docs/time-machine.md says more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext, gettext_noop

from portal import clock, plain_text
from portal.dynamo.client import fan_out
from portal.dynamo.store import Item
from tenants.tenancy.context import TenantContext
from tickets.desk import comment_changes, timelines
from tickets.ticket import fields, stored
from tickets.ticket.fields import ASSIGNEE, BY_NAME, FIELDS, REQUESTER, TITLE, Status, TicketField, Values
from tickets.ticket.stored import TICKET_ITEMS, ActivityItem, ChangeMap, CounterItem, SummaryItem

_UNKNOWN: Final = gettext_noop("(not kept)")
PAGE_SIZE: Final = 25  # numbers of a page: each ticket that has changed since costs a Query
LOOKED: Final = 8  # such groups of numbers that are looked through for a page of tickets of one kind
PROBES: Final = 50  # tickets that are read at once to find where a moment lies among the numbers
ENTRIES_SHOWN: Final = 50  # of the history until then


@dataclass(frozen=True)
class PastTicket:
    """A ticket as it was. `values` are those of its fields by name, None for a description or an assignee's id that was
    not kept."""

    number: int
    values: Values
    resolver_name: str
    requester_name: str
    created_at: str
    comment_count: int
    version: int

    @classmethod
    def of(cls, summary: SummaryItem, description: str | None = None) -> PastTicket:
        return cls(
            number=int(summary.number),
            values={field.name: getattr(summary, field.name, description) for field in FIELDS},
            resolver_name=summary.resolver_name,
            requester_name=summary.requester_name,
            created_at=summary.created_at,
            comment_count=int(summary.comment_count),
            version=summary.version_told,
        )

    @property
    def title(self) -> str:
        return str(self.values[TITLE.name])

    @property
    def shown(self) -> dict[str, str]:
        """Return the fields as pages show them, "(not kept)" where nobody knows."""
        values = {**self.values, ASSIGNEE.name: self.resolver_name}
        return {
            name: gettext(_UNKNOWN) if value is None else BY_NAME[name].shown(value) for name, value in values.items()
        }


@dataclass(frozen=True)
class ThenAndNow:
    """A ticket at a moment, None where it did not exist yet, and now. `since` are the later entries, newest first.

    `until` are the last ENTRIES_SHOWN entries until then, oldest first.
    """

    summary: SummaryItem
    then: PastTicket | None
    now: PastTicket
    since: tuple[ActivityItem, ...]
    until: tuple[ActivityItem, ...] = ()

    @property
    def differing(self) -> frozenset[str]:
        """Return the names of the fields that are not what they were; what was not kept is not known to be the same.

        An assignee is the same person whatever they are called by now, and where the id was not kept whoever has the
        name.
        """
        then, now = self.then, self.now
        if then is None:
            return frozenset()
        differing = {name for name, value in then.values.items() if value != now.values[name]}
        if then.values[ASSIGNEE.name] is None and then.resolver_name == now.resolver_name:
            differing.discard(ASSIGNEE.name)
        return frozenset(differing)


def read(tenant: TenantContext, number: int, at: str) -> ThenAndNow:
    """Return a ticket at this moment, a stamp, and now. Raises NotFound.

    Two consistent Queries at the same time: what is newer than the moment, and the entries before; the first one goes
    on where it is more than 1 MB.
    """
    later = clock.stamp(clock.parse(at), offset=1)
    reads: list[Callable[[], Any]] = [partial(of, tenant, number, later) for of in (_newer, _until)]
    newer, until = fan_out(reads)
    return replace(_then_and_now(number, newer, at), until=tuple(comment_changes.as_of(entry, at) for entry in until))


def _then_and_now(number: int, newer: Sequence[Item], at: str) -> ThenAndNow:
    summary, description, entries = timelines.parted(number, newer)
    now = PastTicket.of(summary, description)
    then = taken_back(now, entries) if summary.created_at <= at else None
    return ThenAndNow(summary, then, now, tuple(entries))


def taken_back(now: PastTicket, entries: Iterable[ActivityItem]) -> PastTicket:
    """Return the ticket as it was before these entries of its history, newest first."""
    values, resolver_name, requester_name = dict(now.values), now.resolver_name, now.requester_name
    comments = changes = 0
    for entry in entries:
        comments += entry.kind == "comment"
        changes += bool(entry.changes)
        for change in entry.changes:
            if field := fields.of_change(change.field):
                values[field.name] = _before(field, values[field.name], change, entry)
            if change.field == ASSIGNEE.name:
                resolver_name = change.before
            if change.field == REQUESTER:
                requester_name = change.before
    return replace(
        now,
        values=values,
        resolver_name=resolver_name,
        requester_name=requester_name,
        comment_count=now.comment_count - comments,
        version=now.version - changes,
    )


def _before(field: TicketField, value: Any, change: ChangeMap, entry: ActivityItem) -> Any:
    """Return the value before a change: what the history tells, or what the entry keeps of it, None for neither."""
    if not field.kept_as:
        return field.before(value, change.field, change.before)
    kept = getattr(entry, field.kept_as)
    return kept if kept is not None else None if change.before else ""


# --- many tickets ---


@dataclass(frozen=True)
class PastPage:
    """Tickets that existed at a moment, the highest number first, among the numbers from `first` down to `lower`.

    `lower` and `higher` are where the pages beside this one begin, None at the ends.
    """

    tickets: list[ThenAndNow]
    first: int
    lower: int | None
    higher: int | None


def page(
    tenant: TenantContext, at: str, *, first: int | None = None, only: Callable[[ThenAndNow], bool] | None = None
) -> PastPage:
    """Return the tickets that existed at this moment, by number; without `first`, where the moment lies among them.

    A BatchGetItem of summaries, then at the same time a Query for each ticket that has changed since. With `only`,
    which takes some of them, that is done for up to LOOKED groups of numbers, until a page is full. Where the page
    begins is found by reading the counter, then PROBES summaries at once, some three times for 100,000 tickets.
    """
    counter = tenant.repository.get(CounterItem, stored.counter, sort=stored.COUNTER_TICKET, consistent=True)
    last = int(counter.last) if counter else 0
    begin = min(max(first if first is not None else _highest(tenant, at, last), 1), max(last, 1))
    span = PAGE_SIZE * (LOOKED if only else 1)
    found: list[ThenAndNow] = []
    lower = begin
    while lower > max(begin - span, 0) and len(found) < PAGE_SIZE:
        numbers = range(lower, max(lower - PAGE_SIZE, 0), -1)
        found += [one for one in many(tenant, numbers, at) if one.then is not None and (only is None or only(one))]
        lower = numbers[-1] - 1
    return PastPage(found, begin, lower if lower > 0 else None, min(begin + span, last) if begin < last else None)


def many(tenant: TenantContext, numbers: Sequence[int], at: str) -> list[ThenAndNow]:
    """Return those of up to 100 tickets that exist, in the order of `numbers`, without their descriptions."""
    found = _summaries(tenant, numbers)
    later = clock.stamp(clock.parse(at), offset=1)
    changed = [n for n, s in found.items() if s.created_at <= at <= s.updated_at]
    newer = (
        dict(zip(changed, fan_out([partial(_newer, tenant, n, later) for n in changed]), strict=True))
        if changed
        else {}
    )
    return [_then_and_now(n, newer[n], at) if n in newer else _as_it_is(found[n], at) for n in numbers if n in found]


def _as_it_is(summary: SummaryItem, at: str) -> ThenAndNow:
    now = PastTicket.of(summary)
    return ThenAndNow(summary, now if summary.created_at <= at else None, now, ())


def _highest(tenant: TenantContext, at: str, last: int) -> int:
    """Return a number close above those of the tickets that existed at this moment.

    Numbers are given in the order of time, but for imported tickets: those may have higher ones, which the page's links
    lead to.
    """
    low, high = 1, last
    while high - low >= PAGE_SIZE:
        step = -(-(high - low) // PROBES)
        probes = range(low, high + 1, step)
        existed = [n for n, s in _summaries(tenant, probes).items() if s.created_at <= at]
        low = max(existed, default=low)
        high = min(low + step - 1, high)
    return high


def _summaries(tenant: TenantContext, numbers: Sequence[int]) -> dict[int, SummaryItem]:
    if not numbers:
        return {}
    wanted = [(stored.ticket, (number,), stored.SUMMARY) for number in numbers]
    found = tenant.repository.get_many(SummaryItem, wanted)
    return {number: item for number, item in zip(numbers, found, strict=True) if item is not None}


def _newer(tenant: TenantContext, number: int, later: str) -> list[Item]:
    """Return the summary, the detail and the entries from this moment on, newest first."""
    newer = (stored.activity_from(later), stored.SUMMARY)
    return list(
        tenant.repository.query_all(
            TICKET_ITEMS, stored.ticket, number, between=newer, descending=True, consistent=True
        )
    )


def _until(tenant: TenantContext, number: int, later: str) -> list[ActivityItem]:
    older = (stored.ACTIVITY_PREFIX, stored.activity_from(later))
    found = tenant.repository.query(
        ActivityItem, stored.ticket, number, between=older, descending=True, limit=ENTRIES_SHOWN, consistent=True
    )
    return found.items[::-1]


# --- filter tickets by what they were at a moment ---


NAMES = ("status", "assignee", "tag", "changed")


@dataclass(frozen=True)
class PastFilter:
    """Hold what a ticket has to have been, each "" for anything.

    `assignee` is a part of the name, which is what a history keeps; `changed` is "yes" for those alone that are
    different now.
    """

    status: str = ""
    assignee: str = ""
    tag: str = ""
    changed: str = ""

    @classmethod
    def of(cls, params: Mapping[str, str]) -> PastFilter:
        """Read the filters of an address. Raises Invalid for a status that there is not."""
        told = cls(**{name: params.get(name, "").strip() for name in NAMES})
        if told.status and told.status not in {status.value for status in Status}:
            raise fields.no_such(fields.STATUS)
        return cls(told.status, told.assignee, plain_text.word(told.tag), told.changed and "yes")

    @property
    def params(self) -> dict[str, str]:
        return {name: value for name in NAMES if (value := getattr(self, name))}

    def takes(self, found: ThenAndNow) -> bool:
        """Tell whether a ticket was like this. One that did not exist was not."""
        then = found.then
        if then is None or (self.status and then.values["status"] != self.status):
            return False
        if self.changed and not found.differing:
            return False
        is_theirs = self.assignee.casefold() in then.resolver_name.casefold()
        return is_theirs and (not self.tag or self.tag in then.values["tags"])
