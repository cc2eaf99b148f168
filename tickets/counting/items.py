"""Store dead letters and the last verification: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tickets.counting.tables import DEAD_LETTERS
from tickets.ticket.stored import TICKETS


class DeadLetterItem(Item):
    """A stream record that could not be counted: `record` is its JSON. `owner` is its tenant's id, or
    `keys.NO_TENANT`; `sequence` is a digest of its shard and its sequence number. `placement` says in which of the
    tenant's aggregates it is missing, missing for those in the table of all.

    In the partition `keys.DEAD_LETTER_TENANTS`, where `sequence` is an owner: there were dead letters of that one.
    """

    table = DEAD_LETTERS

    owner = UnicodeAttribute(hash_key=True)
    sequence = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute(default="")
    reason = UnicodeAttribute()
    record = UnicodeAttribute()
    at = UnicodeAttribute()
    placement = UnicodeAttribute(null=True)


class MarkerItem(Item):
    """A marker that a barrier sends through the stream. It goes by TTL."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    expires_at = NumberAttribute()


class VerifyLeaseItem(Item):
    """The lease of whoever verifies or repairs the tenant's aggregates.

    `holder` is "" for nobody, `by` a person's name.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    holder = UnicodeAttribute(default="")
    by = UnicodeAttribute(default="")
    renewed_at = UnicodeAttribute(default="")


class VerifiedItem(Item):
    """The last verification of a tenant's aggregates that a person asked for, beside the aggregates themselves.

    `state` is running, ok, drift or unknown. `reached` is the ticket number that a run has come to which goes on or was
    broken off. `run` tells a verification from one that took its place. `found` is the JSON of the first differences,
    each [item, count, stored, recounted], and `more` says how many there were beyond.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    run = UnicodeAttribute(default="")
    state = UnicodeAttribute()
    started_at = UnicodeAttribute()
    finished_at = UnicodeAttribute(default="")
    by_name = UnicodeAttribute(default="")
    tickets = NumberAttribute(default=0)
    reached = NumberAttribute(default=0)
    why = UnicodeAttribute(default="")
    found = UnicodeAttribute(default="[]")
    more = NumberAttribute(default=0)
