"""Store deliveries that are dead: the PynamoDB model of Events.DeadLetters and nothing else."""

from __future__ import annotations

from pynamodb.attributes import NumberAttribute, UnicodeAttribute

from delivery.consuming.tables import DEAD_DELIVERIES
from portal.dynamo.client import Item


class DeadDeliveryItem(Item):
    """A delivery that nobody tries any more. What was to be delivered stays in the outbox, in the row `event_id` and
    `timestamp`, and goes by TTL at the same moment as that row.

    `index` is the event's place in the row, `reason` a sentence, `at` when it was given up. `listed` is the
    partition of the index. `placement` says in whose outbox the row is, missing for that of all; the index lacks it.
    """

    table = DEAD_DELIVERIES

    tenant_id = UnicodeAttribute(hash_key=True)
    letter_id = UnicodeAttribute(range_key=True)
    event_id = UnicodeAttribute()
    timestamp = UnicodeAttribute()
    index = NumberAttribute()
    destination = UnicodeAttribute()
    event_type = UnicodeAttribute()
    subject = UnicodeAttribute()
    reason = UnicodeAttribute()
    at = UnicodeAttribute()
    listed = UnicodeAttribute()
    placement = UnicodeAttribute(null=True)
    expires_at = NumberAttribute()
