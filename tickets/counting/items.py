"""Store dead letters and the last verification: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tickets.counting.tables import DEAD_LETTERS
from tickets.ticket.tables import TICKETS


class DeadLetterItem(Item):
    """A stream record that could not be counted: `record` is its JSON, `aggregate` the only item that did not take
    it, "" for all of them. `sequence` begins with the padded sequence number. Removed by TTL after 30 days.

    In a partition of its own (`keys.settled_letters`), with `at` and `expires_at` alone: one that was settled."""

    table = DEAD_LETTERS

    stream = UnicodeAttribute(hash_key=True)
    sequence = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute(default="")
    aggregate = UnicodeAttribute(default="")
    reason = UnicodeAttribute()
    record = UnicodeAttribute()
    at = UnicodeAttribute()
    expires_at = NumberAttribute()


class VerifiedItem(Item):
    """The last verification of a tenant's aggregates that a person asked for, beside the aggregates themselves.

    `state` is running, ok, drift or unknown. `run` tells a verification from one that took its place. `found` is the
    JSON of the first differences, each [item, count, stored, recounted], and `more` says how many there were beyond.
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
    why = UnicodeAttribute(default="")
    found = UnicodeAttribute(default="[]")
    more = NumberAttribute(default=0)
