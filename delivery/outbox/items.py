"""Store what is to be told: the PynamoDB model of Events.Outbox and nothing else."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import ListAttribute, MapAttribute, NumberAttribute, UnicodeAttribute, UnicodeSetAttribute

from delivery.outbox.tables import OUTBOX
from portal.dynamo.client import Item


class OutboxItem(Item):
    """Hold what one transaction tells, and who has not answered yet.

    `tenant_id` is missing in rows that are no tenant's. `tenant` is the JSON of the tenant's id, name and slug;
    `events` a list of JSON texts, see `event_types.encoded`; `subject` what they are about, "ticket/7". `queues` are
    the tenant's queues when it was written.

    `open` holds `<index>/<destination>` for each event of the list and each destination that has not answered. It is
    missing when all have, and then `pending` and `due_at` are missing too. `due_at` is when somebody has to look at
    the row again. A member of `open` is due at `sent_until`, or at its own moment in `attempts`: by member, `n` failed
    attempts, `first_at`, `last_at` and `next_at`, and where a worker may have died of it, how often it was `risked`.

    `private` is for whoever delivers alone, such as a mail with its link, and goes with the last member of `open`.
    """

    table = OUTBOX

    event_id = UnicodeAttribute(hash_key=True)
    timestamp = UnicodeAttribute(range_key=True)
    tenant_id = UnicodeAttribute(null=True)
    tenant = UnicodeAttribute()
    subject = UnicodeAttribute()
    private = UnicodeAttribute(null=True)
    events: ListAttribute[Any] = ListAttribute(default=list)
    queues: ListAttribute[Any] = ListAttribute(default=list)
    open = UnicodeSetAttribute(null=True)
    sent_until = UnicodeAttribute()
    attempts: MapAttribute[str, Any] = MapAttribute(default=dict)  # type: ignore[no-untyped-call]  # unannotated in PynamoDB
    pending = UnicodeAttribute(null=True)
    due_at = UnicodeAttribute(null=True)
    expires_at = NumberAttribute()
