"""Store endpoints, their secrets and the log of deliveries: PynamoDB models and nothing else."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import ListAttribute, NumberAttribute, UnicodeAttribute

from delivery.webhooks.tables import DELIVERIES, ENDPOINTS, SECRETS
from portal.dynamo.client import Item


class EndpointItem(Item):
    """An address to which a tenant wants its events sent.

    `state` is "active" or "paused", `paused_because` a sentence that says why, missing or "" where an admin did it.
    `failing_since` is when the first of its deliveries failed after the last one that was answered. `version` grows
    with each change.
    """

    table = ENDPOINTS

    tenant_id = UnicodeAttribute(hash_key=True)
    endpoint_id = UnicodeAttribute(range_key=True)
    url = UnicodeAttribute()
    description = UnicodeAttribute(default="")
    event_types: ListAttribute[Any] = ListAttribute(default=list)
    state = UnicodeAttribute(default="active")
    paused_because = UnicodeAttribute(null=True)
    failing_since = UnicodeAttribute(null=True)
    version = NumberAttribute(default=1)
    created_at = UnicodeAttribute()
    rotated_at = UnicodeAttribute()


class SecretItem(Item):
    """The secrets that an endpoint's deliveries are signed with. `previous` signs beside it until `previous_until`.

    `earlier` has those before it that still sign, the latest first, each as `<until> <secret>`.
    """

    table = SECRETS

    tenant_id = UnicodeAttribute(hash_key=True)
    endpoint_id = UnicodeAttribute(range_key=True)
    current = UnicodeAttribute()
    previous = UnicodeAttribute(null=True)
    previous_until = UnicodeAttribute(null=True)
    earlier: ListAttribute[Any] = ListAttribute(default=list)


class DeliveryItem(Item):
    """One event and what came of sending it to one endpoint.

    `state` is "answered", "failed" (and is tried again at `next_at`), "dead" or "skipped" (the endpoint was paused).
    `attempts` holds, for each, `at`, `status` (0 without an answer), `ms` and `note`; `status`, `ms`, `note` and
    `excerpt`, the beginning of the answer, are those of the last. The request's body is in the outbox: in that of all,
    or in the tenant's own at the `placement`.
    """

    table = DELIVERIES

    tenant_endpoint = UnicodeAttribute(hash_key=True)
    timestamp_event_id = UnicodeAttribute(range_key=True)
    event_type = UnicodeAttribute()
    subject = UnicodeAttribute(default="")
    url = UnicodeAttribute()
    state = UnicodeAttribute()
    status = NumberAttribute(default=0)
    ms = NumberAttribute(default=0)
    note = UnicodeAttribute(default="")
    excerpt = UnicodeAttribute(default="")
    attempts: ListAttribute[Any] = ListAttribute(default=list)
    next_at = UnicodeAttribute(null=True)
    placement = UnicodeAttribute(null=True)
    expires_at = NumberAttribute()
