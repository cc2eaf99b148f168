"""Tell who was a member at a moment: the members of now, with each later row of the audit trail taken back.

Each change of a membership has its row, written in the same transaction. Restoring is a change like any other, with the
rules of seats and roles: nobody gives a role above their own, and who left by themselves is invited, not taken in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, Final

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.repository import Transaction
from portal.errors import Conflict, Forbidden, Invalid, PortalError, TransactionRefused
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter, TrailRow
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.identity import accounts
from tenants.membership import member_changes, members, roster, seats
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role

MOST: Final = 50  # members who are restored at once
_JOINED: Final = (AuditAction.MEMBER_ADDED, AuditAction.INVITATION_ACCEPTED)
_GONE: Final = (AuditAction.MEMBER_REMOVED, AuditAction.MEMBER_LEFT)


@dataclass(frozen=True)
class PastMember:
    """A member of then. `now` is the role of today, None for somebody who is no member any more.

    `name` is "" for those, and `has_left` says that they went by themselves.
    """

    id: str
    name: str
    email: str
    role: Role
    now: Role | None
    has_left: bool = False

    @property
    def is_same(self) -> bool:
        return self.now is self.role


@dataclass(frozen=True)
class RestoredMember:
    """Report what became of one of them. `left` says why they stay as they are, "" for who was restored."""

    email: str
    left: str = ""


def at(tenant: TenantContext, moment: str) -> list[PastMember]:
    """Return the members at this moment, a stamp, by address. Raises Invalid before the trail begins.

    Costs a Query for every 500 rows that the trail has from that day on, and at the same time one of the members.
    """
    reads: list[Any] = [lambda: members.members_of(tenant.repository), lambda: _later(tenant, moment)]
    present: list[Member]
    rows: list[TrailRow]
    present, rows = fan_out(reads)
    now = {m.id: PastMember(m.id, m.name, m.email, m.role, m.role) for m in present}
    then = dict(now)
    gone: dict[str, bool] = {}
    for row in rows:
        _take_back(then, row)
        if row.action in _GONE:
            gone.setdefault(row.entity_id, row.action == AuditAction.MEMBER_LEFT)  # the newest counts
    found = [replace(one, has_left=one.now is None and gone.get(one.id, False)) for one in then.values()]
    return sorted(found, key=lambda one: (one.email, one.id))


def _later(tenant: TenantContext, moment: str) -> list[TrailRow]:
    """Return the rows after this moment that are about a person, newest first. Raises Invalid: the trail came later."""
    since = clock.parse(moment)
    rows: list[TrailRow] = []
    only = TrailFilter(first=since.astimezone(UTC).date())
    for row in browsing.everything(tenant.repository, only=only, erased=ErasedPeople.parse(tenant.erased)):
        if row.at <= since:
            break
        if row.action == AuditAction.TENANT_CREATED:
            began = f"{row.at:%-d %B %Y, %H:%M:%S} UTC"
            raise Invalid(f"The audit trail begins on {began}. Who was a member before that is not known.", field="at")
        if row.entity_type == "user":
            rows.append(row)
    return rows


def _take_back(people: dict[str, PastMember], row: TrailRow) -> None:
    known = people.get(row.entity_id)
    if row.action in _JOINED:
        people.pop(row.entity_id, None)
    elif row.action in _GONE:
        people[row.entity_id] = PastMember(row.entity_id, "", row.entity, Role(row.before["role"]), None)
    elif row.action == AuditAction.MEMBER_ROLE_CHANGED and known is not None:
        people[row.entity_id] = replace(known, role=Role(row.before["role"]))


def restore(tenant: TenantContext, user_ids: Sequence[str], moment: str, *, by: Actor) -> list[RestoredMember]:
    """Give up to MOST people the role that they had at this moment, or make them members again.

    Each is a change of its own: some may be restored and others not. Raises Invalid for nobody, for too many, and for a
    moment before the trail begins.
    """
    wanted = set(user_ids)
    if not wanted:
        raise Invalid("Select members first.")
    if len(wanted) > MOST:
        raise Invalid(f"At most {MOST} members can be restored together; you selected {len(wanted)}.")
    return [_restored(tenant, one, moment, by) for one in at_now(tenant, moment) if one.id in wanted]


def at_now(tenant: TenantContext, moment: str) -> list[PastMember]:
    """Return the members of then with the roles that they have at this moment, whatever came between."""
    found = {m.id: m for m in members.members_of(tenant.repository, consistent=True)}
    then = at(tenant, moment)
    return [replace(one, now=found[one.id].role if one.id in found else None) for one in then]


def _restored(tenant: TenantContext, one: PastMember, moment: str, by: Actor) -> RestoredMember:
    try:
        if one.is_same:
            raise Invalid(f"{one.email} is {one.role.with_article} already.")
        if one.now is None:
            _take_in(tenant, one, moment, by)
        else:
            roster.change_role(tenant, user_id=one.id, to=one.role, by=by)
    except PortalError as error:
        if error.status >= 500:
            raise
        return RestoredMember(one.email, error.message)
    return RestoredMember(one.email)


def _take_in(tenant: TenantContext, one: PastMember, moment: str, by: Actor) -> None:
    """Make somebody a member again. Raises Forbidden, and Conflict where the desk is full or the person cannot be."""
    if not tenant.role.at_least(one.role):
        raise Forbidden(f"Only {one.role.with_article} can make somebody {one.role.with_article}.")
    if one.has_left:
        raise Conflict(f"{one.email} has left the desk. Invite them instead.")
    user = accounts.find_by_id(one.id)
    if user is None or not user.is_active:
        raise Conflict(f"{one.email} has no account that can be used.")
    transaction = Transaction()
    member_changes.put_member(transaction, user=user, tenant=tenant, role=one.role)
    member_changes.require_role(transaction, tenant)
    after = {"role": one.role.value, "as of": moment}
    entry = AuditEntry(tenant.tenant_id, AuditAction.MEMBER_ADDED, by, "user", user.id, user.email, after=after)
    try:
        seats.commit(transaction, [entry], tenant_id=tenant.tenant_id, seat=seats.member(user.id))
    except TransactionRefused as error:
        raise Conflict(member_changes.CHANGED) from error
