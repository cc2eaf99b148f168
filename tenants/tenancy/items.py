"""Store tenants and who belongs where: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import BooleanAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tenants.tenancy.tables import DIRECTORY, MEMBERSHIPS, TENANTS


class MembershipItem(Item):
    """One person in one tenant. The tenant's name and slug are copied here so that choosing one costs one Query."""

    table = MEMBERSHIPS

    platform_user_id = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute(range_key=True)
    role = UnicodeAttribute()
    tenant_name = UnicodeAttribute()
    tenant_slug = UnicodeAttribute()
    created_at = UnicodeAttribute()


class TenantItem(Item):
    """A tenant's own settings. `shards`, `write_shards` (missing where it is the same), `moving_to` (missing where
    nothing moves) and `shard_epoch` spread its ticket indexes; see tenants/tenancy/shard_layout.py.

    `former_slug` is its slug before the last renaming. `member_limit` is missing where there is none. `seatings` and
    `last_seat` are for the counting, see tenants/membership/seats.py. `defaults` is what its forms begin with, as JSON;
    see tenants/provisioning/defaults.py. `subscriptions` is the JSON of who is told of what, by event type a list of
    destinations; `queues` that of the numbers of its queues. Both are for delivery. `request_rate` is what operators
    let it ask for in place of its plan's rate, in units a second; see portal/limits/rates.py. `needs_second_factor`
    keeps out members who have none, and is missing where the owners have not asked for that. `placement` is where its
    content lies, missing in the pool; `placement_epoch` grows with each change of it, `former_placement` is where the
    old copy still is, and `move` is the JSON of a move that is under way; see portal/dynamo/placement.py. `closes_at`
    is when the grace of a tenant ends that is closing, `status_before` what an undo brings back; see tenants/closing.
    `erased` is the JSON of whom the desk has forgotten; see tenants/audit_trail/erased_people.py. `arriving` is the id
    of the import that brings the tenant in, and is missing once that has ended; see tenants/transfer.
    """

    table = TENANTS

    tenant_id = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute()
    slug = UnicodeAttribute()
    former_slug = UnicodeAttribute(null=True)
    status = UnicodeAttribute(default="active")
    plan = UnicodeAttribute(default="standard")
    shards = NumberAttribute(default=1)
    write_shards = NumberAttribute(null=True)
    moving_to = NumberAttribute(null=True)
    shard_epoch = NumberAttribute(default=0)
    member_limit = NumberAttribute(null=True)
    seatings = NumberAttribute(null=True)
    last_seat = UnicodeAttribute(null=True)
    defaults = UnicodeAttribute(null=True)
    subscriptions = UnicodeAttribute(null=True)
    queues = UnicodeAttribute(null=True)
    request_rate = NumberAttribute(null=True)
    placement = UnicodeAttribute(null=True)
    former_placement = UnicodeAttribute(null=True)
    placement_epoch = NumberAttribute(default=0)
    move = UnicodeAttribute(null=True)
    closes_at = UnicodeAttribute(null=True)
    status_before = UnicodeAttribute(null=True)
    erased = UnicodeAttribute(null=True)
    needs_second_factor = BooleanAttribute(null=True)
    arriving = UnicodeAttribute(null=True)
    created_at = UnicodeAttribute()


class DirectoryItem(Item):
    """A tenant in the directory, by its slug, where commands and operators find all of them without a scan.

    A suspended tenant has a second item, in the partition of the suspended; so has one that is closing, with the
    moment at which its grace ends.
    """

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute()
    title = UnicodeAttribute()
    created_at = UnicodeAttribute()
    status = UnicodeAttribute(default="active")
    closes_at = UnicodeAttribute(null=True)
