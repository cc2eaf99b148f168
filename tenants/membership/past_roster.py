"""Tell who was a member at a moment: the members of now, with each later row of the audit trail taken back.

Each change of a membership has its row, written in the same transaction. Restoring is a change like any other, with the
rules of seats and roles: nobody gives a role above their own, and who left by themselves is invited, not taken in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, Final

from django.utils.translation import gettext as _

from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid, PortalError, TransactionRefused
from portal.web import locales
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter, TrailRow
from tenants.audit_trail.erased_people import ErasedPeople
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes, members, seats
from tenants.membership.members import Member
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy.context import Role, TenantContext

MOST: Final = 50  # members who are restored at once
_JOINED: Final = (AuditAction.MEMBER_ADDED, AuditAction.INVITATION_ACCEPTED)
_DEPARTED: Final = (AuditAction.MEMBER_REMOVED, AuditAction.MEMBER_LEFT)


@dataclass(frozen=True)
class PastMember:
    """Somebody who was a member then, or is one now: `then` and `now` are the roles, None for no member.

    `name` is "" where nobody knows it any more. `hindrance` says in a sentence why the person who looks cannot restore
    them, "" where they can and for those who are as they were; `is_invited_instead` says that an invitation helps.
    """

    id: str
    name: str
    email: str
    then: Role | None
    now: Role | None
    hindrance: str = ""
    is_invited_instead: bool = False

    @property
    def is_same(self) -> bool:
        return self.now is self.then

    @property
    def called(self) -> str:
        """Return the name, or else the address."""
        return self.name or self.email


@dataclass(frozen=True)
class RestoredMember:
    """Report what became of one of them. `left` says why they stay as they are, "" for who was restored."""

    person: PastMember
    left: str = ""


def at(tenant: TenantContext, moment: str, *, consistent: bool = False) -> list[PastMember]:
    """Return who was a member at this moment, a stamp, or is one now, by address.

    Costs a Query for every 500 rows that the trail has from that day on, and at the same time one of the members; then,
    where people are gone, a BatchGetItem for every hundred of them. Raises Invalid before the trail begins.
    """
    reads: list[Any] = [
        lambda: members.members_of(tenant.repository, consistent=consistent),
        lambda: _later(tenant, moment),
    ]
    present: list[Member]
    rows: list[TrailRow]
    present, rows = fan_out(reads)
    now = {m.id: PastMember(m.id, m.name, m.email, m.role, m.role) for m in present}
    rows = [_of_member(row, {m.email: m.id for m in present}) for row in rows]
    people, departures = dict(now), _departures(rows)
    for row in rows:
        _take_back(people, row)
    known = accounts.find_all([person for person in people if person not in now])
    owners = sum(m.role is Role.OWNER for m in present)
    found = [
        _hindered(tenant, person, owners=owners)
        if person.id in now
        else _returning(tenant, _named(person, known.get(person.id)), known.get(person.id), departures[person.id])
        for person in people.values()
        if person.then or person.now
    ]
    return sorted(found, key=lambda person: (person.email, person.id))


def _later(tenant: TenantContext, moment: str) -> list[TrailRow]:
    """Return the rows after this moment that are about a person, newest first. Raises Invalid: the trail came later."""
    since = clock.parse(moment)
    rows: list[TrailRow] = []
    only = TrailFilter(first=since.astimezone(UTC).date())
    for row in browsing.everything(tenant.repository, only=only, erased=ErasedPeople.parse(tenant.erased)):
        if row.at <= since:
            break
        if row.action == AuditAction.TENANT_CREATED:
            began = locales.current().exact(row.at, seconds=True)
            raise Invalid(
                _("The audit trail begins on %(began)s. Who was a member before that is not known.") % {"began": began},
                field="at",
            )
        if row.entity_type == "user":
            rows.append(row)
    return rows


def _of_member(row: TrailRow, ids: Mapping[str, str]) -> TrailRow:
    """Return a row about the address of a member as one about that member: the trail of a desk that was brought in from
    elsewhere has the ids that its members had there."""
    return replace(row, entity_id=ids.get(row.entity, row.entity_id))


def _departures(rows: Iterable[TrailRow]) -> dict[str, TrailRow]:
    """Return for each person who went the row that tells of it last, of rows newest first."""
    found: dict[str, TrailRow] = {}
    for row in rows:
        if row.action in _DEPARTED:
            found.setdefault(row.entity_id, row)
    return found


def _take_back(people: dict[str, PastMember], row: TrailRow) -> None:
    """Make somebody what they were before a row. It changes `then` alone: `now` comes from the members."""
    known = people.get(row.entity_id)
    if row.action in _DEPARTED:
        known = known or PastMember(row.entity_id, "", row.entity, None, None)
        people[row.entity_id] = replace(known, then=Role(row.before["role"]))
    elif known is not None and row.action in _JOINED:
        people[row.entity_id] = replace(known, then=None)
    elif known is not None and row.action == AuditAction.MEMBER_ROLE_CHANGED:
        people[row.entity_id] = replace(known, then=Role(row.before["role"]))


def _named(person: PastMember, account: User | None) -> PastMember:
    """Give somebody who is gone their name, as long as the account has the address that the desk knew."""
    return replace(person, name=account.name) if account is not None and account.email == person.email else person


def _hindered(tenant: TenantContext, person: PastMember, *, owners: int) -> PastMember:
    """Say of a member why they cannot be given the role that they had."""
    if person.is_same or person.now is None:
        return person
    if person.then is None:
        return replace(
            person, hindrance=_("They became a member later. Remove them under Members if they should not be one.")
        )
    highest = person.then if person.then.at_least(person.now) else person.now
    if not tenant.role.at_least(highest):
        return replace(person, hindrance=_("Only %(role)s can change this.") % {"role": highest.with_article})
    is_last = person.now is Role.OWNER and owners == 1
    return replace(person, hindrance=_(member_changes.ONLY_OWNER)) if is_last else person


def _returning(tenant: TenantContext, person: PastMember, account: User | None, row: TrailRow) -> PastMember:
    """Say of somebody who is gone why they cannot be taken in again."""
    if row.action == AuditAction.MEMBER_LEFT:
        return replace(person, hindrance=_("They left the desk by themselves."), is_invited_instead=True)
    if "@" not in row.entity:
        return replace(person, hindrance=_("They were erased from the desk."), is_invited_instead=True)
    if account is None:
        return replace(person, hindrance=_("They have no account here."), is_invited_instead=True)
    if not account.is_active:
        return replace(person, hindrance=_("Their account is disabled."))
    if person.then is not None and not tenant.role.at_least(person.then):
        article = person.then.with_article
        return replace(person, hindrance=_("Only %(role)s can make somebody %(role)s.") % {"role": article})
    return person


def restore(tenant: TenantContext, seen: Mapping[str, Role | None], moment: str, *, by: Actor) -> list[RestoredMember]:
    """Give up to MOST people, by id, the role that they had at this moment, or make them members again.

    `seen` says which role each had when it was asked for, None for no member: who has another one by now is left. Each
    is a change of its own: some may be restored and others not. Raises Invalid for nobody, for too many, and for a
    moment before the trail begins.
    """
    check(seen)
    chosen = [person for person in at(tenant, moment, consistent=True) if person.id in seen]
    chosen.sort(key=lambda person: person.id == tenant.user_id)  # last, because the others need the rights of now
    return [_restored(tenant, person, seen[person.id], moment, by) for person in chosen]


def check(chosen: Mapping[str, Any]) -> None:
    """Raise Invalid for nobody, and for more than MOST."""
    if not chosen:
        raise Invalid(_("Select members first."))
    if len(chosen) > MOST:
        raise Invalid(
            _("At most %(most)s members can be restored together; you selected %(count)s.")
            % {"most": MOST, "count": len(chosen)}
        )


def _restored(tenant: TenantContext, person: PastMember, seen: Role | None, moment: str, by: Actor) -> RestoredMember:
    try:
        if person.now is not seen:
            raise Conflict(_(member_changes.CHANGED))
        if person.is_same and person.now:
            raise Invalid(_("They are %(role)s, as they were then.") % {"role": person.now.with_article})
        if person.hindrance or person.then is None:
            raise Conflict(person.hindrance + (" " + _("Invite them instead.") if person.is_invited_instead else ""))
        if person.now is None:
            _take_in(tenant, person, person.then, moment, by)
        else:
            member_changes.change_role(tenant, user_id=person.id, to=person.then, by=by)
    except PortalError as error:
        if error.status >= 500:
            raise
        return RestoredMember(person, error.message)
    return RestoredMember(person)


def _take_in(tenant: TenantContext, person: PastMember, role: Role, moment: str, by: Actor) -> None:
    """Make somebody a member again. Raises Conflict where the desk is full or the person cannot be."""
    user = accounts.find_by_id(person.id)
    if user is None or not user.is_active:
        raise Conflict(_("They have no account that can be used."))
    transaction = Transaction()
    member_changes.put_member(transaction, user=user, tenant=tenant, role=role)
    member_changes.require_role(transaction, tenant)
    after = {"role": role.value, "as of": moment}
    entry = AuditEntry(tenant.tenant_id, AuditAction.MEMBER_ADDED, by, "user", user.id, user.email, after=after)
    try:
        seats.commit(transaction, [entry], tenant_id=tenant.tenant_id, seat=seats.member(user.id))
    except TransactionRefused as error:
        raise Conflict(_(member_changes.CHANGED)) from error
