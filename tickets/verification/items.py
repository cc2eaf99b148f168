"""Store how far a recount has come: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tickets.ticket.stored import TICKETS


class RoundItem(Item):
    """The recount of a tenant that is going on, or was broken off. `round` is its id, "" when it has ended.

    `data` holds, compressed, what had touched the aggregates before it began. It goes by TTL.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    round = UnicodeAttribute(default="")
    data = BinaryAttribute(legacy_encoding=False, default=b"")
    expires_at = NumberAttribute()


class SumItem(Item):
    """The sum of what a group of tickets contributes, compressed in `data`. It goes by TTL."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    data = BinaryAttribute(legacy_encoding=False)
    expires_at = NumberAttribute()
