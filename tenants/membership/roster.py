"""Decide what the people of a tenant may do with its members: admins change roles and remove, anybody may leave.

Nobody grants a role above their own, or acts on somebody above themselves.
"""

from __future__ import annotations

from portal.errors import Forbidden, Invalid, NotFound
from tenants.audit_trail.recording import Actor, AuditAction
from tenants.membership import member_changes, members
from tenants.membership.members import Member
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role


def change_role(tenant: TenantContext, *, user_id: str, to: Role, by: Actor) -> Member:
    """Give a member another role, and return the member as it was.

    Raises NotFound, Invalid for the role that the member has, Forbidden above one's own role, and Conflict for the only
    owner or if somebody else was faster.
    """
    person = target(tenant, user_id)
    if not tenant.role.at_least(to):
        raise Forbidden(f"Only {to.with_article} can make somebody {to.with_article}.")
    if person.role is to:
        raise Invalid(f"{person.name} is already {to.with_article}.")
    member_changes.commit(
        tenant.tenant_id, person, to=to, action=AuditAction.MEMBER_ROLE_CHANGED, by=by, context=tenant
    )
    return person


def remove(tenant: TenantContext, *, user_id: str, by: Actor) -> Member:
    """Remove a member, or leave: access ends at once. Return the member as it was. Raises what `change_role` does."""
    person = target(tenant, user_id)
    action = AuditAction.MEMBER_LEFT if person.id == tenant.user_id else AuditAction.MEMBER_REMOVED
    member_changes.commit(tenant.tenant_id, person, to=None, action=action, by=by, context=tenant)
    return person


def may_touch(tenant: TenantContext, person: Member) -> bool:
    """Tell whether the person at work may change or remove this member."""
    return person.id == tenant.user_id or (tenant.is_admin and tenant.role.at_least(person.role))


def target(tenant: TenantContext, user_id: str) -> Member:
    """Return the member whom the person at work may change or remove. Raises NotFound and Forbidden."""
    person = members.member(tenant.repository, user_id)
    if person is None:
        raise NotFound("This person is not a member.")
    if not may_touch(tenant, person):
        raise Forbidden(
            f"{person.name} is {person.role.with_article}, and only {person.role.with_article} can do that."
        )
    return person


def is_only_owner(tenant: TenantContext) -> bool:
    """Tell whether the person at work is the tenant's only owner. Reads all members if the person is an owner."""
    return tenant.is_owner and not members.owners_of(tenant.repository, but=tenant.user_id)
