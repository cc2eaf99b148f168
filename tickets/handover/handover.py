"""Handing on what somebody had to do, when they have left the tenant or are about to.

In transactions of as many tickets as a bulk change has: each moves only if it is as it was read, so nothing that
somebody else does at the same time is lost. The audit row follows the tickets, because no role may write both: it tells
how many were handed on, and each ticket's timeline tells of itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from django.utils.translation import gettext

from delivery.outbox.publisher import Event
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.store import Transaction, chunked
from portal.errors import Invalid, NotFound
from portal.schema import keys
from tenants.audit_trail import browsing, recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import members
from tenants.membership.members import AtHand
from tenants.tenancy.context import TenantContext
from tickets.counting import stored_counts
from tickets.desk import bulk, changing, lists
from tickets.desk.changing import TicketState
from tickets.ticket.fields import UNRESOLVED
from tickets.ticket.stored import SummaryItem

# Tickets of one request, some two seconds of work; who has more is asked to go on.
LIMIT: Final = 500
NAMED: Final = 20
# Rounds without a moved ticket, after which the rest is left for another request, and the pause before the first of
# them in seconds, doubled each time: an index follows its table only after a moment.
_IDLE_ROUNDS: Final = 5
_PAUSE: Final = 0.05


@dataclass(frozen=True)
class FormerLoad:
    """Unresolved tickets of somebody who is no member, by the aggregates: a moment old, and never zero.

    `name` is what the audit trail calls them, "" where it does not or was not asked.
    """

    user_id: str
    count: int
    name: str = ""


@dataclass(frozen=True)
class Handover:
    """Hold what there is to hand on. `count` stops at LIMIT; `more` says that there is more than that."""

    user_id: str
    name: str
    count: int
    more: bool
    is_member: bool
    known: AtHand


def former(tenant: TenantContext) -> list[FormerLoad]:
    """List those who are no members any more and still have unresolved tickets, most first.

    Two Queries; then a BatchGetItem for each hundred who have tickets, at the same time; then one Query of a few rows
    for the name of each of the first NAMED, at the same time.
    """
    people = stored_counts.people(tenant.repository)
    counts = {who: sum(some[s] for s in UNRESOLVED) for who, some in people.items()}
    busy = [who for who, count in counts.items() if count > 0]
    reads = [partial(members.members_with, tenant.repository, some) for some in chunked(busy, 100)]
    inside = {m.id for some in fan_out(reads) for m in some}
    loads = [FormerLoad(who, counts[who]) for who in busy if who not in inside]
    loads.sort(key=lambda load: (-load.count, load.user_id))
    known_as = browsing.names_of(tenant.repository, [load.user_id for load in loads[:NAMED]])
    return [replace(load, name=known_as.get(load.user_id, "")) for load in loads]


def has_any(tenant: TenantContext, user_id: str) -> bool:
    """Tell whether somebody has unresolved tickets, whoever it is."""
    if not keys.USER_ID.match(user_id):
        return False
    return bool(lists.page(tenant, status=UNRESOLVED, resolver=user_id, size=1).rows)


def look(tenant: TenantContext, user_id: str) -> Handover:
    """List what somebody has that is unresolved, exactly, up to LIMIT: index pages of 50.

    Raises NotFound for nobody, and for who is no member and has nothing: somebody of another tenant, say.
    """
    if not keys.USER_ID.match(user_id):
        raise NotFound(gettext("There is no such person."))
    calls: list[Callable[[], Any]] = [
        lambda: _read(tenant, user_id),
        lambda: members.member(tenant.repository, user_id),
        lambda: members.at_hand(tenant),
    ]
    (rows, more), person, known = fan_out(calls)
    name = person.name if person else next((row.resolver_name for row in rows), "")
    if person is None and not rows:
        raise NotFound(gettext("There is no such person."))
    return Handover(user_id, name, len(rows), more, person is not None, known)


def _read(tenant: TenantContext, user_id: str) -> tuple[list[SummaryItem], bool]:
    rows: list[SummaryItem] = []
    after: str | None = None
    while True:
        page = lists.page(tenant, status=UNRESOLVED, resolver=user_id, after=after)
        rows += page.rows
        after = page.next
        if after is None or len(rows) >= LIMIT:
            return rows[:LIMIT], after is not None or len(rows) > LIMIT


def hand_on(tenant: TenantContext, *, user_id: str, to: str, by: Actor) -> tuple[int, str]:
    """Give the unresolved tickets of one person to a member, or to nobody with "". Return how many, and the name of
    who has them now.

    At most LIMIT; call again for more. Tickets that somebody else changes at the same time are read again. Raises
    Invalid where `to` is nobody who can have tickets.
    """
    name = changing.resolver_name(tenant, to)
    if to == user_id:
        raise Invalid(gettext("These tickets are already assigned to this person."))
    moved, idle = 0, 0
    while moved < LIMIT and idle < _IDLE_ROUNDS:
        rows = lists.page(tenant, status=UNRESOLVED, resolver=user_id, size=bulk.limit(tenant)).rows
        if not rows:
            break
        done = _move(tenant, rows, to, name)
        moved += done
        if done:
            idle = 0
        else:
            time.sleep(_PAUSE * 2**idle)
            idle += 1
    if moved:
        whose, after = _address(tenant, user_id), {"tickets": moved, "to": _address(tenant, to) or "nobody"}
        handed_on = AuditAction.TICKETS_HANDED_ON
        recording.record(AuditEntry(tenant.tenant_id, handed_on, by, "user", user_id, whose, {"of": whose}, after))
    return moved, name


def _address(tenant: TenantContext, user_id: str) -> str:
    """Return the address of a person: by it, and not by a name, the trail shows later that somebody was erased."""
    if not user_id:
        return ""
    member = members.member(tenant.repository, user_id)
    return member.email if member else browsing.names_of(tenant.repository, [user_id])[user_id]


def _move(tenant: TenantContext, rows: list[SummaryItem], to: str, name: str) -> int:
    """Give all of these that are as they were read to one person, and return how many."""

    def add(transaction: Transaction, row: tuple[int, SummaryItem]) -> list[Event]:
        position, ticket = row
        return changing.revise(
            tenant,
            transaction,
            TicketState.of(ticket),
            at=max(clock.stamp(offset=position), ticket.updated_at),
            resolver=to,
            changes=[("resolver", ticket.resolver_name, name)],
            actions=[SummaryItem.resolver_name.set(name)],
        )

    return bulk.write_unchanged(tenant, list(enumerate(rows)), add, number=lambda row: int(row[1].number))
