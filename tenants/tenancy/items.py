"""What is stored about accounts, tenants and who belongs where: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import tables


class AccountItem(Item):
    """A person who can sign in. `session_epoch` grows to sign the person out everywhere."""

    table = tables.USERS

    pk = UnicodeAttribute(hash_key=True)
    user_id = UnicodeAttribute()
    email = UnicodeAttribute()
    name = UnicodeAttribute()
    password = UnicodeAttribute()
    is_active = BooleanAttribute(default=True)
    is_operator = BooleanAttribute(default=False)
    session_epoch = NumberAttribute(default=0)
    created_at = UnicodeAttribute()


class UniqueItem(Item):
    """Makes an e-mail address or a slug unique: its key is the value, `owner` the account's or tenant's id."""

    table = tables.USERS

    pk = UnicodeAttribute(hash_key=True)
    owner = UnicodeAttribute()


class ThrottleItem(Item):
    """Sign-in attempts of one account or address in one time window."""

    table = tables.THROTTLES

    bucket = UnicodeAttribute(hash_key=True)
    attempts = NumberAttribute(default=0)
    expires_at = NumberAttribute()


class MembershipItem(Item):
    """One person in one tenant. The tenant's name and slug are copied here so that choosing one costs one Query."""

    table = tables.MEMBERSHIPS

    platform_user_id = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute(range_key=True)
    role = UnicodeAttribute()
    tenant_name = UnicodeAttribute()
    tenant_slug = UnicodeAttribute()
    created_at = UnicodeAttribute()


class TenantItem(Item):
    """A tenant's own settings. `shards` spreads its ticket indexes; `shard_epoch` grows when `shards` changes.

    `member_limit` is missing where there is none. `seatings` and `last_seat` are for the counting, see
    tenants/membership/seats.py. `defaults` is what its forms begin with, as JSON; see tenants/provisioning/defaults.py.
    """

    table = tables.TENANTS

    tenant_id = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute()
    slug = UnicodeAttribute()
    status = UnicodeAttribute(default="active")
    plan = UnicodeAttribute(default="standard")
    shards = NumberAttribute(default=1)
    shard_epoch = NumberAttribute(default=0)
    member_limit = NumberAttribute(null=True)
    seatings = NumberAttribute(null=True)
    last_seat = UnicodeAttribute(null=True)
    defaults = UnicodeAttribute(null=True)
    created_at = UnicodeAttribute()


class DirectoryItem(Item):
    """That a tenant exists, by its slug: so that commands and operators find all of them without a scan.

    A suspended tenant has a second item, in the partition of the suspended.
    """

    table = tables.DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute()
    title = UnicodeAttribute()
    created_at = UnicodeAttribute()
    status = UnicodeAttribute(default="active")


class MemberItem(Item):
    """The same membership as the tenant sees it: whom a ticket can be assigned to."""

    table = tables.MEMBERS

    tenant_id = UnicodeAttribute(hash_key=True)
    user_id = UnicodeAttribute(range_key=True)
    name = UnicodeAttribute()
    email = UnicodeAttribute()
    role = UnicodeAttribute()
    created_at = UnicodeAttribute()


class InviteItem(Item):
    """A pending invitation as its tenant sees it. `link` is the key of what its link leads to: a hash, no secret."""

    table = tables.INVITES

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

    table = tables.USERS

    pk = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute()
    invite_id = UnicodeAttribute()


class InvitedItem(Item):
    """That an address is invited to a tenant: makes it so once, and lets the invited person see it when choosing."""

    table = tables.MEMBERSHIPS

    platform_user_id = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute(range_key=True)
    invite_id = UnicodeAttribute()
    role = UnicodeAttribute()
    tenant_name = UnicodeAttribute()
    invited_by_name = UnicodeAttribute()
    expires_at = UnicodeAttribute()


class AuditItem(Item):
    """One event of the audit trail. `before` and `after` are JSON objects of texts, "" where there is nothing.

    `lane`, `sequence`, `previous` and `hash` are its place in the chain; see tenants/audit_trail/chain.py.
    """

    table = tables.AUDIT

    tenant_id = UnicodeAttribute(hash_key=True)
    timestamp_event_id = UnicodeAttribute(range_key=True)
    tenant_actor = UnicodeAttribute()
    tenant_entity = UnicodeAttribute()
    action = UnicodeAttribute()
    actor_id = UnicodeAttribute()
    actor_email = UnicodeAttribute(default="")
    origin = UnicodeAttribute(default="")
    entity_type = UnicodeAttribute()
    entity_id = UnicodeAttribute()
    entity_name = UnicodeAttribute(default="")
    before = UnicodeAttribute(default="")
    after = UnicodeAttribute(default="")
    lane = UnicodeAttribute()
    sequence = NumberAttribute()
    previous = UnicodeAttribute(default="")
    hash = UnicodeAttribute()


class ChainItem(Item):
    """The end of one lane of a tenant's audit chain: how many rows there are, and the hash of the last."""

    table = tables.CHAINS

    tenant_id = UnicodeAttribute(hash_key=True)
    lane = UnicodeAttribute(range_key=True)
    sequence = NumberAttribute()
    hash = UnicodeAttribute()
