"""Declare the record of how far the demonstration of a tenant is seeded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tickets.data.stored import import_source
from tickets.ticket.stored import TICKETS


class SeedItem(Item):
    """Hold the progress of a tenant's sample data: the first `written` of `planned` tickets, with times
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


SOURCE: Final = "demonstration"  # among the archives; it is none, and no list of them has it


def _record(reader: Reader) -> Iterator[StoredItem]:
    return reader.get(TICKETS, (import_source(reader.tenant_id, SOURCE), SOURCE))


declare_holding(
    Holding("demonstration", (TICKETS,), _record, Stage.BESIDE, left_out="it is about a demonstration of this place")
)
