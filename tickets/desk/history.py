"""Whole tickets that have a past, built at once: for imports and for the demonstration.

The result has the attributes, index keys, version and counts that creating.py, changing.py and commenting.py would have
written, had they written each entry at its time.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from portal import clock
from tenants.tenancy.context import TenantContext
from tickets.desk.changing import derived
from tickets.ticket import fields, stored
from tickets.ticket.fields import ASSIGNEE, DESCRIPTION, FIELDS, FIXED, RATING, STATUS, SUMMARISED, Values
from tickets.ticket.set_aside import out_of_lists
from tickets.ticket.status_dates import Counting, counted_in
from tickets.ticket.stored import ActivityItem, ChangeMap, DetailItem, LinkMap, SummaryItem

_UNCOUNTED: Final = Counting()


@dataclass(frozen=True)
class PastEntry:
    """One entry of a timeline. `kind` is comment, note or event; an event has a verb and perhaps changes.

    `author` is a user id, "" for somebody without an account. A change is field, text before, text after. The `id` is
    made where there is none; it is unlike that of other entries of the moment. `kept` are the attributes of its item
    that tell of a comment's editing or deletion.
    """

    kind: str
    at: datetime
    author: str
    author_name: str
    body: str = ""
    verb: str = ""
    changes: tuple[tuple[str, str, str], ...] = ()
    id: str = ""
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class History:
    """A ticket as it is now and how it came to be so. `entries` are oldest first; the first opens the ticket.

    `values` are those of its fields by name; the others are as in a new ticket. `identity` is any text that no other
    ticket of the tenant has: the ids of the entries are made from it, so that writing the same history again writes the
    same items. `remembered` is what the ticket remembers for the aggregates, where that is known; otherwise it follows
    from the entries. `links` are kinds and numbers of other tickets.
    """

    identity: str
    values: Values
    created_at: datetime
    updated_at: datetime
    requester: str
    requester_name: str
    resolver_name: str = ""
    entries: tuple[PastEntry, ...] = field(default=(), repr=False)
    remembered: Mapping[str, Any] | None = None
    links: tuple[tuple[str, int], ...] = ()

    @property
    def comment_count(self) -> int:
        return sum(1 for e in self.entries if e.kind == "comment")

    @property
    def version(self) -> int:
        """1 when opened, and one more with each change of fields."""
        return 1 + sum(1 for e in self.entries if e.changes)

    def facts(self, zone: str) -> dict[str, Any]:
        """Return what the summary remembers of the entries for the aggregates, with days in this time zone; see
        `changing.dated`."""
        if self.remembered is not None:
            return dict(self.remembered)
        found: dict[str, Any] = {}
        days: Counter[str] = Counter()
        requester = (self.requester, self.requester_name)
        for entry in self.entries:
            at = clock.stamp(entry.at)
            if entry.kind == "note":
                found["noted_at"] = at
            elif entry.kind == "comment":
                days[stored.day_count(stored.COMMENTED, at, zone)] += 1
                found["commented_at"] = at
                if stored.is_requester(entry.author):
                    days[stored.day_count(stored.RECEIVED, at, zone)] += 1
                elif (entry.author, entry.author_name) != requester:
                    found.setdefault("responded_at", at)
            for name, before, after in entry.changes:
                if name == RATING.name:
                    found["rated_at"] = at
                if name != "status" or fields.is_unresolved(before) == fields.is_unresolved(after):
                    continue
                if fields.is_unresolved(after):
                    days[stored.day_count(stored.REOPENED, at, zone)] += 1
                    found["reopened_at"] = at
                    found.pop("resolved_at", None)  # an import may begin with a resolved ticket
                else:
                    days[stored.day_count(stored.RESOLVED, at, zone)] += 1
                    found["resolved_at"] = at
        return found | {"days": dict(days)}


@dataclass(frozen=True)
class TicketItems:
    """The items of one ticket. A list shows the ticket once `summary` is written, so that one goes last."""

    summary: SummaryItem
    detail: DetailItem
    activity: list[ActivityItem]


def opened(at: datetime, author: str, author_name: str) -> PastEntry:
    return PastEntry("event", at, author, author_name, verb="opened the ticket")


def changed(at: datetime, author: str, author_name: str, *changes: tuple[str, str, str]) -> PastEntry:
    return PastEntry("event", at, author, author_name, verb="changed", changes=changes)


def collection(tenant: TenantContext, number: int, history: History, *, counting: Counting = _UNCOUNTED) -> TicketItems:
    pk = tenant.repository.key(stored.ticket, number)
    digest = hashlib.blake2b(history.identity.encode(), digest_size=16).hexdigest()
    activity = [_activity(pk, digest, position, entry) for position, entry in enumerate(history.entries)]
    detail = DetailItem(pk, stored.DETAIL, description=_values(history)[DESCRIPTION.name])
    make: Any = LinkMap
    detail.links = [make(kind=kind, number=other) for kind, other in history.links] or None
    return TicketItems(summary(tenant, number, history, counting=counting), detail, activity)


def _values(history: History) -> Values:
    return {field.name: field.initial for field in FIELDS} | dict(history.values)


def summary(tenant: TenantContext, number: int, history: History, *, counting: Counting = _UNCOUNTED) -> SummaryItem:
    values, facts = _values(history), history.facts(tenant.zone)
    made = SummaryItem(
        tenant.repository.key(stored.ticket, number),
        stored.SUMMARY,
        number=number,
        **{field.name: field.stored(values[field.name]) for field in (*SUMMARISED, *FIXED)},
        resolver_name=history.resolver_name,
        requester=history.requester,
        requester_name=history.requester_name,
        tenant_requester=stored.place_of_requester(tenant.tenant_id, history.requester),
        created_at=clock.stamp(history.created_at),
        comment_count=history.comment_count,
        version=history.version,
        epoch=counting.epoch,
        count_form=counting.form,
        zone=counted_in(tenant),
        **facts,
        **derived(
            tenant,
            number,
            status=str(values[STATUS.name]),
            resolver=values[ASSIGNEE.name],
            updated_at=clock.stamp(history.updated_at),
            noted_at=facts.get("noted_at") or "",
        ),
    )
    if made.spam_at:
        for name, value in out_of_lists(tenant, made, stored.SPAM_ASIDE).items():
            setattr(made, name, value)
    return made


def _activity(pk: str, digest: str, position: int, entry: PastEntry) -> ActivityItem:
    at = clock.stamp(entry.at)
    return ActivityItem(
        pk,
        # The position comes first: entries of the same moment keep their order.
        stored.activity(at, entry.id or f"{position:05x}{digest[:7]}"),
        kind=entry.kind,
        at=at,
        author=entry.author,
        author_name=entry.author_name,
        body=entry.body,
        verb=entry.verb,
        changes=[
            ChangeMap(field=f, before=b, after=a)  # type: ignore[no-untyped-call]  # PynamoDB leaves it unannotated
            for f, b, a in entry.changes
        ],
        **entry.kept,
    )
