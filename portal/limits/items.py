"""Store what processes tell each other: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.limits.tables import SHARES


class SharePostItem(Item):
    """One process's latest post. `asked` is JSON: by tenant, the part of its rate that this process is asked for."""

    table = SHARES

    kind = UnicodeAttribute(hash_key=True)
    process = UnicodeAttribute(range_key=True)
    counter = NumberAttribute()
    asked = UnicodeAttribute(default="{}")
    expires_at = NumberAttribute()
