"""What the followers of a stream store beside it: leases of its shards, and one pulse."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.streams.tables import LEASES


class LeaseItem(Item):
    """Who reads a shard, and how far. `stream` is the stream's ARN, `shard` the shard's id.

    `counter` grows with every write of the owner's: whoever sees it stand still for the lease time may take the shard.
    `owner` is "" for a shard that nobody holds. `checkpoint` is the
    last sequence number that was dealt with, "" for none. `caught_up_at` is the moment up to which all changes in the
    shard have been counted. `gap_at` is when records were found to be lost. `finished` is 1 when a closed shard was
    read to its end; then `expires_at` is set, in seconds since the epoch, and the item goes by TTL.
    """

    table = LEASES

    stream = UnicodeAttribute(hash_key=True)
    shard = UnicodeAttribute(range_key=True)
    parent = UnicodeAttribute(default="")
    owner = UnicodeAttribute(default="")
    counter = NumberAttribute(default=0)
    checkpoint = UnicodeAttribute(default="")
    caught_up_at = UnicodeAttribute(default="")
    gap_at = UnicodeAttribute(default="")
    finished = NumberAttribute(default=0)
    expires_at = NumberAttribute(null=True)


class PulseItem(Item):
    """Up to which moment everything in a stream has been counted, and when that was written.

    It lies beside the leases, under the table's name in place of the stream's ARN: a page, which may not describe
    tables, knows the one and not the other.
    """

    table = LEASES

    stream = UnicodeAttribute(hash_key=True)
    shard = UnicodeAttribute(range_key=True)
    as_of = UnicodeAttribute()
    written_at = UnicodeAttribute()
