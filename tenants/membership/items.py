"""Store the members of a tenant and its invitations: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tenants.membership.tables import INVITES, MEMBERS, UNREACHED
from tenants.sign_in.stored import USERS
from tenants.tenancy.stored import MEMBERSHIPS


class MemberItem(Item):
    """A membership as the tenant sees it: somebody to whom a ticket can be assigned."""

    table = MEMBERS

    tenant_id = UnicodeAttribute(hash_key=True)
    user_id = UnicodeAttribute(range_key=True)
    name = UnicodeAttribute()
    email = UnicodeAttribute()
    role = UnicodeAttribute()
    created_at = UnicodeAttribute()


class InviteItem(Item):
    """A pending invitation as its tenant sees it.

    `invited_by` is the id of the member who sent it last, with whose right it stands. `link` is the key of the
    InviteLinkItem: a hash of the link's secret, not the secret.
    """

    table = INVITES

    tenant_id = UnicodeAttribute(hash_key=True)
    invite_id = UnicodeAttribute(range_key=True)
    email = UnicodeAttribute()
    role = UnicodeAttribute()
    invited_by = UnicodeAttribute()
    invited_by_name = UnicodeAttribute()
    created_at = UnicodeAttribute()
    sent_at = UnicodeAttribute()
    expires_at = UnicodeAttribute()
    link = UnicodeAttribute()


class UnreachedItem(Item):
    """Says of an invitation that the mail written at `sent_at` did not get through: when that was known, and why."""

    table = UNREACHED

    tenant_id = UnicodeAttribute(hash_key=True)
    invite_id = UnicodeAttribute(range_key=True)
    sent_at = UnicodeAttribute()
    at = UnicodeAttribute()
    why = UnicodeAttribute()
    expires_at = NumberAttribute()


class InviteLinkItem(Item):
    """The target of an invitation's link. It is deleted when the invitation is used, revoked or sent again."""

    table = USERS

    pk = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute()
    invite_id = UnicodeAttribute()
    invited_by = UnicodeAttribute()


class InvitedItem(Item):
    """An invitation as the invited person sees it. Its key allows one per address and tenant."""

    table = MEMBERSHIPS

    platform_user_id = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute(range_key=True)
    invite_id = UnicodeAttribute()
    role = UnicodeAttribute()
    tenant_name = UnicodeAttribute()
    invited_by = UnicodeAttribute()
    invited_by_name = UnicodeAttribute()
    expires_at = UnicodeAttribute()
