"""Declare the tables of webhooks: endpoints, their secrets, and the log of deliveries.

Endpoints and secrets are changed by the platform role, because the tenant's own item, which says who subscribed, is
changed in the same transaction. It writes secrets and cannot read them: that is why they have a table of their own.
Whoever delivers pauses an endpoint that answers nothing, by the same transaction, with a row of the audit trail.
"""

from __future__ import annotations

from portal.schema import keys
from portal.schema.registry import Grant, declare
from portal.schema.tables import Table
from tenants.audit_trail.stored import AUDIT, CHAINS
from tenants.tenancy.stored import TENANTS

ENDPOINTS = Table("Events.Endpoints", "tenant", "tenant_id", "endpoint_id")
SECRETS = Table("Events.Secrets", "tenant", "tenant_id", "endpoint_id")
DELIVERIES = Table(
    "Events.Deliveries",
    "tenant",
    "tenant_endpoint",
    "timestamp_event_id",
    ttl="expires_at",
    leading_keys=keys.OWN_COMPOSITES,
)
declare(
    ENDPOINTS,
    SECRETS,
    DELIVERIES,
    grants=(
        # UpdateItem notes whether its deliveries fail.
        Grant("tenant", ENDPOINTS, ("GetItem", "Query", "UpdateItem")),
        Grant("tenant", SECRETS, ("GetItem",)),
        Grant("tenant", DELIVERIES, ("GetItem", "Query", "UpdateItem")),
        Grant("platform", ENDPOINTS, ("DeleteItem", "PutItem", "UpdateItem")),
        Grant("platform", SECRETS, ("DeleteItem", "PutItem")),
        Grant("delivery", ENDPOINTS, ("UpdateItem",), "PauseEndpoints"),
        Grant("delivery", TENANTS, ("BatchGetItem", "UpdateItem"), "EndSubscriptions"),
        Grant("delivery", AUDIT, ("PutItem",), "TellOfPauses"),
        Grant("delivery", CHAINS, ("BatchGetItem", "PutItem"), "MoveTheEndsOfChains"),
    ),
)
