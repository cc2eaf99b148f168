"""Store reshardings, and what leads to them: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tenants.tenancy.stored import DIRECTORY
from tickets.jobs.items import JobItem


class ReshardItem(JobItem):
    """A change of a tenant's number of shards: the last one by the tenant's id, former ones by when they began.

    `state` is running, stopping, stopped or done; `phase` is the step of `mover.py` that it is at, and `place` how far
    that has come, as JSON. `by` is a person's address, "" where the stream worker began it.
    """

    from_shards = NumberAttribute()
    to_shards = NumberAttribute()
    by = UnicodeAttribute(default="")
    place = UnicodeAttribute(default="")
    moved = NumberAttribute(default=0)
    ended_at = UnicodeAttribute(default="")


class HeatItem(Item):
    """Say what one stream worker has seen of partitions that are written much.

    `windows` is JSON: by the beginning of a window, write units a second by partition.
    """

    table = DIRECTORY

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    windows = UnicodeAttribute(default="{}")
    told_at = UnicodeAttribute()
