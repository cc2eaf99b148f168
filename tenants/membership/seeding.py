"""Make and remove memberships without an audit row, a limit or the rule of the last owner.

Only seeds, proofs and tests may do this: the tenants are theirs. A test names the modules that import this one.
"""

from __future__ import annotations

from portal.dynamo import platform
from portal.dynamo.repository import Transaction
from portal.errors import Conflict, TransactionRefused
from tenants.membership import member_changes
from tenants.membership.items import MemberItem
from tenants.sign_in.accounts import User
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tenants.tenancy.stored import MembershipItem, TenantItem


def add_member(user: User, tenant: TenantItem | TenantContext, role: Role) -> None:
    """Make a person a member. Raises Conflict if they are one already."""
    transaction = Transaction()
    member_changes.put_member(transaction, user=user, tenant=tenant, role=role)
    try:
        platform.transact(transaction)
    except TransactionRefused as error:
        raise Conflict(f"{user.email} is already a member of {tenant.name}.") from error


def remove_member(user_id: str, tenant_id: str) -> None:
    """Remove a member. Raises Conflict if they are none."""
    transaction = Transaction()
    transaction.delete(MembershipItem(user_id, tenant_id), condition=MembershipItem.tenant_id.exists())
    transaction.delete(MemberItem(tenant_id, user_id))
    try:
        platform.transact(transaction)
    except TransactionRefused as error:
        raise Conflict("This person is not a member.") from error
