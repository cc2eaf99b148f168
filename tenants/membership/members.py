"""Who belongs to which tenant: the membership as the person sees it, and the member as the tenant sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from portal import clock
from portal.dynamo.repository import TenantRepository, Transaction
from portal.dynamo.retry import retrying
from portal.errors import Conflict, TransactionRefused
from portal.schema import keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.identity.models import User
from tenants.membership import seats
from tenants.membership.items import MemberItem
from tenants.membership.tables import MEMBERS
from tenants.tenancy.items import MembershipItem
from tenants.tenancy.roles import Role

# Where the owner that was named steps down at the same moment another one is looked for.
_ATTEMPTS: Final = 20
_MEMBERSHIP, _WITNESS = "membership", "another owner"
LAST_OWNER: Final = "A desk always has an owner. Make somebody else an owner first."
_CHANGED: Final = "Somebody else has just changed this membership. This is how it is now."


@dataclass(frozen=True)
class Membership:
    """One of the tenants a person may choose."""

    tenant_id: str
    name: str
    slug: str
    role: Role


@dataclass(frozen=True)
class Member:
    """One of the people a ticket may be assigned to."""

    id: str
    name: str
    email: str
    role: Role


def memberships_of(user_id: str) -> list[Membership]:
    """The tenants of a person by name: one Query (followed by more above 1 MB, some 5,000 tenants)."""
    found = [
        Membership(item.tenant_id, item.tenant_name, item.tenant_slug, Role(item.role))
        for item in MembershipItem.query(user_id)
    ]
    return sorted(found, key=lambda m: (m.name.casefold(), m.tenant_id))


def members_of(repository: TenantRepository, *, consistent: bool = False) -> list[Member]:
    """The members of a tenant by name: one Query for some 6,000 members, then one more for each further 1 MB."""
    stored = repository.query_all(MEMBERS, keys.tenant, consistent=consistent)
    items = [MemberItem.from_raw_data(raw) for raw in stored]
    people = [Member(i.user_id, i.name, i.email, Role(i.role)) for i in items]
    return sorted(people, key=lambda m: (m.name.casefold(), m.id))


def member(repository: TenantRepository, user_id: str) -> Member | None:
    """One member, or None: one consistent GetItem."""
    if not keys.USER_ID.match(user_id):
        return None
    item = repository.get(MemberItem, keys.tenant, sort=user_id, consistent=True)
    return Member(item.user_id, item.name, item.email, Role(item.role)) if item else None


def pair(
    *, user: User, tenant_id: str, tenant_name: str, tenant_slug: str, role: Role
) -> tuple[MembershipItem, MemberItem]:
    """Both sides of a membership. They are always written together."""
    at = clock.stamp()
    return (
        MembershipItem(
            user.id, tenant_id, role=role.value, tenant_name=tenant_name, tenant_slug=tenant_slug, created_at=at
        ),
        MemberItem(tenant_id, user.id, name=user.name, email=user.email, role=role.value, created_at=at),
    )


def add(*, user: User, tenant_id: str, tenant_name: str, tenant_slug: str, role: Role, by: Actor | None = None) -> None:
    """Make a person a member. Operators only: their admin, commands and seeds.

    `by` is who does it, for the audit trail; without it there is no row, and no limit is looked at: for seeds and for
    the proof of isolation. Raises Conflict when they are one already, or where the tenant is full.
    """
    membership, mirror = pair(
        user=user, tenant_id=tenant_id, tenant_name=tenant_name, tenant_slug=tenant_slug, role=role
    )
    transaction = Transaction()
    transaction.put(membership, condition=MembershipItem.tenant_id.does_not_exist())
    transaction.put(mirror)
    entries = _entries(tenant_id, user.id, AuditAction.MEMBER_ADDED, by, after={"role": role.value})
    try:
        if by is None:
            recording.commit(transaction, entries)
        else:
            seats.commit(transaction, entries, tenant_id=tenant_id, seat=seats.member(user.id))
    except TransactionRefused as error:
        raise Conflict(f"{user.email} is a member of {tenant_name} already.") from error


def set_role(*, user_id: str, tenant_id: str, role: Role, seen: Role, by: Actor) -> None:
    """Change a role on both sides, for operators. Raises Conflict when the person is no member, or no longer has the
    role `seen`, or is the last owner."""
    transaction = Transaction()
    transaction.update(
        MembershipItem(user_id, tenant_id),
        [MembershipItem.role.set(role.value)],
        name=_MEMBERSHIP,
        condition=MembershipItem.role == seen.value,
    )
    transaction.update(MemberItem(tenant_id, user_id), [MemberItem.role.set(role.value)])
    before, after = {"role": seen.value}, {"role": role.value}
    entries = _entries(tenant_id, user_id, AuditAction.MEMBER_ROLE_CHANGED, by, before=before, after=after)
    ends = seen is Role.OWNER and role is not Role.OWNER
    _write_existing(transaction, entries, tenant_id, user_id if ends else "")


def remove(*, user_id: str, tenant_id: str, by: Actor | None = None) -> None:
    """Take a person out of a tenant, for operators; it counts at the person's next click. Raises Conflict for a
    non-member and for the last owner. `by` is as in `add`."""
    transaction = Transaction()
    found = member(TenantRepository(tenant_id), user_id) if by else None
    stands = MembershipItem.role == found.role.value if found else MembershipItem.tenant_id.exists()
    transaction.delete(MembershipItem(user_id, tenant_id), name=_MEMBERSHIP, condition=stands)
    transaction.delete(MemberItem(tenant_id, user_id))
    before = {"role": found.role.value} if found else {}
    entries = _entries(tenant_id, user_id, AuditAction.MEMBER_REMOVED, by, before=before)
    _write_existing(transaction, entries, tenant_id, user_id if found and found.role is Role.OWNER else "")


def owners_of(repository: TenantRepository, *, but: str = "") -> list[Member]:
    """The owners of a tenant without one person, read consistently; costs what `members_of` does."""
    return [m for m in members_of(repository, consistent=True) if m.role is Role.OWNER and m.id != but]


def commit_leaving_an_owner(
    transaction: Transaction, entries: Sequence[AuditEntry], *, repository: TenantRepository, but: str
) -> None:
    """`audit.commit` of what ends a person's ownership, on condition that somebody else is an owner.

    Transactions are serialisable, so the last of any number of simultaneous ones finds nobody left to name.
    Raises Conflict for the last owner, and TransactionRefused where a member of the caller's was refused.
    """

    def attempt() -> None:
        others = owners_of(repository, but=but)
        if not others:
            raise Conflict(LAST_OWNER, field="role")
        whole, witness = transaction.copy(), MembershipItem(others[0].id, repository.tenant_id)
        whole.check(witness, MembershipItem.role == Role.OWNER.value, name=_WITNESS)
        recording.commit(whole, entries)

    retrying(
        attempt,
        again=lambda error: isinstance(error, TransactionRefused) and error.is_passing(_WITNESS),
        attempts=_ATTEMPTS,
        given_up=Conflict(_CHANGED),
    )


def _write_existing(transaction: Transaction, entries: list[AuditEntry], tenant_id: str, owner: str) -> None:
    """`owner` is the person whose ownership this ends, "" for nobody's."""
    try:
        if owner:
            commit_leaving_an_owner(transaction, entries, repository=TenantRepository(tenant_id), but=owner)
        else:
            recording.commit(transaction, entries)
    except TransactionRefused as error:
        refused = error.reason(_MEMBERSHIP)
        if refused is not None and refused.item is not None:
            raise Conflict(_CHANGED) from error
        raise Conflict("This person is not a member.") from error


def _entries(
    tenant_id: str,
    user_id: str,
    action: AuditAction,
    by: Actor | None,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> list[AuditEntry]:
    return [AuditEntry(tenant_id, action, by, "user", user_id, "", before or {}, after or {})] if by else []
