"""Store how far the demonstration is seeded: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tickets.ticket.stored import TICKETS


class SeedItem(Item):
    """Hold how far the demonstration of a tenant is: the first `written` of `planned` tickets, with times
    relative to `day`.

    Numbers up to `taken` may belong to tickets that people opened before. `complete` is 1 in the first tenant when
    the whole demonstration was finished once.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    day = UnicodeAttribute()
    users = NumberAttribute()
    planned = NumberAttribute()
    written = NumberAttribute(default=0)
    taken = NumberAttribute(default=0)
    complete = NumberAttribute(default=0)
