"""Make tickets what they were at a moment: a change like any other, by the person who restores, with its entry.

Nothing is overwritten that the person has not seen: each ticket is named with the version that they saw, and one that
others have changed since in the same fields is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from portal import clock
from portal.dynamo.client import fan_out
from portal.errors import Conflict, Invalid, NotFound, PortalError
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import members
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tickets.desk import changing
from tickets.desk.changing import Wishes
from tickets.desk.summaries import TicketState
from tickets.ticket.fields import Priority, Status
from tickets.time_machine import past_tickets
from tickets.time_machine.past_tickets import PastTicket, ThenAndNow

MOST: Final = 50  # tickets that are restored at once
SAME: Final = "is as it was then"
_AT_A_TIME: Final = 8


@dataclass(frozen=True)
class Restored:
    """Report what became of one ticket. `left` says why it stays as it is, "" for one that was restored.

    `lacks` names the fields that could not be restored.
    """

    number: int
    left: str = ""
    lacks: tuple[str, ...] = ()


def restore(tenant: TenantContext, tickets: Sequence[TicketState], at: str, *, by: Actor) -> list[Restored]:
    """Restore up to MOST tickets, named as somebody saw them, to this moment, a stamp.

    Each is a change of its own: some may be restored and others not. Raises Invalid for none, and for too many.
    """
    check(tickets)
    able = agents(tenant)
    done: list[Restored] = []
    try:
        for begin in range(0, len(tickets), _AT_A_TIME):
            some = tickets[begin : begin + _AT_A_TIME]
            done += fan_out([partial(_restore, tenant, state, at, able) for state in some])
    finally:
        _record(tenant, [one.number for one in done if not one.left], at, by)
    return done


def check(tickets: Sequence[TicketState]) -> None:
    """Raise Invalid for no tickets, and for more than MOST."""
    if not tickets:
        raise Invalid("Select tickets first.")
    if len(tickets) > MOST:
        raise Invalid(f"At most {MOST} tickets can be restored together; you selected {len(tickets)}.")


def agents(tenant: TenantContext) -> set[str]:
    """Return the ids of those who can have tickets: one consistent Query."""
    everybody = members.members_of(tenant.repository, consistent=True)
    return {m.id for m in everybody if m.role.at_least(Role.AGENT)}


def look(tenant: TenantContext, numbers: Sequence[int], at: str) -> list[ThenAndNow]:
    """Return tickets then and now, to be shown before they are restored: what `past_tickets.read` costs for each."""
    found: list[ThenAndNow] = []
    for begin in range(0, len(numbers), _AT_A_TIME):
        some = numbers[begin : begin + _AT_A_TIME]
        found += fan_out([partial(past_tickets.read, tenant, number, at) for number in some])
    return found


def _restore(tenant: TenantContext, state: TicketState, at: str, agents: set[str]) -> Restored:
    number = state.number
    try:
        found = past_tickets.read(tenant, number, at)
        if found.then is None:
            return Restored(number, left="did not exist then")
        wishes, lacks = wishes_for(found.then, at, agents)
        before = int(found.summary.version)
        present = changing.change(tenant, number, wishes, version=state.version, whole=True)
    except NotFound:
        return Restored(number, left="does not exist")
    except Conflict:
        return Restored(number, left="was changed meanwhile")
    except PortalError as error:
        if error.status >= 500:
            raise
        return Restored(number, left=error.message)
    is_same = int(present.summary.version) == before
    return Restored(number, SAME if is_same else "", lacks)


def wishes_for(then: PastTicket, at: str, agents: set[str]) -> tuple[Wishes, tuple[str, ...]]:
    """Return the change that restores this, and the labels of the fields that it has to leave out."""
    can_have_it = then.resolver == "" or then.resolver in agents
    wishes = Wishes(
        title=then.title,
        description=then.description,
        priority=Priority(then.priority),
        tags=list(then.tags),
        status=Status(then.status),
        resolver=then.resolver if can_have_it else None,
        restoring=f"restored the ticket as of {clock.parse(at):%Y-%m-%d %H:%M:%S} UTC:",
    )
    lacking = {"description": then.description is None, "resolver": not can_have_it}
    return wishes, tuple(changing.LABELS[name] for name, lacks in lacking.items() if lacks)


def _record(tenant: TenantContext, numbers: list[int], at: str, by: Actor) -> None:
    if not numbers:
        return
    name = f"{len(numbers)} ticket{'s' * (len(numbers) != 1)}"
    after = {"as of": at, "tickets": ", ".join(map(str, numbers))}
    recording.record(
        AuditEntry(tenant.tenant_id, AuditAction.TICKETS_RESTORED, by, "tickets", "past", name, after=after)
    )
