"""Store who has which queues, and how full they are: PynamoDB models and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from delivery.queues.tables import QUEUES
from portal.dynamo.client import Item


class GivenItem(Item):
    """Count the sets that were given to tenants while there were as many queues as `name` says."""

    table = QUEUES

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    given = NumberAttribute()


class QueueSetItem(Item):
    """The set of one tenant, whose id is `name`, beside those of all others. `queues` is JSON, as in the tenant's own
    item, which is what counts; both are written in one transaction."""

    table = QUEUES

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    queues = UnicodeAttribute()


class DepthsItem(Item):
    """Hold the depths of all queues at a moment, as JSON: a list of [waiting, in flight, delayed] by number."""

    table = QUEUES

    kind = UnicodeAttribute(hash_key=True)
    name = UnicodeAttribute(range_key=True)
    at = UnicodeAttribute()
    depths = UnicodeAttribute()
