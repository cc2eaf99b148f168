"""Give the members of a tenant that is brought in their accounts and memberships here.

A person is known by the address. Somebody without an account gets one, with the id that they had where that is free,
and without a password: the form for a forgotten one leads in.
"""

from __future__ import annotations

from portal import plain_text
from portal.dynamo import platform
from portal.dynamo.repository import Transaction
from portal.errors import Conflict
from portal.schema.holdings import Raw
from tenants.audit_trail.recording import Actor
from tenants.membership.stored import MemberItem
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.tenancy.stored import MembershipItem, TenantItem


def account_of(member: Raw, *, by: Actor) -> tuple[User, bool]:
    """Return the account of a member as exported, and whether it was made now. Raises Invalid for no address."""
    email, name = member["email"]["S"], plain_text.unlinked(member["name"]["S"])
    if (known := accounts.find_by_email(email)) is not None:
        return known, False
    try:
        return accounts.create(email=email, name=name, password=None, user_id=member["user_id"]["S"], by=by), True
    except Conflict:  # the id is somebody else's here
        return accounts.create(email=email, name=name, password=None, by=by), True


def join(tenant: TenantItem, user: User, member: Raw) -> None:
    """Write both sides of a membership, whatever is there of a former attempt."""
    role, since = member["role"]["S"], member["created_at"]["S"]
    transaction = Transaction()
    transaction.put(
        MembershipItem(
            user.id, tenant.tenant_id, role=role, tenant_name=tenant.name, tenant_slug=tenant.slug, created_at=since
        )
    )
    transaction.put(
        MemberItem(tenant.tenant_id, user.id, name=user.name, email=user.email, role=role, created_at=since)
    )
    platform.transact(transaction)
