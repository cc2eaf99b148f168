"""Change the fields of a ticket. Changes of different fields are merged; changes of one field are a conflict.

Each change names the version of the ticket that its author saw. Every version has its event in the timeline, so what
others changed since is known: where it is another field, both changes hold, and where it is the same field with
another value, `EditConflict` carries the stored ticket and nothing is written.

Every change of a ticket goes through `revise`, whoever makes it. One transaction holds the summary with its index keys
and the entry that tells of the change in the timeline. It holds only if the ticket is still as it was read, which
`TicketState` says.
"""

from __future__ import annotations

import hashlib
import re
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as dataclass_field
from typing import Any, Final

from django.utils.translation import gettext as _

from delivery.outbox.publisher import Event, publish
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.retry import retrying
from portal.dynamo.store import Action, Condition, Transaction
from portal.errors import Conflict, Invalid, NotFound, TransactionRefused
from tenants.membership import members
from tenants.tenancy.context import Role, TenantContext
from tickets.custom_fields import definitions
from tickets.desk import timelines
from tickets.desk.timelines import ChangesSince
from tickets.groups import assigning
from tickets.groups.assigning import Assignee
from tickets.requesters.requesters import Requester
from tickets.sla import tracking
from tickets.ticket import due_marks, fields, set_aside, stored, ticket_events
from tickets.ticket.fields import (
    ASSIGNEE,
    BY_NAME,
    CUSTOM,
    DEFINED,
    DESCRIPTION,
    GROUP,
    MOVES,
    REQUESTER,
    STATUS,
    SUMMARISED,
    FieldChange,
    Status,
    TicketField,
    Values,
)
from tickets.ticket.status_dates import dates, dates_counted, forgotten, reopens, set_to
from tickets.ticket.stored import ActivityItem, ChangeMap, DetailItem, RequestItem, SummaryItem

_STATE = re.compile(r"([1-9][0-9]{0,14})\.([1-9][0-9]{0,9})\.([a-z]{1,20})\.([0-9a-f]{32})?\Z")
ITEMS_PER_REVISION: Final = 2  # members that a revision with changes adds to its transaction


@dataclass(frozen=True)
class TicketState:
    """A ticket as somebody read it: a write that builds on it holds only if the ticket is still so.

    One that `is_aside` is changed by nothing but its way back into the lists.
    """

    number: int
    version: int
    status: Status
    resolver: str
    is_aside: bool = False
    summary: SummaryItem | None = dataclass_field(default=None, compare=False, repr=False)  # as read, where it was
    due: str | None = None  # its packed marks, which change without a new version; None where they are not known

    @classmethod
    def of(cls, summary: SummaryItem) -> TicketState:
        number, version, status = int(summary.number), int(summary.version), Status(summary.status)
        return cls(number, version, status, summary.resolver, due=summary.due or "", summary=summary)

    @classmethod
    def parse(cls, text: str) -> TicketState:
        """Read a state from `str` of one, as the select box of a row has it. Raises Invalid."""
        match = _STATE.match(text)
        if not match or match[3] not in list(Status):
            raise Invalid(_("The selection is damaged. Reload the list and select the tickets again."))
        return cls(int(match[1]), int(match[2]), Status(match[3]), match[4] or "")

    def __str__(self) -> str:
        return self.text(self.number, self.version, self.status.value, self.resolver)

    @staticmethod
    def text(number: int, version: int, status: str, resolver: str) -> str:
        """Return what `parse` reads."""
        return f"{number}.{version}.{status}.{resolver}"

    @property
    def still_holds(self) -> Condition:
        condition: Condition = (
            (SummaryItem.version == self.version)
            & (SummaryItem.status == self.status.value)
            & (SummaryItem.resolver == self.resolver)
        )
        if self.is_aside:
            condition &= SummaryItem.merged_into.exists() | SummaryItem.spam_at.exists()
        else:
            condition &= SummaryItem.merged_into.does_not_exist() & SummaryItem.spam_at.does_not_exist()
        if self.due is not None:
            condition &= SummaryItem.due == self.due if self.due else SummaryItem.due.does_not_exist()
        if self.summary is not None and self.summary.sla:  # which moves without a new version, too
            condition &= SummaryItem.sla == self.summary.sla
        return condition


def read(tenant: TenantContext, number: int, *, consistent: bool = True) -> SummaryItem:
    """Return the ticket's summary as of now, or for half the price as of a moment ago: one GetItem. Raises NotFound."""
    item = tenant.repository.get(SummaryItem, stored.ticket, number, sort=stored.SUMMARY, consistent=consistent)
    if item is None:
        raise NotFound(_("There is no ticket %(number)s.") % {"number": number})
    return item


def read_merged(tenant: TenantContext, number: int) -> SummaryItem:
    """Return a ticket, or the one into which it was merged: a consistent GetItem, and one more for each merge on the
    way. Raises NotFound."""
    summary = read(tenant, number)
    while summary.merged_into:  # as many as can be merged into one, and never in a circle
        summary = read(tenant, int(summary.merged_into))
    return summary


def read_description(tenant: TenantContext, number: int) -> str:
    """Return the ticket's description as of now, "" where it has none: one consistent GetItem."""
    item = tenant.repository.get(DetailItem, stored.ticket, number, sort=stored.DETAIL, consistent=True)
    return item.description if item else ""


def derived(
    tenant: TenantContext, number: int, *, status: str, resolver: str, updated_at: str, noted_at: str = ""
) -> dict[str, Any]:
    """Return the summary attributes that follow from these values, index keys included. The only place that forms
    them."""
    shard = stored.status_shard(number, tenant.layout.writers)
    return {
        "status": status,
        "resolver": resolver,
        "updated_at": updated_at,
        "tenant_status": tenant.repository.key(stored.tenant_status, status.upper(), shard),
        "resolver_updated": stored.resolver_updated(resolver, updated_at),
        **_noted(tenant, status, resolver, noted_at if noted_at > updated_at else None),
    }


def _noted(tenant: TenantContext, status: str, resolver: str, at: str | None) -> dict[str, Any]:
    """Return the attributes of the two indexes of noted tickets, in which a ticket stands where `at` is not None."""
    return {
        "raised_status": tenant.repository.key(stored.raised_status, status.upper()),
        "raised_at": at,
        "resolver_raised": stored.resolver_updated(resolver, at) if at else None,
    }


def raised(tenant: TenantContext, state: TicketState, at: str) -> list[Action]:
    """Move a ticket up in the lists of those who may read notes, and in no other list."""
    values = {"noted_at": at, **_noted(tenant, state.status.value, state.resolver, at)}
    return [set_to(name, value) for name, value in values.items()]


def updated_at(tenant: TenantContext, summary: SummaryItem) -> str:
    """Return the stamp of the last change that this caller may know of: for agents a note is one too."""
    of: dict[str, Any] = summary.attribute_values
    return str(max(of["updated_at"], (of.get("noted_at") or "") if tenant.is_agent else ""))


def revise(
    tenant: TenantContext,
    transaction: Transaction,
    state: TicketState,
    *,
    at: str,
    status: Status | None = None,
    resolver: str | None = None,
    changes: Sequence[FieldChange] = (),
    actions: Sequence[Action] = (),
    told_at: str = "",
    description: str | None = None,
    former_description: str | None = None,
    former_requester: str | None = None,
    verb: str = "changed",
    entry_id: str = "",
    places: Values | None = None,
    said: ActivityItem | None = None,
    requester: str = "",
    stored_marks: dict[str, str | None] | None = None,
) -> list[Event]:
    """Add the change of one ticket to a transaction: its summary, and with `changes` the entry that tells of them.

    `actions` set what `status` and `resolver` do not. With `changes` the version grows by one. `at` is the moment of
    the change, `told_at` that of the entry where it differs, and `entry_id` its id, drawn where it is not given. The
    summary's member of the transaction is named by the ticket's number. `places` are those of set_aside.py. The entry
    keeps what its `changes` do not say in full: the assignee before, and with a new description the former one. `said`
    is the comment that comes with it, and `requester` the id of a new one: clocks follow both, and `stored_marks` gets
    what the summary stores of them. Returns the events for `publisher.publish`, which tell a new description in full.
    """
    pk, entries = tenant.repository.key(stored.ticket, state.number), [said] if said else []
    resolver = state.resolver if resolver is None else resolver
    values = derived(tenant, state.number, status=status or state.status, resolver=resolver, updated_at=at)
    version = [SummaryItem.version.set(state.version + 1)] if changes else []
    if changes:
        entry = event(tenant, pk, told_at or at, verb=verb, changes=changes, entry_id=entry_id)
        entry.former_description, entry.former_requester = former_description, former_requester
        entry.former_resolver = state.resolver if values["resolver"] != state.resolver else None
        entries.append(entry)
    values |= {**(places or {})} | tracking.follow(tenant, transaction, state.summary, entries, requester, stored_marks)
    every: list[Action] = [*actions, *(set_to(name, value) for name, value in values.items()), *version]
    transaction.update(SummaryItem(pk, stored.SUMMARY), every, name=str(state.number), condition=state.still_holds)
    if not changes:
        return []
    transaction.put(entry)
    told: dict[str, Any] = {"resolver": (state.resolver, values["resolver"]), "description": description}
    return ticket_events.revised(tenant, number=state.number, version=state.version + 1, changes=changes, **told)


def new_entry_id() -> str:
    """Return an id for entries of the history of which each is another ticket's."""
    return uuid.uuid4().hex[:12]


def event(
    tenant: TenantContext, pk: str, at: str, *, verb: str, changes: Sequence[FieldChange] = (), entry_id: str = ""
) -> ActivityItem:
    """Return a timeline entry: who did what, and for each changed field its text before and after."""
    return ActivityItem(
        pk,
        stored.activity(at, entry_id or new_entry_id()),
        kind="event",
        at=at,
        author=tenant.user_id,
        author_name=tenant.author_name,
        verb=verb,
        changes=[
            ChangeMap(field=f, before=b, after=a)  # type: ignore[no-untyped-call]  # PynamoDB leaves it unannotated
            for f, b, a in changes
        ],
        cause=tenant.cause or None,
    )


# --- requests, each of which is made once ---


REQUEST: Final = "request"  # the name of the record in a transaction
_REQUEST_TTL: Final = 24 * 3600  # seconds


def new_request_id() -> str:
    """Return an idempotency key for a form."""
    return uuid.uuid4().hex


def request_digest(request_id: str, *texts: str) -> str:
    """Identify one request: the form and what it held.

    A form that is sent again with other texts is another request, so no text is taken for one that was stored before.
    """
    return hashlib.blake2b("\0".join((request_id, *texts)).encode(), digest_size=16).hexdigest()


def put_record(tenant: TenantContext, transaction: Transaction, what: str, digest: str, *, number: int) -> None:
    """Add the record that makes a write happen once to its transaction. TTL removes it after a day."""
    pk, expires_at = tenant.repository.key(stored.request, digest), int(time.time()) + _REQUEST_TTL
    record = RequestItem(pk, what, number=number, expires_at=expires_at)
    transaction.put(record, name=REQUEST, condition=RequestItem.pk.does_not_exist())


# --- changes of fields ---


_ATTEMPTS: Final = 6  # of a change that loses the race against changes of other fields


class EditConflict(Conflict):
    """The same field was changed since the form was made. `stored` is the ticket as it is, `since` what was done.

    `description` is its description, "" where the change did not read it.
    """

    code = "edit_conflict"

    def __init__(self, stored: SummaryItem, since: ChangesSince, *, description: str | None = None) -> None:
        super().__init__(_("This ticket was changed meanwhile."))
        self.stored, self.since, self.description = stored, since, description or ""


class Wishes:
    """Hold the values that somebody wants a ticket's fields to have, by name. `resolver` is "" for nobody.

    None leaves a field as it is. `requester` is the person outside the desk for whom the ticket is to be. `restoring`
    is for a ticket that is to be as it was: what the history says of it. Then every status may follow the present one.
    With `forgets` the ticket also forgets its last change of status: in the numbers it has never happened.
    """

    def __init__(
        self, *, restoring: str = "", forgets: bool = False, requester: Requester | None = None, **values: Any
    ) -> None:
        fields.changeable(values)
        self.restoring, self.forgets, self.requester = restoring, forgets, requester
        self.values: Values = {name: value for name, value in values.items() if value is not None}

    def also(self, **values: Any) -> Wishes:
        """Return these wishes with further ones."""
        return Wishes(
            restoring=self.restoring, forgets=self.forgets, requester=self.requester, **{**self.values, **values}
        )

    def cleaned(self) -> Wishes:
        """Return them as tickets hold them. Raises Invalid."""
        return self.also(**{name: BY_NAME[name].clean(value) for name, value in self.values.items()})


@dataclass(frozen=True)
class Present:
    """A ticket as an attempt to change it has read it, or has written it. `description` is None where it was not read.
    `changed` says by which entry of the history it was written, None where nothing was."""

    summary: SummaryItem
    description: str | None
    resolver_name: str
    changed: EntryOfChange | None = None


@dataclass(frozen=True)
class EntryOfChange:
    """Name a change of one ticket: the version that it made, and the moment and the id of its entry."""

    number: int
    version: int
    at: str
    entry_id: str


def change_status(tenant: TenantContext, number: int, *, to: Status, version: int) -> None:
    """Change the status. Raises NotFound, EditConflict, and Invalid for a move that MOVES does not have."""
    change(tenant, number, Wishes(status=to), version=version)


def assign(tenant: TenantContext, number: int, *, to: str, version: int) -> None:
    """Give a ticket to a member, or to nobody with "". Raises NotFound, EditConflict, and Invalid for non-agents."""
    change(tenant, number, Wishes(resolver=to), version=version)


def edit(tenant: TenantContext, number: int, *, version: int, **values: Any) -> Present:
    """Change what the form of a ticket holds, and return the ticket as it was written.

    Raises NotFound, Invalid, EditConflict.

    A field that the author left as it was keeps what others made of it meanwhile.
    """
    return change(tenant, number, Wishes(**values), version=version, of_form=True)


def change(
    tenant: TenantContext,
    number: int,
    wishes: Wishes,
    *,
    version: int | None = None,
    of_form: bool = False,
    whole: bool = False,
    check: Callable[[Present], None] = lambda present: None,
) -> Present:
    """Make the fields what somebody wants them to be, all or none, and return the ticket as it was written.

    `version` is the one that the author saw; without it the wishes hold for whatever the ticket is now. `of_form` says
    that a field which is wished as it was at that version was only left alone. `check` may refuse the ticket as it was
    read, and is asked anew where the change was overtaken; for it and for what is returned, `whole` reads the
    description too. Raises NotFound, Invalid, EditConflict.

    Two round trips: what it needs is read at the same time. Where others changed the ticket since `version` one more.
    """
    wishes = wishes.cleaned()

    def attempt() -> Present:
        present = _read(tenant, number, wishes, whole=whole)
        set_aside.refuse(present.summary)
        check(present)
        seen = int(present.summary.version) if version is None else version
        since = timelines.changes_since(tenant, present.summary, seen)
        revision = Revision(tenant, *_with_assignee(tenant, wishes, present, since, of_form), since, of_form)
        if not revision.changes:
            return present
        transaction = Transaction()
        written, told = revision.write(transaction)
        publish(tenant, transaction, *told, subject=ticket_events.subject(number), at=revision.at)
        tenant.repository.transact(transaction)
        return written

    # Reading again tells whether it was overtaken in the same field.
    try:
        return retrying(attempt, again=lambda error: isinstance(error, TransactionRefused), attempts=_ATTEMPTS)
    except TransactionRefused as refused:
        present = _read(tenant, number, Wishes(), whole=whole)
        seen = int(present.summary.version) if version is None else version
        since = timelines.changes_since(tenant, present.summary, seen)
        raise EditConflict(present.summary, since, description=present.description) from refused


def given_by_group(tenant: TenantContext, wishes: Wishes, summaries: Sequence[SummaryItem]) -> dict[int, Assignee]:
    """Return who gets those of these tickets that come into another group by these wishes and are unresolved, by their
    numbers. No read where nothing is wished of a group, or where an assignee is wished, too."""
    group_id = wishes.values.get(GROUP.name)
    if not group_id or ASSIGNEE.name in wishes.values or wishes.restoring:
        return {}
    holders = {
        int(one.number): one.resolver
        for one in summaries
        if one.group != group_id and fields.is_unresolved(wishes.values.get(STATUS.name, one.status))
    }
    return assigning.for_group(tenant, group_id, holders) if holders else {}


def _with_assignee(
    tenant: TenantContext, wishes: Wishes, present: Present, since: ChangesSince, of_form: bool
) -> tuple[Wishes, Present]:
    """Return wishes and ticket with whoever gets it by coming into a group, unless others have assigned it since."""
    before = since.before
    is_left = of_form and GROUP.name in before and before[GROUP.name] == wishes.values.get(GROUP.name)
    if is_left or ASSIGNEE.name in before:
        return wishes, present
    got = given_by_group(tenant, wishes, [present.summary]).get(int(present.summary.number))
    if got is None:
        return wishes, present
    return wishes.also(**{ASSIGNEE.name: got.id}), replace(present, resolver_name=got.name)


def _read(tenant: TenantContext, number: int, wishes: Wishes, *, whole: bool) -> Present:
    """Read what a change needs, at the same time."""
    reads: dict[str, Callable[[], Any]] = {"summary": lambda: read(tenant, number)}
    if whole or DESCRIPTION.name in wishes.values:
        reads["description"] = lambda: read_description(tenant, number)
    if resolver := wishes.values.get(ASSIGNEE.name):
        reads["name"] = lambda: resolver_name(tenant, resolver)
    found = dict(zip(reads, fan_out(list(reads.values())), strict=True))
    return Present(found["summary"], found.get("description"), found.get("name", ""))


class Revision:
    """Hold somebody's wishes against the ticket: what remains is a change. Raises EditConflict and Invalid."""

    def __init__(
        self,
        tenant: TenantContext,
        wishes: Wishes,
        present: Present,
        since: ChangesSince = timelines.NOTHING_SINCE,
        of_form: bool = False,
        *,
        at: str = "",
        entry_id: str = "",
    ) -> None:
        self.tenant, self.wishes, self.present, self.since, self.of_form = tenant, wishes, present, since, of_form
        self.state = TicketState.of(present.summary)
        self.at = max(at or clock.stamp(), present.summary.updated_at)
        self.entry_id = entry_id or new_entry_id()
        self.values: dict[str, Any] = {}  # attributes of the summary, beside those that follow
        self.changes: list[FieldChange] = []
        self.counts: list[Action] = []
        self.status: Status | None = None
        self.resolver: str | None = None
        self._edit()
        self._describe()
        self._move()
        self._assign()
        self._ask_for()

    def _is_wished(self, name: str, wanted: str, stored: str) -> bool:
        """Tell whether this remains to be changed. Raises EditConflict where others changed the same field."""
        if wanted == stored or (self.of_form and wanted == self.since.before.get(name)):
            return False
        if not self.since.is_known or name in self.since.before:
            raise EditConflict(self.present.summary, self.since, description=self.present.description)
        return True

    def _edit(self) -> None:
        for field in SUMMARISED:
            if (wanted := self.wishes.values.get(field.name)) is None:
                continue
            stored = getattr(self.present.summary, field.name)
            changes = [one for one in field.changes(stored, wanted) if self._is_wished(one[0], one[2], one[1])]
            if changes:
                self._check_defined(field, changes)
                self.values[field.name] = field.changed(stored, wanted, {name for name, _, _ in changes})
                self.changes += changes

    def _check_defined(self, field: TicketField, changes: Sequence[FieldChange]) -> None:
        """Raise Invalid for a kind, group, field or choice that the desk does not offer, unless it is restored."""
        if field in (*DEFINED, CUSTOM) and not self.wishes.restoring:
            definitions.of(self.tenant).check({name: after for name, _, after in changes})

    def _describe(self) -> None:
        wanted, stored = self.wishes.values.get(DESCRIPTION.name), self.present.description or ""
        if wanted is not None and self._is_wished(DESCRIPTION.name, wanted, stored):
            self.changes.append((DESCRIPTION.name, DESCRIPTION.text(stored), DESCRIPTION.text(wanted)))

    def _move(self) -> None:
        before, to = self.state.status, self.wishes.values.get(STATUS.name)
        if to is None or not self._is_wished(STATUS.name, to.value, before.value):
            return
        if to not in MOVES[before] and not self.wishes.restoring:
            sentence = _("A %(before)s ticket cannot become %(after)s.") % {"before": before.word, "after": to.word}
            raise Invalid(sentence, field=STATUS.name)
        self.status = to
        self.changes.append((STATUS.name, before.value, to.value))
        if reopens(before, to) and not self.wishes.restoring:
            self.changes += due_marks.waking(self.present.summary.due)
        if self.wishes.forgets:
            moments, counts = forgotten(self.present.summary, to, zone=self.tenant.zone)
        else:
            moments = dates(before, to, self.at)
            counts = dates_counted(before, to, self.at, zone=self.tenant.zone)
        self.values |= moments
        self.counts += counts

    def _assign(self) -> None:
        to = self.wishes.values.get(ASSIGNEE.name)
        if to is None or not self._is_wished(ASSIGNEE.name, to, self.state.resolver):
            return
        self.resolver = to
        self.changes.append((ASSIGNEE.name, self.present.summary.resolver_name, self.present.resolver_name))
        self.values["resolver_name"] = self.present.resolver_name

    def _ask_for(self) -> None:
        """Let the ticket be somebody else's; their place in the index of requesters follows."""
        person, summary = self.wishes.requester, self.present.summary
        if person is None or summary.requester in person.ids:
            return
        if self._is_wished(REQUESTER, person.id, summary.requester):
            # A key of an index is never removed: the guard refuses that. A member's place there is read by nobody.
            place = stored.tenant_requester(self.tenant.tenant_id, person.id)
            self.values |= {REQUESTER: person.id, "requester_name": person.label, "tenant_requester": place}
            self.changes.append((REQUESTER, summary.requester_name, person.label))

    def write(self, transaction: Transaction) -> tuple[Present, list[Event]]:
        """Add it to the transaction. Return the ticket that it makes, and what is to be published of it."""
        tenant, summary = self.tenant, self.present.summary
        described = any(name == DESCRIPTION.name for name, _, _ in self.changes)
        description = self.wishes.values[DESCRIPTION.name] if described else self.present.description
        marks: dict[str, str | None] = {}
        told = revise(
            tenant,
            transaction,
            self.state,
            stored_marks=marks,
            at=self.at,
            status=self.status,
            resolver=self.resolver,
            changes=self.changes,
            actions=[*(set_to(name, value) for name, value in self.values.items()), *self.counts],
            description=description,
            former_description=self.present.description if described else None,
            former_requester=summary.requester if REQUESTER in self.values else None,
            verb=self.wishes.restoring or "changed",
            entry_id=self.entry_id,
            requester=self.values.get(REQUESTER, ""),
        )
        if described:
            # An update, because the item says more than this: which request has made the ticket.
            transaction.update(DetailItem(summary.pk, stored.DETAIL), [DetailItem.description.set(description or "")])
        made = SummaryItem.from_raw_data(summary.serialize())
        status, resolver = self.status or self.state.status, self.resolver
        after = {"status": status.value, "resolver": self.state.resolver if resolver is None else resolver}
        for name, value in (
            self.values | after | marks | {"updated_at": self.at, "version": self.state.version + 1}
        ).items():
            setattr(made, name, value)
        changed = EntryOfChange(self.state.number, self.state.version + 1, self.at, self.entry_id)
        return Present(made, description, self.present.resolver_name, changed), told


def resolver_name(tenant: TenantContext, user_id: str) -> str:
    """Return the name of somebody who can have tickets; "" for nobody. Raises Invalid."""
    if not user_id:
        return ""
    if user_id == tenant.user_id and tenant.standing is None:  # a key is nobody who can have tickets
        return tenant.user_name
    member = members.member(tenant.repository, user_id)
    if member is None or not member.role.at_least(Role.AGENT):
        raise Invalid(_("Only agents, admins and owners of this desk can be assigned."), field="resolver")
    return member.name
