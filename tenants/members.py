"""Who belongs to which tenant: the membership as the person sees it, and the member as the tenant sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from portal import clock
from portal.dynamo import keys, tables
from portal.dynamo.repository import TenantRepository, Transaction
from portal.errors import Conflict, TransactionRefused
from tenants import audit
from tenants.audit import Action, Actor, Entry
from tenants.items import MemberItem, MembershipItem
from tenants.models import User
from tenants.roles import Role


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
    members: list[Member] = []
    start = None
    while True:
        page = repository.query(tables.MEMBERS, keys.tenant, start=start, consistent=consistent)
        items = [MemberItem.from_raw_data(raw) for raw in page.items]
        members += [Member(i.user_id, i.name, i.email, Role(i.role)) for i in items]
        start = page.last_key
        if start is None:
            return sorted(members, key=lambda m: (m.name.casefold(), m.id))


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
    """Make a person a member. Operators only: their admin, commands and seeds. Raises Conflict when they are one
    already. `by` is who does it, for the audit trail; without it there is no row."""
    membership, mirror = pair(
        user=user, tenant_id=tenant_id, tenant_name=tenant_name, tenant_slug=tenant_slug, role=role
    )
    transaction = Transaction()
    transaction.put(membership, condition=MembershipItem.tenant_id.does_not_exist())
    transaction.put(mirror)
    try:
        audit.commit(transaction, _entries(tenant_id, user.id, Action.MEMBER_ADDED, by, after={"role": role.value}))
    except TransactionRefused as error:
        raise Conflict(f"{user.email} is a member of {tenant_name} already.") from error


def set_role(*, user_id: str, tenant_id: str, role: Role, seen: Role | None = None, by: Actor | None = None) -> None:
    """Change a role on both sides. Raises Conflict when the person is no member, or no longer has the role `seen`."""
    transaction = Transaction()
    transaction.update(
        MembershipItem(user_id, tenant_id),
        [MembershipItem.role.set(role.value)],
        condition=MembershipItem.tenant_id.exists() if seen is None else MembershipItem.role == seen.value,
    )
    transaction.update(MemberItem(tenant_id, user_id), [MemberItem.role.set(role.value)])
    before = {"role": seen.value} if seen else {}
    entries = _entries(tenant_id, user_id, Action.MEMBER_ROLE_CHANGED, by, before=before, after={"role": role.value})
    _write_existing(transaction, entries)


def remove(*, user_id: str, tenant_id: str, by: Actor | None = None) -> None:
    """Take a person out of a tenant; it counts at the person's next click. Raises Conflict for a non-member."""
    transaction = Transaction()
    transaction.delete(MembershipItem(user_id, tenant_id), condition=MembershipItem.tenant_id.exists())
    transaction.delete(MemberItem(tenant_id, user_id))
    _write_existing(transaction, _entries(tenant_id, user_id, Action.MEMBER_REMOVED, by))


def _write_existing(transaction: Transaction, entries: list[Entry]) -> None:
    try:
        audit.commit(transaction, entries)
    except TransactionRefused as error:
        refused = next((reason for reason in error.reasons if reason), None)
        if refused is not None and refused.item is not None:
            raise Conflict("Somebody else has just changed this role.") from error
        raise Conflict("This person is not a member.") from error


def _entries(
    tenant_id: str,
    user_id: str,
    action: Action,
    by: Actor | None,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> list[Entry]:
    return [Entry(tenant_id, action, by, "user", user_id, "", before or {}, after or {})] if by else []
