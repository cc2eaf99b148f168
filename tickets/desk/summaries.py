"""Read and write the summary of a ticket. Every change of a ticket goes through `revise`, whoever makes it.

One transaction holds the summary with its index keys and the entry that tells of the change in the timeline. It holds
only if the ticket is still as it was read, which `TicketState` says.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from delivery.outbox.event_types import Event
from portal.dynamo.repository import Action, Condition, Transaction
from portal.errors import Invalid, NotFound
from tenants.tenancy.context import TenantContext
from tickets.counting import contributions
from tickets.desk.ticket_rows import TicketRow
from tickets.ticket import stored, ticket_events
from tickets.ticket.fields import Status
from tickets.ticket.stored import ActivityItem, ChangeMap, DetailItem, SummaryItem

FieldChange = tuple[str, str, str]  # a field, its text before and its text after

_STATE = re.compile(r"([1-9]\d{0,14})\.([1-9]\d{0,9})\.([a-z]{1,20})\.([0-9a-f]{32})?\Z")
ITEMS_PER_REVISION: Final = 2  # members that a revision with changes adds to its transaction


@dataclass(frozen=True)
class TicketState:
    """A ticket as somebody read it: a write that builds on it holds only if the ticket is still so."""

    number: int
    version: int
    status: Status
    resolver: str

    @classmethod
    def of(cls, summary: SummaryItem | TicketRow) -> TicketState:
        return cls(int(summary.number), int(summary.version), Status(summary.status), summary.resolver)

    @classmethod
    def parse(cls, text: str) -> TicketState:
        """Read a state from `str` of one, as the select box of a row has it. Raises Invalid."""
        match = _STATE.match(text)
        if not match or match[3] not in list(Status):
            raise Invalid("The selection is damaged. Reload the list and select the tickets again.")
        return cls(int(match[1]), int(match[2]), Status(match[3]), match[4] or "")

    def __str__(self) -> str:
        return f"{self.number}.{self.version}.{self.status.value}.{self.resolver}"

    @property
    def still_holds(self) -> Condition:
        condition: Condition = (
            (SummaryItem.version == self.version)
            & (SummaryItem.status == self.status.value)
            & (SummaryItem.resolver == self.resolver)
        )
        return condition


def read(tenant: TenantContext, number: int, *, consistent: bool = True) -> SummaryItem:
    """Return the ticket's summary as of now, or for half the price as of a moment ago: one GetItem. Raises NotFound."""
    item = tenant.repository.get(SummaryItem, stored.ticket, number, sort=stored.SUMMARY, consistent=consistent)
    if item is None:
        raise NotFound(f"There is no ticket {number}.")
    return item


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
    return max(summary.updated_at, (summary.noted_at or "") if tenant.is_agent else "")


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
    verb: str = "changed",
) -> list[Event]:
    """Add the change of one ticket to a transaction: its summary, and with `changes` the entry that tells of them.

    `actions` set what `status` and `resolver` do not. With `changes` the version grows by one. `at` is the moment of
    the change, `told_at` that of the entry where it differs. The summary's member of the transaction is named by the
    ticket's number. The entry keeps what its `changes` do not say in full: the assignee before, and with a new
    description the former one. Returns the events for `publisher.publish`; a new description is told in full.
    """
    pk = tenant.repository.key(stored.ticket, state.number)
    values = derived(
        tenant,
        state.number,
        status=(status or state.status).value,
        resolver=state.resolver if resolver is None else resolver,
        updated_at=at,
    )
    every = [*actions, *(set_to(name, value) for name, value in values.items())]
    if changes:
        every.append(SummaryItem.version.set(state.version + 1))
    transaction.update(SummaryItem(pk, stored.SUMMARY), every, name=str(state.number), condition=state.still_holds)
    if not changes:
        return []
    entry = event(tenant, pk, told_at or at, verb=verb, changes=changes)
    entry.former_description = former_description
    entry.former_resolver = state.resolver if values["resolver"] != state.resolver else None
    transaction.put(entry)
    return ticket_events.revised(
        tenant,
        number=state.number,
        version=state.version + 1,
        changes=changes,
        resolver=(state.resolver, values["resolver"]),
        description=description,
    )


def event(tenant: TenantContext, pk: str, at: str, *, verb: str, changes: Sequence[FieldChange] = ()) -> ActivityItem:
    """Return a timeline entry: who did what, and for each changed field its text before and after."""
    return ActivityItem(
        pk,
        stored.activity(at, uuid.uuid4().hex[:12]),
        kind="event",
        at=at,
        author=tenant.user_id,
        author_name=tenant.author_name,
        verb=verb,
        changes=[
            ChangeMap(field=f, before=b, after=a)  # type: ignore[no-untyped-call]  # PynamoDB leaves it unannotated
            for f, b, a in changes
        ],
    )


# --- what a summary remembers for the aggregates, and for the lists behind their numbers ---


def dates(before: str, after: str, at: str) -> dict[str, str | None]:
    """Return the moments that a ticket has by a change of status at this moment; None for one that it has no more."""
    if contributions.is_unresolved(before) == contributions.is_unresolved(after):
        return {}
    return {"resolved_at": None, "reopened_at": at} if contributions.is_unresolved(after) else {"resolved_at": at}


def dates_counted(before: str, after: str, at: str) -> list[Action]:
    """Count what `dates` tells of, on its day."""
    kinds = {"resolved_at": contributions.RESOLVED, "reopened_at": contributions.REOPENED}
    return [counted(kinds[name], moment) for name, moment in dates(before, after, at).items() if moment]


def dated(before: str, after: str, at: str) -> list[Action]:
    """Remember that the ticket was resolved or reopened at this moment, if the change of status did either."""
    moments = [set_to(name, moment) for name, moment in dates(before, after, at).items()]
    return [*moments, *dates_counted(before, after, at)]


def set_to(name: str, value: Any) -> Action:
    """Make an attribute of the summary this value, or remove it for None."""
    attribute: Any = getattr(SummaryItem, name)
    action: Action = attribute.remove() if value is None else attribute.set(value)
    return action


def forgotten(before: str, after: str, at: str) -> list[Action]:
    """Take back what `dated` remembered of a ticket that left `before` for `after` at this moment.

    Raises ValueError for a ticket that was reopened by it: when it had been resolved before is not known any more.
    """
    if contributions.is_unresolved(before) == contributions.is_unresolved(after):
        return []
    if contributions.is_unresolved(after):
        raise ValueError("a reopening cannot be taken back")
    return [SummaryItem.resolved_at.remove(), counted(contributions.RESOLVED, at, by=-1)]


def counted(kind: str, at: str, *, by: int = 1) -> Action:
    """Count an event of this kind on the day of this moment; see `contributions.day_count`."""
    stored: Any = SummaryItem.days[contributions.day_count(kind, at)]
    action: Action = stored.set((stored | 0) + by)
    return action
