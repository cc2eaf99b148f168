"""Store sessions: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.nosql.tables import SESSIONS


class SessionItem(Item):
    """A signed-in browser. `expires_at` is seconds since the epoch: DynamoDB's TTL removes the item some time later.

    `session_key` is `keys.session` of the key in the cookie. Who has signed in, when, from where and into which tenant
    is repeated beside `data` for the index by user; `user_id` and `started_at` are missing before.
    """

    table = SESSIONS

    session_key = UnicodeAttribute(hash_key=True)
    data = UnicodeAttribute()
    expires_at = NumberAttribute()
    user_id = UnicodeAttribute(null=True)
    started_at = UnicodeAttribute(null=True)
    tenant_id = UnicodeAttribute(null=True)
    address = UnicodeAttribute(null=True)
    agent = UnicodeAttribute(null=True)
