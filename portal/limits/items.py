"""Store what processes tell each other, and what tenants asked for: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.limits.tables import SHARES, USAGE


class SharePostItem(Item):
    """One process's latest post. `asked` is JSON: by tenant, the part of its rate that this process is asked for."""

    table = SHARES

    kind = UnicodeAttribute(hash_key=True)
    process = UnicodeAttribute(range_key=True)
    counter = NumberAttribute()
    asked = UnicodeAttribute(default="{}")
    expires_at = NumberAttribute()


class UsageItem(Item):
    """Count what one tenant asked for in one minute, such as 2026-01-31T12:00 in UTC. Each process adds its own."""

    table = USAGE

    tenant_id = UnicodeAttribute(hash_key=True)
    minute = UnicodeAttribute(range_key=True)
    requests = NumberAttribute(default=0)
    units = NumberAttribute(default=0)
    refused = NumberAttribute(default=0)
    expires_at = NumberAttribute()
