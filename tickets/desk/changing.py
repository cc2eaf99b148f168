"""Change the fields of a ticket. Changes of different fields are merged; changes of one field are a conflict.

Each change names the version of the ticket that its author saw. Every version has its event in the timeline, so what
others changed since is known: where it is another field, both changes hold, and where it is the same field with
another value, `EditConflict` carries the stored ticket and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from delivery.outbox.publisher import publish
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.repository import Action, Transaction
from portal.dynamo.retry import retrying
from portal.errors import Conflict, Invalid, TransactionRefused
from tenants.membership import members
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tickets.desk import summaries, timelines
from tickets.desk.summaries import FieldChange, TicketState
from tickets.desk.timelines import ChangesSince
from tickets.ticket import fields, stored, ticket_events
from tickets.ticket.fields import ASSIGNEE, BY_NAME, DESCRIPTION, MOVES, STATUS, SUMMARISED, Status, Values
from tickets.ticket.stored import DetailItem, SummaryItem

_ATTEMPTS: Final = 6  # of a change that loses the race against changes of other fields


class EditConflict(Conflict):
    """The same field was changed since the form was made. `stored` is the ticket as it is, `since` what was done.

    `description` is its description, "" where the change did not read it.
    """

    code = "edit_conflict"

    def __init__(self, stored: SummaryItem, since: ChangesSince, *, description: str | None = None) -> None:
        super().__init__("This ticket was changed meanwhile.")
        self.stored, self.since, self.description = stored, since, description or ""


class Wishes:
    """Hold the values that somebody wants a ticket's fields to have, by name. `resolver` is "" for nobody.

    None leaves a field as it is. `restoring` is for a ticket that is to be as it was: what the history says of it. Then
    every status may follow the present one.
    """

    def __init__(self, *, restoring: str = "", **values: Any) -> None:
        fields.known(values)
        self.restoring = restoring
        self.values: Values = {name: value for name, value in values.items() if value is not None}

    def cleaned(self) -> Wishes:
        """Return them as tickets hold them. Raises Invalid."""
        values = {name: BY_NAME[name].clean(value) for name, value in self.values.items()}
        return Wishes(restoring=self.restoring, **values)


@dataclass(frozen=True)
class Present:
    """A ticket as an attempt to change it has read it. `description` is None where it was not read."""

    summary: SummaryItem
    description: str | None
    resolver_name: str


def change_status(tenant: TenantContext, number: int, *, to: Status, version: int) -> None:
    """Change the status. Raises NotFound, EditConflict, and Invalid for a move that MOVES does not have."""
    change(tenant, number, Wishes(status=to), version=version)


def assign(tenant: TenantContext, number: int, *, to: str, version: int) -> None:
    """Give a ticket to a member, or to nobody with "". Raises NotFound, EditConflict, and Invalid for non-agents."""
    change(tenant, number, Wishes(resolver=to), version=version)


def edit(tenant: TenantContext, number: int, *, version: int, **values: Any) -> None:
    """Change what the form of a ticket holds. Raises NotFound, Invalid, EditConflict.

    A field that the author left as it was keeps what others made of it meanwhile.
    """
    change(tenant, number, Wishes(**values), version=version, of_form=True)


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
        check(present)
        seen = int(present.summary.version) if version is None else version
        revision = _Revision(tenant, wishes, present, timelines.changes_since(tenant, present.summary, seen), of_form)
        if not revision.changes:
            return present
        transaction = Transaction()
        written = revision.write(transaction)
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


def _read(tenant: TenantContext, number: int, wishes: Wishes, *, whole: bool) -> Present:
    """Read what a change needs, at the same time."""
    reads: dict[str, Callable[[], Any]] = {"summary": lambda: summaries.read(tenant, number)}
    if whole or DESCRIPTION.name in wishes.values:
        reads["description"] = lambda: summaries.read_description(tenant, number)
    if resolver := wishes.values.get(ASSIGNEE.name):
        reads["name"] = lambda: resolver_name(tenant, resolver)
    found = dict(zip(reads, fan_out(list(reads.values())), strict=True))
    return Present(found["summary"], found.get("description"), found.get("name", ""))


class _Revision:
    """Hold somebody's wishes against the ticket: what remains is a change. Raises EditConflict and Invalid."""

    def __init__(
        self, tenant: TenantContext, wishes: Wishes, present: Present, since: ChangesSince, of_form: bool
    ) -> None:
        self.tenant, self.wishes, self.present, self.since, self.of_form = tenant, wishes, present, since, of_form
        self.state = TicketState.of(present.summary)
        self.at = max(clock.stamp(), present.summary.updated_at)
        self.values: dict[str, Any] = {}  # attributes of the summary, beside those that follow
        self.changes: list[FieldChange] = []
        self.counts: list[Action] = []
        self.status: Status | None = None
        self.resolver: str | None = None
        self._edit()
        self._describe()
        self._move()
        self._assign()

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
            text, stored = field.text(wanted), field.text(getattr(self.present.summary, field.name))
            if self._is_wished(field.name, text, stored):
                self.values[field.name] = field.stored(wanted)
                self.changes.append((field.name, stored, text))

    def _describe(self) -> None:
        wanted, stored = self.wishes.values.get(DESCRIPTION.name), self.present.description or ""
        if wanted is not None and self._is_wished(DESCRIPTION.name, wanted, stored):
            self.changes.append((DESCRIPTION.name, DESCRIPTION.text(stored), DESCRIPTION.text(wanted)))

    def _move(self) -> None:
        before, to = self.state.status, self.wishes.values.get(STATUS.name)
        if to is None or not self._is_wished(STATUS.name, to.value, before.value):
            return
        if to not in MOVES[before] and not self.wishes.restoring:
            raise Invalid(f"A {before.value} ticket cannot become {to.value}.", field=STATUS.name)
        self.status = to
        self.changes.append((STATUS.name, before.value, to.value))
        self.values |= summaries.dates(before, to, self.at)
        self.counts += summaries.dates_counted(before, to, self.at)

    def _assign(self) -> None:
        to = self.wishes.values.get(ASSIGNEE.name)
        if to is None or not self._is_wished(ASSIGNEE.name, to, self.state.resolver):
            return
        self.resolver = to
        self.changes.append((ASSIGNEE.name, self.present.summary.resolver_name, self.present.resolver_name))
        self.values["resolver_name"] = self.present.resolver_name

    def write(self, transaction: Transaction) -> Present:
        """Add it to the transaction, and return the ticket that it makes."""
        tenant, summary = self.tenant, self.present.summary
        described = any(name == DESCRIPTION.name for name, _, _ in self.changes)
        description = self.wishes.values[DESCRIPTION.name] if described else self.present.description
        told = summaries.revise(
            tenant,
            transaction,
            self.state,
            at=self.at,
            status=self.status,
            resolver=self.resolver,
            changes=self.changes,
            actions=[*(summaries.set_to(name, value) for name, value in self.values.items()), *self.counts],
            description=description,
            former_description=self.present.description if described else None,
            verb=self.wishes.restoring or "changed",
        )
        if described:
            # An update, because the item says more than this: which request has made the ticket.
            transaction.update(DetailItem(summary.pk, stored.DETAIL), [DetailItem.description.set(description or "")])
        publish(tenant, transaction, *told, subject=ticket_events.subject(self.state.number), at=self.at)
        made = SummaryItem.from_raw_data(summary.serialize())
        status, resolver = self.status or self.state.status, self.resolver
        after = {"status": status.value, "resolver": self.state.resolver if resolver is None else resolver}
        for name, value in (self.values | after | {"updated_at": self.at, "version": self.state.version + 1}).items():
            setattr(made, name, value)
        return Present(made, description, self.present.resolver_name)


def resolver_name(tenant: TenantContext, user_id: str) -> str:
    """Return the name of somebody who can have tickets; "" for nobody. Raises Invalid."""
    if not user_id:
        return ""
    if user_id == tenant.user_id and tenant.standing is None:  # a key is nobody who can have tickets
        return tenant.user_name
    member = members.member(tenant.repository, user_id)
    if member is None or not member.role.at_least(Role.AGENT):
        raise Invalid("Only agents, admins and owners of this desk can be assigned.", field="resolver")
    return member.name
