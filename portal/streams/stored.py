"""Declare what the followers of a stream store: positions of shards, signs of life, and one watermark.

All of it lies in one table. A partition holds a stream's unfinished shards, a second one its finished shards, a third
one its pollers. So what is read every two seconds does not grow with what is done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.conf import settings
from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.dynamo.placement import Placement
from portal.schema import keys, registry
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from portal.schema.registry import Grant, Table, declare

LEASES = Table(
    "Streams.Leases",
    "worker",
    "stream",
    "shard",
    ttl="expires_at",
    shared="a shard of a stream carries the changes of all tenants, and has one position",
)

declare(
    LEASES,
    grants=(
        Grant("worker", LEASES, ("BatchGetItem", "DeleteItem", "PutItem", "Query", "UpdateItem"), "HoldLeases"),
        # It deletes what is kept of the streams of a tenant's own tables, once the tenant is no more.
        Grant("platform", LEASES, ("DeleteItem", "GetItem", "Query")),
    ),
)

# --- keys ---

WATERMARK: Final = "WATERMARK"  # the sort key of the one item in its partition


def finished_key(stream_arn: str) -> str:
    """Form the partition key of a stream's shards that were read to their end; the ARN itself is that of the others."""
    return keys.joined("FINISHED", stream_arn)


def pollers_key(stream_arn: str) -> str:
    """Form the partition key of the pollers that follow a stream."""
    return keys.joined("POLLERS", stream_arn)


def keys_of_stream(stream_arn: str) -> tuple[str, str, str]:
    """Return the partition keys of all that is kept of a stream under its ARN."""
    return stream_arn, finished_key(stream_arn), pollers_key(stream_arn)


def own_stream_key(placement: str, tenant_id: str, table: str) -> str:
    """Form the partition key of what is kept of the stream of one tenant's own table under the table's name."""
    return keys.joined("PLACED", keys.tenant(tenant_id), placement, table)


# --- items ---


class ShardItem(Item):
    """A shard that is not finished. `stream` is the stream's ARN, `shard` the shard's id, `owner` its last reader.

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
    """A poller's heartbeat: `counter` grows every few seconds. An id lies in `shard`, the table's sort key."""

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
    """Record that the stream with this ARN was read, for a tenant's own table, in the partition of its watermark.

    So what is kept under the ARN is found when the table is no more.
    """

    table = LEASES

    stream = UnicodeAttribute(hash_key=True)
    shard = UnicodeAttribute(range_key=True)


def _followed(reader: Reader) -> Iterator[StoredItem]:
    """Find shards and heartbeats by the notes of which streams were followed, which come last."""
    places = [Placement("bridge"), *(Placement("silo", site) for site in settings.SILOS)]
    for name in (
        own_stream_key(str(place), reader.tenant_id, table.name)
        for place in places
        for table in registry.placed_tables()
        if table.stream
    ):
        noted = list(reader.query(LEASES, name))
        for stream_arn in (one.item["shard"]["S"] for one in noted):
            for partition in keys_of_stream(stream_arn) if stream_arn != WATERMARK else ():
                yield from reader.query(LEASES, partition)
        yield from noted


# The stream of the pool is nobody's.
declare_holding(
    Holding("followed streams", (LEASES,), _followed, Stage.BESIDE, left_out="elsewhere its tables have other streams")
)


declare_keys(
    LEASES,
    {
        "finished shard": "FINISHED#<stream>, <shard>",
        "poller": "POLLERS#<stream>, <poller>",
        "placed stream": "PLACED#<tenant>#<placement>#<table>, <stream>",
        "watermark": "<stream>, WATERMARK",
        "shard": "<stream>, <shard>",
    },
)
