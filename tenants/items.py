"""What is stored about accounts, tenants and who belongs where: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo import tables
from portal.dynamo.client import Item


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
    """A tenant's own settings. `shards` spreads its ticket indexes; `shard_epoch` grows when `shards` changes."""

    table = tables.TENANTS

    tenant_id = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute()
    slug = UnicodeAttribute()
    status = UnicodeAttribute(default="active")
    plan = UnicodeAttribute(default="standard")
    shards = NumberAttribute(default=1)
    shard_epoch = NumberAttribute(default=0)
    created_at = UnicodeAttribute()


class DirectoryItem(Item):
    """That a tenant exists, by its slug: so that commands and operators find all of them without a scan."""

    table = tables.DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute()
    title = UnicodeAttribute()
    created_at = UnicodeAttribute()


class MemberItem(Item):
    """The same membership as the tenant sees it: whom a ticket can be assigned to."""

    table = tables.MEMBERS

    tenant_id = UnicodeAttribute(hash_key=True)
    user_id = UnicodeAttribute(range_key=True)
    name = UnicodeAttribute()
    email = UnicodeAttribute()
    role = UnicodeAttribute()
    created_at = UnicodeAttribute()
