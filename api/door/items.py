"""Store the answers of the API: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import BinaryAttribute, NumberAttribute, UnicodeAttribute

from api.door.tables import ANSWERS
from portal.dynamo.client import Item


class AnswerItem(Item):
    """The answer to a request with an idempotency key, or that one is at work on it. Removed by TTL after a day.

    `digest` is that of the request's body. `claim` is whose turn it is, a new one each time, and `claimed_until` the
    second since 1970 until which nobody else takes it. Then the answer: `status`, `headers` as JSON, and the `body`,
    compressed.
    """

    table = ANSWERS

    pk = UnicodeAttribute(hash_key=True)
    tenant_id = UnicodeAttribute(null=True)
    digest = UnicodeAttribute()
    claim = UnicodeAttribute()
    claimed_until = NumberAttribute()
    status = NumberAttribute(null=True)
    headers = UnicodeAttribute(null=True)
    body = BinaryAttribute(legacy_encoding=False, null=True)
    expires_at = NumberAttribute()
