"""Store what processes noted: a PynamoDB model and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.noise.tables import NOISE


class NoiseItem(Item):
    """Hold what one process did in a minute. `process` begins with its kind. `tallies` is JSON: by tenant, the numbers
    of its tally; "others" and "nobody" are sums."""

    table = NOISE

    minute = UnicodeAttribute(hash_key=True)
    process = UnicodeAttribute(range_key=True)
    tallies = UnicodeAttribute()
    expires_at = NumberAttribute()
