"""Declare how presence is stored: one item for each ticket that somebody looks at, which goes by TTL.

The table is not placed, and nothing depends on it: what is lost is written again within a minute.
"""

from __future__ import annotations

from pynamodb.attributes import MapAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.models import Item
from portal.schema import keys
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import Holding, Stage, declare_holding, own_partition
from portal.schema.registry import Grant, Table, declare

PRESENCE = Table("Support.Presence", "tenant", "tenant_id", "ticket", ttl="expires_at")

declare(PRESENCE, grants=(Grant("tenant", PRESENCE, ("GetItem", "UpdateItem")),))


def ticket(number: int) -> str:
    return keys.whole_number(number, "the number of a ticket", least=1)


class PresenceItem(Item):
    """The people who look at a ticket: by user id the JSON of name, until when they are there, until when they write
    (both in seconds of the epoch), and the stamp of the latest change that their page shows."""

    table = PRESENCE

    tenant_id = UnicodeAttribute(hash_key=True)
    ticket = UnicodeAttribute(range_key=True)
    people: MapAttribute[str, str] = MapAttribute(null=True)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    expires_at = NumberAttribute(null=True)


declare_holding(
    Holding("presence", (PRESENCE,), own_partition(PRESENCE), Stage.OWN, left_out="it is over within minutes")
)


declare_keys(PRESENCE, {"presence": ""})
