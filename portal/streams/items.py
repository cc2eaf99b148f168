"""Define what the followers of a stream store: leases and positions of shards, heartbeats, and one watermark.

All of it lies in one table. A partition holds the leases of a stream's unfinished shards, a second one its finished
shards, a third one its pollers. So what is read every two seconds does not grow with what is done.
"""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.streams.tables import LEASES


class LeaseItem(Item):
    """The lease of a shard that is not finished. `stream` is the stream's ARN, `shard` the shard's id.

    `owner` is a poller's id, "" for a shard that nobody holds; `counter` grows with every write of an owner's.
    `position` is the padded sequence number up to which all records of the shard are applied, "" for none; it only
    grows. `checkpoint` is the same number as the engine wrote it, which is the form in which it takes it back.
    `applied_until` is the moment, by the service's clock, before which every change in the shard is applied.
    `gap_at` is when records were found to be lost.
    """

    table = LEASES

    stream = UnicodeAttribute(hash_key=True)
    shard = UnicodeAttribute(range_key=True)
    parent = UnicodeAttribute(default="")
    owner = UnicodeAttribute(default="")
    counter = NumberAttribute(default=0)
    position = UnicodeAttribute(default="")
    checkpoint = UnicodeAttribute(default="")
    applied_until = UnicodeAttribute(default="")
    gap_at = UnicodeAttribute(default="")


class FinishedShardItem(Item):
    """A closed shard whose records are all applied, or lost if `gap_at` says so. It goes when the shard has
    left the stream."""

    table = LEASES

    stream = UnicodeAttribute(hash_key=True)
    shard = UnicodeAttribute(range_key=True)
    position = UnicodeAttribute(default="")
    gap_at = UnicodeAttribute(default="")


class HeartbeatItem(Item):
    """A poller's sign of life: `counter` grows every few seconds. An id lies in `shard`, the table's sort key."""

    table = LEASES

    stream = UnicodeAttribute(hash_key=True)
    shard = UnicodeAttribute(range_key=True)
    counter = NumberAttribute(default=0)
    expires_at = NumberAttribute()


class WatermarkItem(Item):
    """The moment before which every change in a table's stream is applied, and when that was written.

    It lies under the table's name in place of the stream's ARN: a page, which may not describe tables, knows the one
    and not the other. For a tenant's own table that is a name of tenant, placement and table. `as_of` is told by the
    service's clock and only grows.
    """

    table = LEASES

    stream = UnicodeAttribute(hash_key=True)
    shard = UnicodeAttribute(range_key=True)
    as_of = UnicodeAttribute()
    written_at = UnicodeAttribute()
    expires_at = NumberAttribute()


class FollowedStreamItem(Item):
    """Say that the stream with this ARN was followed, for a tenant's own table: it lies beside the watermark.

    So what is kept under the ARN is found when the table is no more.
    """

    table = LEASES

    stream = UnicodeAttribute(hash_key=True)
    shard = UnicodeAttribute(range_key=True)
