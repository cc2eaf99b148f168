"""Change the fields of a ticket. Changes of different fields are merged; changes of one field are a conflict.

Each change names the version of the ticket that its author saw. Every version has its event in the timeline, so what
others changed since is known: where it is another field, both changes hold, and where it is the same field with
another value, `EditConflict` carries the stored ticket and nothing is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from delivery.outbox.telling import tell
from portal import clock
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
    """The same field was changed since the form was made. `stored` is the ticket as it is, `since` what was done."""

    code = "edit_conflict"

    def __init__(self, stored: SummaryItem, since: ChangesSince) -> None:
        super().__init__("This ticket was changed meanwhile.")
        self.stored, self.since = stored, since


# Adds what remains to be changed to the transaction; False where nothing remains. Raises EditConflict and Invalid.
_Plan = Callable[[Transaction, SummaryItem, ChangesSince], bool]


def change_status(tenant: TenantContext, number: int, *, to: Status, version: int) -> None:
    """Change the status. Raises NotFound, EditConflict, and Invalid for a move that MOVES does not have."""

    def plan(transaction: Transaction, summary: SummaryItem, since: ChangesSince) -> bool:
        state = TicketState.of(summary)
        if state.status == to:
            return False
        _refuse_overruling("status", summary, since)
        if to not in MOVES[state.status]:
            raise Invalid(f"A {summary.status} ticket cannot become {to.value}.", field="status")
        at = max(clock.stamp(), summary.updated_at)
        actions = summaries.dated(state.status, to, at)
        changes = [("status", state.status.value, to.value)]
        told = summaries.revise(tenant, transaction, state, at=at, status=to, changes=changes, actions=actions)
        tell(tenant, transaction, *told, subject=ticket_events.subject(state.number), at=at)
        return True

    _write(tenant, number, version, plan)


def change_priority(tenant: TenantContext, number: int, *, to: Priority, version: int) -> None:
    """Change the priority. Raises NotFound, EditConflict."""

    def plan(transaction: Transaction, summary: SummaryItem, since: ChangesSince) -> bool:
        if summary.priority == to.value:
            return False
        _refuse_overruling("priority", summary, since)
        changes = [("priority", summary.priority, to.value)]
        _revise(tenant, transaction, summary, changes, [SummaryItem.priority.set(to.value)])
        return True

    _write(tenant, number, version, plan)


def assign(tenant: TenantContext, number: int, *, to: str, version: int) -> None:
    """Give a ticket to a member, or to nobody with "". Raises NotFound, EditConflict, and Invalid for non-agents."""
    name = resolver_name(tenant, to)

    def plan(transaction: Transaction, summary: SummaryItem, since: ChangesSince) -> bool:
        if summary.resolver == to:
            return False
        _refuse_overruling("resolver", summary, since)
        changes = [("resolver", summary.resolver_name, name)]
        _revise(tenant, transaction, summary, changes, [SummaryItem.resolver_name.set(name)], resolver=to)
        return True

    _write(tenant, number, version, plan)


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
    wanted = {"title": fields.title(title), "priority": priority.value, "tags": ", ".join(tags)}
    description = fields.description(description)

    def plan(transaction: Transaction, summary: SummaryItem, since: ChangesSince) -> bool:
        stored = {"title": summary.title, "priority": summary.priority, "tags": ", ".join(summary.tags)}
        changes = []
        for name, text in wanted.items():
            if text == stored[name] or text == since.before.get(name):
                continue
            _refuse_overruling(name, summary, since)
            changes.append((name, stored[name], text))
        detail = None
        if description != (old := summaries.read_description(tenant, number)):
            _refuse_overruling("description", summary, since)
            changes.append(("description", _size(old), _size(description)))
            detail = DetailItem(summary.pk, keys.DETAIL, description=description)
        values = {"title": wanted["title"], "priority": wanted["priority"], "tags": tags}
        actions = [getattr(SummaryItem, name).set(values[name]) for name, _, _ in changes if name in values]
        if changes:
            _revise(tenant, transaction, summary, changes, actions, description=description)
        if detail is not None:
            transaction.put(detail)
        return bool(changes)

    _write(tenant, number, version, plan)


def resolver_name(tenant: TenantContext, user_id: str) -> str:
    """The name of somebody who can have tickets; "" for nobody. Raises Invalid."""
    if not user_id:
        return ""
    if user_id == tenant.user_id:
        return tenant.user_name
    member = members.member(tenant.repository, user_id)
    if member is None or not member.role.at_least(Role.AGENT):
        raise Invalid("Only agents, admins and owners of this desk can be assigned.", field="resolver")
    return member.name


def _write(tenant: TenantContext, number: int, version: int, plan: _Plan) -> None:
    """Read the ticket and what was done since `version`, and write what the plan says; again where it was overtaken."""

    def attempt() -> None:
        summary = summaries.read(tenant, number)
        transaction = Transaction()
        if plan(transaction, summary, timelines.changes_since(tenant, summary, version)):
            tenant.repository.transact(transaction)

    # Reading again tells whether it was overtaken in the same field.
    try:
        retrying(attempt, again=lambda error: isinstance(error, TransactionRefused), attempts=_ATTEMPTS)
    except TransactionRefused as refused:
        stored = summaries.read(tenant, number)
        raise EditConflict(stored, timelines.changes_since(tenant, stored, version)) from refused


def _revise(
    tenant: TenantContext,
    transaction: Transaction,
    summary: SummaryItem,
    changes: list[FieldChange],
    actions: list[Action],
    resolver: str | None = None,
    description: str | None = None,
) -> None:
    at = max(clock.stamp(), summary.updated_at)
    told = summaries.revise(
        tenant,
        transaction,
        TicketState.of(summary),
        at=at,
        resolver=resolver,
        changes=changes,
        actions=actions,
        description=description,
    )
    tell(tenant, transaction, *told, subject=ticket_events.subject(int(summary.number)), at=at)


def _refuse_overruling(name: str, summary: SummaryItem, since: ChangesSince) -> None:
    if not since.is_known or name in since.before:
        raise EditConflict(summary, since)


def _size(text: str) -> str:
    """A description in the timeline: its length, not its text, which would double the item."""
    return f"{len(text):,} characters" if text else ""
