"""Store the members of a tenant and its invitations: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import UnicodeAttribute

from portal.dynamo.client import Item
from tenants.identity.tables import USERS
from tenants.membership.tables import INVITES, MEMBERS
from tenants.tenancy.tables import MEMBERSHIPS


class MemberItem(Item):
    """The same membership as the tenant sees it: whom a ticket can be assigned to."""

    table = MEMBERS

    tenant_id = UnicodeAttribute(hash_key=True)
    user_id = UnicodeAttribute(range_key=True)
    name = UnicodeAttribute()
    email = UnicodeAttribute()
    role = UnicodeAttribute()
    created_at = UnicodeAttribute()


class InviteItem(Item):
    """A pending invitation as its tenant sees it. `link` is the key of what its link leads to: a hash, no secret."""

    table = INVITES

    tenant_id = UnicodeAttribute(hash_key=True)
    invite_id = UnicodeAttribute(range_key=True)
    email = UnicodeAttribute()
    role = UnicodeAttribute()
    invited_by_name = UnicodeAttribute()
    created_at = UnicodeAttribute()
    sent_at = UnicodeAttribute()
    expires_at = UnicodeAttribute()
    link = UnicodeAttribute()


class InviteLinkItem(Item):
    """What an invitation's link leads to. It goes when the invitation is used, revoked or sent again."""

    table = USERS

    pk = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute()
    invite_id = UnicodeAttribute()


class InvitedItem(Item):
    """That an address is invited to a tenant: makes it so once, and lets the invited person see it when choosing."""

    table = MEMBERSHIPS

    platform_user_id = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute(range_key=True)
    invite_id = UnicodeAttribute()
    role = UnicodeAttribute()
    tenant_name = UnicodeAttribute()
    invited_by_name = UnicodeAttribute()
    expires_at = UnicodeAttribute()
