"""Declare what a verification keeps while it recounts: how far it is, and the sums of groups of tickets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding, declare_people
from tickets.ticket.stored import TICKETS

ROUND: Final = "ROUND"


def recounting(tenant_id: str) -> str:
    """Return the partition key of what a tenant's verification keeps, beside neither tickets nor aggregates."""
    return keys.collection(tenant_id, "RECOUNT")


def sums(round_id: str) -> str:
    """Return the beginning of the sort keys of a round's sums, in the order of the tickets' numbers."""
    return keys.beginning("SUM", round_id)


def sum_behind(round_id: str, number: int) -> str:
    """Return the sort key of the sum over the group of tickets that ends with this number."""
    return keys.joined("SUM", round_id, f"{number:015}")


def end_of(sort_key: str) -> int:
    """Return the number in what `sum_behind` made."""
    return int(keys.split(sort_key)[2])


class RoundItem(Item):
    """A running or interrupted recount of a tenant. `round` is its id, "" when it has ended.

    `data` holds, compressed, what had touched the aggregates before it began. It goes by TTL.
    """

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    round = UnicodeAttribute(default="")
    data = BinaryAttribute(legacy_encoding=False, default=b"")
    expires_at = NumberAttribute()


class SumItem(Item):
    """The summed contributions of a group of tickets, compressed in `data`. It goes by TTL."""

    table = TICKETS

    pk = UnicodeAttribute(hash_key=True)
    sk = UnicodeAttribute(range_key=True)
    data = BinaryAttribute(legacy_encoding=False)
    expires_at = NumberAttribute()


def _recounts(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, recounting(reader.tenant_id))


declare_holding(Holding("recounts", (TICKETS,), _recounts, Stage.BESIDE, left_out="a recount is made anew"))
declare_people("aggregates", "tickets.verification.verify")


declare_keys(TICKETS, {"recount": "TENANT#<tenant>|RECOUNT, <part>"})
