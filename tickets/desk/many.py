"""Change fields of many tickets, each by itself, and take changes back: all that allow it in one transaction.

Each ticket is changed as it was read in the same call, and holds only if it is still so; one that others change in
between is read again. Taking back reads the entry of the change in the history, which tells what the ticket was before,
and writes that where nobody has changed the same fields since: them, and their part in the numbers, as if it had never
changed. Both ways stay in the timeline.

How many: DynamoDB takes 100 items in a transaction. Each ticket needs two of them, its summary and its entry in the
timeline. One row of the outbox can tell of all of them, and its place is kept free whether anybody has subscribed or
not. So 49, which is also the size of a page of the queue.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Protocol

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from delivery.outbox.publisher import Event, publish
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.store import TRANSACTION_LIMIT, Transaction, chunked
from portal.errors import Conflict, Invalid, TransactionRefused
from portal.web import locales
from portal.web.locales import declare_stored, in_sentence
from tenants.tenancy.context import TenantContext
from tickets.desk import changing, timelines, undoing
from tickets.desk.changing import ITEMS_PER_REVISION, EditConflict, EntryOfChange, Present, Revision, Wishes
from tickets.desk.undoing import Undone
from tickets.groups.assigning import Assignee
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.sla import policy_versions
from tickets.ticket import fields, stored
from tickets.ticket.fields import ASSIGNEE, BY_NAME, DESCRIPTION, REQUESTER, STATUS, TAGS
from tickets.ticket.set_aside import SetAside
from tickets.ticket.stored import ActivityItem, DetailItem, SummaryItem

_OUTBOX_ROW: Final = 1  # that tells of all of them
MOST: Final = (TRANSACTION_LIMIT - _OUTBOX_ROW) // ITEMS_PER_REVISION  # tickets, while the desk is not moved
SUBJECT: Final = "tickets"  # of what is told of several together
_ATTEMPTS: Final = 6  # of changes that others overtake
_CHANGED_AGAIN: Final = gettext_noop("has been changed again since and stays as it is")
# Jobs keep reasons in English.
declare_stored(gettext_noop("was merged into ticket %(number)s"))
declare_stored(gettext_noop("was refused: %(why)s"))
declare_stored(gettext_noop("was changed meanwhile: %(fields)s"))
_BUSY: Final = gettext_noop("is being changed by somebody else at this moment")


def limit(tenant: TenantContext, *, beside: int = 0) -> int:
    """Return how many tickets of this desk can be changed together, with so many other members beside them."""
    others = _OUTBOX_ROW + tenant.repository.extra_members + beside
    timers = bool(policy_versions.latest(tenant))  # each ticket with clocks may wait for another moment
    return (TRANSACTION_LIMIT - others) // (ITEMS_PER_REVISION + timers)


# --- what is to be changed ---


@dataclass(frozen=True)
class TicketEdit:
    """Values that fields of many tickets are to have, by name, and tags to add to and to remove from those they have.

    `values` are as `Wishes` takes them. Make one by `TicketEdit.of`, which checks them.
    """

    values: Mapping[str, Any] = field(default_factory=dict, hash=False)
    add_tags: tuple[str, ...] = ()
    remove_tags: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, values: Mapping[str, Any], *, add_tags: Sequence[str] = (), remove_tags: Sequence[str] = ()
    ) -> TicketEdit:
        """Return the edit as tickets hold its values. Raises Invalid, also for one that asks for nothing."""
        wishes = Wishes(**values).cleaned()
        added, removed = (tuple(fields.tag_list(",".join(tags))) for tags in (add_tags, remove_tags))
        if not (wishes.values or added or removed):
            raise Invalid(_("Choose what to change."))
        return cls(dict(wishes.values), added, removed)

    def wishes(self, summary: SummaryItem) -> Wishes:
        """Return what one ticket is to be. Raises Invalid for too many tags."""
        values = dict(self.values)
        if self.add_tags or self.remove_tags:
            tags = values.get(TAGS.name, summary.tags)
            kept = [tag for tag in tags if tag not in self.remove_tags]
            values[TAGS.name] = fields.tag_list(",".join([*kept, *(tag for tag in self.add_tags if tag not in kept)]))
        return Wishes(**values)

    def dump(self) -> str:
        values = {name: BY_NAME[name].dumped(value) for name, value in self.values.items()}
        return json.dumps([values, self.add_tags, self.remove_tags])

    @classmethod
    def load(cls, text: str) -> TicketEdit:
        """Return the edit that `dump` made this of."""
        values, added, removed = json.loads(text)
        return cls.of(values, add_tags=added, remove_tags=removed)


# --- what came of it ---


CHANGED, UNCHANGED, REFUSED = "changed", "unchanged", "refused"


@dataclass(frozen=True)
class TicketOutcome:
    """Say what became of one ticket: changed, unchanged, or refused, and then why. `title` is "" for none."""

    number: int
    did: str
    title: str = ""
    reason: str = ""
    entry: EntryOfChange | None = None

    @property
    def sentence(self) -> str:
        """Why a ticket was refused, as a sentence."""
        return f"#{self.number} {self.title} {self.reason}.".replace("  ", " ")


class Join(Protocol):
    """Add a member to the transaction of several tickets: a record that is written with their outcomes or not at all.

    Its refusal ends the change by TransactionRefused.
    """

    def __call__(self, transaction: Transaction, outcomes: Sequence[TicketOutcome]) -> None: ...


class LeftAlone(Conflict):
    """One ticket is left as it is; the message goes on after its name."""


@dataclass(frozen=True)
class Read:
    """Tickets as one attempt has read them: their summaries and, by the same numbers, entries and descriptions."""

    summaries: Mapping[int, SummaryItem]
    entries: Mapping[int, ActivityItem] = field(default_factory=dict)
    descriptions: Mapping[int, str] = field(default_factory=dict)


Revise = Callable[[Read, SummaryItem, str, str], Revision]


@dataclass
class _Attempt:
    """One attempt to write several tickets together, as far as it is put together."""

    found: Read
    entry_id: str
    begun: datetime = field(default_factory=lambda: clock.now())  # the clock of now, which tests set
    transaction: Transaction = field(default_factory=Transaction)
    told: list[Event] = field(default_factory=list)

    def add(self, position: int, number: int, revise: Revise) -> TicketOutcome:
        """Add the revision of a ticket, and say what comes of it where the transaction is written."""
        summary = self.found.summaries.get(number)
        if summary is None:
            return TicketOutcome(number, REFUSED, reason=_("does not exist"))
        if summary.is_aside:
            return TicketOutcome(number, REFUSED, summary.title, SetAside(summary).why)
        try:
            # A microsecond apart, so that lists have one order for them.
            revision = revise(self.found, summary, clock.stamp(self.begun, offset=position), self.entry_id)
        except (LeftAlone, Invalid, EditConflict) as error:
            return TicketOutcome(number, REFUSED, summary.title, _reason(error))
        if not revision.changes:
            return TicketOutcome(number, UNCHANGED, summary.title)
        written, events = revision.write(self.transaction)
        self.told += events
        return TicketOutcome(number, CHANGED, summary.title, entry=written.changed)


def _write_each(
    tenant: TenantContext, numbers: Sequence[int], read: Callable[[], Read], revise: Revise, join: Join | None
) -> list[TicketOutcome]:
    """Make the revisions of up to `limit` tickets in one transaction, and return what became of each.

    `revise` gets what was read, a ticket, and the moment and the id of its entry; it raises LeftAlone, Invalid or
    EditConflict for one that is left as it is. Tickets that others change meanwhile are read again, and in the end
    left out.
    """
    entry_id, stubborn = changing.new_entry_id(), set[int]()

    def unless_busy(found: Read, summary: SummaryItem, at: str, entry_id: str) -> Revision:
        if int(summary.number) in stubborn:
            raise LeftAlone(_(_BUSY))
        return revise(found, summary, at, entry_id)

    for left in reversed(range(_ATTEMPTS)):
        attempt = _Attempt(read(), entry_id)
        outcomes = [attempt.add(position, number, unless_busy) for position, number in enumerate(numbers)]
        if not len(attempt.transaction) and join is None:
            return outcomes
        publish(tenant, attempt.transaction, *attempt.told, subject=SUBJECT, at=clock.stamp(attempt.begun))
        if join is not None:
            join(attempt.transaction, outcomes)
        try:
            tenant.repository.transact(attempt.transaction)
        except TransactionRefused as refused:
            blamed = {one.number for one in outcomes if one.entry and refused.reason(str(one.number))}
            if not left or not refused.is_passing(*map(str, blamed)):
                raise
            stubborn |= blamed if left <= _ATTEMPTS // 2 else set()
        else:
            return outcomes
    raise AssertionError("the last attempt returns or raises")


def _reason(error: Conflict | Invalid) -> str:
    if isinstance(error, EditConflict):
        names = ", ".join(in_sentence(fields.label_of(name)) for name in error.since.before)
        return _("was changed meanwhile: %(fields)s") % {"fields": names} if names else _("was changed meanwhile")
    text = error.message.rstrip(".")
    return text if isinstance(error, LeftAlone) else _("was refused: %(why)s") % {"why": text}


def edit(
    tenant: TenantContext,
    numbers: Mapping[int, int | None],
    wanted: TicketEdit,
    *,
    join: Join | None = None,
    belongs: Callable[[SummaryItem], bool] = lambda summary: True,
) -> list[TicketOutcome]:
    """Change up to `limit` tickets, each for itself. The numbers have the version that somebody saw, None for any.

    One whose same field was changed since that version is refused, as is one that does not belong any more. One
    BatchGetItem and one transaction; one Query more for each ticket that has another version than was seen, and what
    `assigning.for_group` takes where they come into a group. Raises Invalid for an assignee who can have no tickets.
    """
    resolver = wanted.values.get(ASSIGNEE.name)
    name = changing.resolver_name(tenant, resolver) if resolver else ""
    given: dict[int, Assignee] = {}

    def revise(found: Read, summary: SummaryItem, at: str, entry_id: str) -> Revision:
        if not belongs(summary):
            raise LeftAlone(_("is no longer in this list"))
        seen = numbers[int(summary.number)]
        since = timelines.changes_since(tenant, summary, int(summary.version) if seen is None else seen)
        description = found.descriptions.get(int(summary.number))
        wishes, assigned = wanted.wishes(summary), name
        if (got := given.get(int(summary.number))) and ASSIGNEE.name not in since.before:
            wishes, assigned = wishes.also(**{ASSIGNEE.name: got.id}), got.name
        present = Present(summary, description, assigned)
        return Revision(tenant, wishes, present, since, at=at, entry_id=entry_id)

    def read() -> Read:
        summaries = stored_summaries(tenant, list(numbers))
        changed = [one for one in summaries.values() if belongs(one) and not one.is_aside]
        given.update(changing.given_by_group(tenant, Wishes(**wanted.values), changed))
        is_described = DESCRIPTION.name in wanted.values
        return Read(summaries, descriptions=_descriptions(tenant, list(numbers)) if is_described else {})

    return _write_each(tenant, list(numbers), read, revise, join)


def stored_summaries(tenant: TenantContext, numbers: Sequence[int]) -> dict[int, SummaryItem]:
    """Return those of these tickets that exist as they are now: one consistent BatchGetItem, none for no numbers."""
    wanted = [(stored.ticket, (number,), stored.SUMMARY) for number in numbers]
    found = tenant.repository.get_many(SummaryItem, wanted) if wanted else []
    return {int(item.number): item for item in found if item}


def _descriptions(tenant: TenantContext, numbers: Sequence[int]) -> dict[int, str]:
    found = tenant.repository.get_many(DetailItem, [(stored.ticket, (n,), stored.DETAIL) for n in numbers])
    return {n: item.description if item else "" for n, item in zip(numbers, found, strict=True)}


# --- taking back ---


def receipt(tenant: TenantContext, entries: Sequence[EntryOfChange | None]) -> str:
    """Return a receipt for changes that have one entry id, "" where there are none, or too many."""
    made = [one for one in entries if one is not None]
    return undoing.receipt(tenant, _KIND, packed(made)) if made else ""


def packed(made: Sequence[EntryOfChange]) -> list[Any]:
    """Return entries with one id as short JSON values."""
    begun = clock.parse(made[0].at)
    rows = [[one.number, one.version, (clock.parse(one.at) - begun) // timedelta(microseconds=1)] for one in made]
    return [made[0].at, made[0].entry_id, *rows]


def unpacked(values: Sequence[Any]) -> list[EntryOfChange]:
    """Return the entries that `packed` made this of."""
    begun, entry_id, *rows = values
    moment = clock.parse(begun)
    return [EntryOfChange(n, version, clock.stamp(moment, offset=offset), entry_id) for n, version, offset in rows]


def take_back(
    tenant: TenantContext, entries: Sequence[EntryOfChange], *, join: Join | None = None
) -> list[TicketOutcome]:
    """Undo the changes of up to `limit` tickets whose same fields nobody has changed again since, and return what
    became of each.

    One BatchGetItem and one transaction; one BatchGetItem more for descriptions, a read for each former assignee, and a
    Query for each ticket that was changed since.
    """
    by_number = {one.number: one for one in entries}
    names: dict[str, str | None] = {}

    def read() -> Read:
        wanted: list[Any] = []
        for one in by_number.values():
            pk = tenant.repository.key(stored.ticket, one.number)
            wanted += [(SummaryItem, pk, stored.SUMMARY), (ActivityItem, pk, stored.activity(one.at, one.entry_id))]
        found = tenant.repository.get_all(wanted, consistent=True)
        summaries = {n: s for n, s in zip(by_number, found[::2], strict=True) if s}
        told = {n: e for n, e in zip(by_number, found[1::2], strict=True) if e}
        described = [n for n, entry in told.items() if entry.former_description is not None]
        people = {e.former_resolver for e in told.values() if e.former_resolver} - names.keys()
        names.update(zip(people, fan_out([partial(_name, tenant, who) for who in people]), strict=True))
        return Read(summaries, told, _descriptions(tenant, described) if described else {})

    def revise(found: Read, summary: SummaryItem, at: str, entry_id: str) -> Revision:
        number = int(summary.number)
        entry = found.entries.get(number)
        since = timelines.changes_since(tenant, summary, by_number[number].version)
        if entry is None or not since.is_known or since.before.keys() & {change.field for change in entry.changes}:
            raise LeftAlone(_(_CHANGED_AGAIN))
        wishes = _as_before(tenant, entry)
        former = entry.former_resolver or ""
        if (name := names.get(former, "")) is None:
            raise LeftAlone(_("stays as it is, because its former assignee can have no tickets any more"))
        present = Present(summary, found.descriptions.get(number), name)
        return Revision(tenant, wishes, present, at=at, entry_id=entry_id)

    return _write_each(tenant, list(by_number), read, revise, join)


def _name(tenant: TenantContext, user_id: str) -> str | None:
    try:
        return changing.resolver_name(tenant, user_id)
    except Invalid:
        return None


def _as_before(tenant: TenantContext, entry: ActivityItem) -> Wishes:
    """Return what a ticket was before the change of this entry. Raises LeftAlone where that is not known any more."""
    values: dict[str, Any] = {}
    person: Requester | None = None
    for change in entry.changes:
        if change.field == REQUESTER:
            former = entry.former_requester or ""
            found = requesters.find(tenant, former) if stored.is_requester(former) else None
            person = found or Requester(former, name=change.before)
        elif change.field == DESCRIPTION.name:
            values[DESCRIPTION.name] = entry.former_description
        elif change.field == ASSIGNEE.name:
            values[ASSIGNEE.name] = entry.former_resolver or ""
        elif field := fields.of_change(change.field):
            values[field.name] = field.wish(values.get(field.name), change.field, change.before)
    forgets = STATUS.name in values
    return Wishes(restoring=gettext_noop("undid a change:"), forgets=forgets, requester=person, **values).cleaned()


def _undo(tenant: TenantContext, values: list[Any]) -> Undone:
    entries = unpacked(values)
    outcomes = [outcome for some in chunked(entries, limit(tenant)) for outcome in take_back(tenant, some)]
    return undone(outcomes)


def undone(outcomes: Sequence[TicketOutcome]) -> Undone:
    done = [one for one in outcomes if one.did == CHANGED]
    left = tuple(one.sentence for one in outcomes if one.did == REFUSED)
    if not done:
        return Undone("", left, count=len(outcomes))
    if len(outcomes) == 1:
        return Undone(_("#%(number)s is as it was before.") % {"number": done[0].number}, left)
    told = ngettext("%(num)s ticket is as before.", "%(num)s tickets are as before.", len(done))
    return Undone(told % {"num": locales.current().number(len(done))}, left, count=len(outcomes))


_KIND: Final = "changes"
undoing.declare_undo(_KIND, _undo)
