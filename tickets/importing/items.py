"""Store what an import remembers: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tickets.ticket.stored import TICKETS


class ImportItem(Item):
    """A row of an archive that has become a ticket, or is becoming one while `done` is 0."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    number = NumberAttribute()
    digest = UnicodeAttribute()
    comments = NumberAttribute(default=0)
    done = NumberAttribute(default=0)


class ImportSourceItem(Item):
    """An archive from which something was imported, by its name: the key of its rows is made of that."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    source = UnicodeAttribute()
