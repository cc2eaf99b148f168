"""Declare what all jobs store, and how the jobs of a tenant are found."""

from __future__ import annotations

from collections.abc import Iterator

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem
from tenants.tenancy.stored import DIRECTORY


def past(kind: str, tenant: str) -> str:
    """Return the platform's partition of a tenant's jobs of a kind that others have followed, by when they began."""
    return keys.joined(kind, keys.tenant(tenant))


def jobs(name: str, partition: str, stage: Stage, *, history: str = "", left_out: str) -> Holding:
    """Return the holding of a tenant's last job of a kind, and of those that are kept in its history."""

    def find(reader: Reader) -> Iterator[StoredItem]:
        yield from reader.query(DIRECTORY, partition, begins_with=reader.tenant_id)
        if history:
            yield from reader.query(DIRECTORY, past(history, reader.tenant_id))

    return Holding(name, (DIRECTORY,), find, stage, left_out=left_out)


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
