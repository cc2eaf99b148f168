"""What the admins and owners of a tenant do with its members: change roles, remove; and anybody: leave.

Nobody grants a role above their own, nor touches somebody above. A tenant always has an owner: whoever acts on an owner
is one, and that they still are is a condition of the same transaction; an owner who leaves or steps down makes it a
condition that somebody else is one. Transactions are serialisable, so the last of any number of simultaneous ones finds
nobody left to name and is refused. There is no counter that could drift, and no item that all changes meet at.

Source: AWS, "Amazon DynamoDB transactions: how it works", isolation levels; the four roles in tenants/tenancy/roles.py.
"""

from __future__ import annotations

from typing import Final

from portal.dynamo.repository import Transaction
from portal.errors import Conflict, Forbidden, Invalid, NotFound, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import members
from tenants.membership.items import MemberItem
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tenants.tenancy.items import MembershipItem
from tenants.tenancy.roles import Role

_CHANGED: Final = "Somebody else has just changed this membership. This is how it is now."


def change_role(tenant: TenantContext, *, user_id: str, to: Role, by: Actor) -> Member:
    """Give a member another role and return the member as it was.

    Raises NotFound, Forbidden above the own role, Conflict for the last owner or where somebody else was first.
    """
    person = target(tenant, user_id)
    if not tenant.role.at_least(to):
        raise Forbidden(f"Only somebody who is {_article(to)} can make somebody else {_article(to)}.")
    if person.role is to:
        raise Invalid(f"{person.name} is {_article(to)} already.")
    entry = AuditEntry(
        tenant.tenant_id,
        AuditAction.MEMBER_ROLE_CHANGED,
        by,
        "user",
        person.id,
        person.email,
        before={"role": person.role.value},
        after={"role": to.value},
    )
    transaction = Transaction()
    transaction.update(
        MembershipItem(person.id, tenant.tenant_id),
        [MembershipItem.role.set(to.value)],
        condition=MembershipItem.role == person.role.value,
    )
    transaction.update(MemberItem(tenant.tenant_id, person.id), [MemberItem.role.set(to.value)])
    _send(tenant, transaction, person, entry)
    return person


def remove(tenant: TenantContext, *, user_id: str, by: Actor) -> Member:
    """Take a member out; it counts at their next click. Leaving is this for oneself. Raises as `change_role` does."""
    person = target(tenant, user_id)
    action = AuditAction.MEMBER_LEFT if person.id == tenant.user_id else AuditAction.MEMBER_REMOVED
    before = {"role": person.role.value}
    entry = AuditEntry(tenant.tenant_id, action, by, "user", person.id, person.email, before=before)
    transaction = Transaction()
    transaction.delete(MembershipItem(person.id, tenant.tenant_id), condition=MembershipItem.role == person.role.value)
    transaction.delete(MemberItem(tenant.tenant_id, person.id))
    _send(tenant, transaction, person, entry)
    return person


def may_touch(tenant: TenantContext, target: Member) -> bool:
    """Whether the person at work may change or remove this member."""
    return target.id == tenant.user_id or (tenant.is_admin and tenant.role.at_least(target.role))


def target(tenant: TenantContext, user_id: str) -> Member:
    """The member whom the person at work may change or remove. Raises NotFound, Forbidden."""
    found = members.member(tenant.repository, user_id)
    if found is None:
        raise NotFound("There is no such member.")
    if not may_touch(tenant, found):
        raise Forbidden(f"{found.name} is {_article(found.role)}; that is above your role.")
    return found


def _send(tenant: TenantContext, transaction: Transaction, target: Member, entry: AuditEntry) -> None:
    """The change, on condition that the actor still has the role, and that an owner is left."""
    if target.id != tenant.user_id:
        transaction.check(MembershipItem(tenant.user_id, tenant.tenant_id), MembershipItem.role == tenant.role.value)
    try:
        if target.id == tenant.user_id and target.role is Role.OWNER:
            members.commit_leaving_an_owner(transaction, [entry], repository=tenant.repository, but=target.id)
        else:
            recording.commit(transaction, [entry])
    except TransactionRefused as error:
        raise Conflict(_CHANGED) from error


def _article(role: Role) -> str:
    return f"{'an' if role.value[0] in 'aeiou' else 'a'} {role.value}"
