"""What the kernel itself stores: sessions."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo import tables
from portal.dynamo.client import Item


class SessionItem(Item):
    """A signed-in browser. `expires_at` is seconds since the epoch: DynamoDB's TTL removes the item some time later."""

    table = tables.SESSIONS

    session_key = UnicodeAttribute(hash_key=True)
    data = UnicodeAttribute()
    expires_at = NumberAttribute()
