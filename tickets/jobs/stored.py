"""Store jobs: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tenants.tenancy.stored import DIRECTORY


class JobItem(Item):
    """Store the common attributes of all jobs, the latest of a tenant under its id.

    `state` says whether somebody has to carry it out, and `phase` how far that is. `holder` is whoever has the lease,
    "" for nobody, who raises `counter` as a heartbeat. `trouble` is what keeps it from going on, "" for nothing.
    `begun_at` tells one job of a tenant from the next.
    """

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute()
    slug = UnicodeAttribute()
    title = UnicodeAttribute()
    reason = UnicodeAttribute(default="")
    state = UnicodeAttribute()
    phase = UnicodeAttribute(default="")
    holder = UnicodeAttribute(default="")
    counter = NumberAttribute(default=0)
    trouble = UnicodeAttribute(default="")
    begun_at = UnicodeAttribute(default="")
