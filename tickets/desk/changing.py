"""Change the fields of a ticket. Changes of different fields are merged; changes of one field are a conflict.

Each change names the version of the ticket that its author saw. Every version has its event in the timeline, so what
others changed since is known: where it is another field, both changes hold, and where it is the same field with
another value, `EditConflict` carries the stored ticket and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from delivery.outbox.telling import tell
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
from tickets.ticket import fields, keys, ticket_events
from tickets.ticket.fields import MOVES, Priority, Status
from tickets.ticket.items import DetailItem, SummaryItem

LABELS: Final = {
    "title": "Title",
    "description": "Description",
    "status": "Status",
    "priority": "Priority",
    "tags": "Tags",
    "resolver": "Assignee",
}
_ATTEMPTS: Final = 6  # of a change that loses the race against changes of other fields


class EditConflict(Conflict):
    """The same field was changed since the form was made. `stored` is the ticket as it is, `since` what was done.

    `description` is its description, "" where the change did not read it.
    """

    code = "edit_conflict"

    def __init__(self, stored: SummaryItem, since: ChangesSince, *, description: str | None = None) -> None:
        super().__init__("This ticket was changed meanwhile.")
        self.stored, self.since, self.description = stored, since, description or ""


@dataclass(frozen=True)
class Wishes:
    """Hold what somebody wants a ticket's fields to be, None for those that stay. `resolver` is "" for nobody.

    `restoring` is for a ticket that is to be as it was: what the history says of it. Then every status may follow the
    present one.
    """

    title: str | None = None
    description: str | None = None
    priority: Priority | None = None
    tags: list[str] | None = None
    status: Status | None = None
    resolver: str | None = None
    restoring: str = ""

    def cleaned(self) -> Wishes:
        """Return them as texts are stored. Raises Invalid."""
        return replace(
            self,
            title=None if self.title is None else fields.title(self.title),
            description=None if self.description is None else fields.description(self.description),
        )


@dataclass(frozen=True)
class Present:
    """A ticket as an attempt to change it has read it. `description` is None where it was not read."""

    summary: SummaryItem
    description: str | None
    resolver_name: str


def change_status(tenant: TenantContext, number: int, *, to: Status, version: int) -> None:
    """Change the status. Raises NotFound, EditConflict, and Invalid for a move that MOVES does not have."""
    change(tenant, number, Wishes(status=to), version=version)


def change_priority(tenant: TenantContext, number: int, *, to: Priority, version: int) -> None:
    """Change the priority. Raises NotFound, EditConflict."""
    change(tenant, number, Wishes(priority=to), version=version)


def assign(tenant: TenantContext, number: int, *, to: str, version: int) -> None:
    """Give a ticket to a member, or to nobody with "". Raises NotFound, EditConflict, and Invalid for non-agents."""
    change(tenant, number, Wishes(resolver=to), version=version)


def edit(
    tenant: TenantContext,
    number: int,
    *,
    version: int,
    title: str,
    description: str,
    priority: Priority,
    tags: list[str],
) -> None:
    """Change what the form of a ticket holds. Raises NotFound, Invalid, EditConflict.

    A field that the author left as it was keeps what others made of it meanwhile.
    """
    wishes = Wishes(title=title, description=description, priority=priority, tags=tags)
    change(tenant, number, wishes, version=version, of_form=True)


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
    if whole or wishes.description is not None:
        reads["description"] = lambda: summaries.read_description(tenant, number)
    if wishes.resolver:
        reads["name"] = lambda: resolver_name(tenant, wishes.resolver or "")
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
        self.values: dict[str, str | list[str] | None] = {}  # attributes of the summary, beside those that follow
        self.changes: list[FieldChange] = []
        self.counts: list[Action] = []
        self.status: Status | None = None
        self.resolver: str | None = None
        self._texts()
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

    def _texts(self) -> None:
        summary, wishes = self.present.summary, self.wishes
        for name, wanted in (("title", wishes.title), ("priority", wishes.priority), ("tags", wishes.tags)):
            if wanted is None:
                continue
            text, stored = _text(wanted), _text(getattr(summary, name))
            if self._is_wished(name, text, stored):
                self.values[name] = list(wanted) if name == "tags" else str(wanted)
                self.changes.append((name, stored, text))

    def _describe(self) -> None:
        wanted, stored = self.wishes.description, self.present.description or ""
        if wanted is not None and self._is_wished("description", wanted, stored):
            self.changes.append(("description", _size(stored), _size(wanted)))

    def _move(self) -> None:
        before, to = self.state.status, self.wishes.status
        if to is None or not self._is_wished("status", to.value, before.value):
            return
        if to not in MOVES[before] and not self.wishes.restoring:
            raise Invalid(f"A {before.value} ticket cannot become {to.value}.", field="status")
        self.status = to
        self.changes.append(("status", before.value, to.value))
        self.values |= summaries.dates(before, to, self.at)
        self.counts += summaries.dates_counted(before, to, self.at)

    def _assign(self) -> None:
        to = self.wishes.resolver
        if to is None or not self._is_wished("resolver", to, self.state.resolver):
            return
        self.resolver = to
        self.changes.append(("resolver", self.present.summary.resolver_name, self.present.resolver_name))
        self.values["resolver_name"] = self.present.resolver_name

    def write(self, transaction: Transaction) -> Present:
        """Add it to the transaction, and return the ticket that it makes."""
        tenant, summary = self.tenant, self.present.summary
        described = any(name == "description" for name, _, _ in self.changes)
        description = self.wishes.description if described else self.present.description
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
            transaction.update(DetailItem(summary.pk, keys.DETAIL), [DetailItem.description.set(description or "")])
        tell(tenant, transaction, *told, subject=ticket_events.subject(self.state.number), at=self.at)
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


def _text(value: str | list[str]) -> str:
    """Return a field's value in the timeline."""
    return ", ".join(value) if isinstance(value, list) else str(value)


def _size(text: str) -> str:
    """Return a description in the timeline: its length, not its text, which would double the item."""
    return f"{len(text):,} characters" if text else ""
