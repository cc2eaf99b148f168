"""Declare the tables of webhooks: endpoints, their secrets, and the log of deliveries, and what they hold of a tenant.

Endpoints and secrets are changed by the platform role, because the tenant's own item, which says who subscribed, is
changed in the same transaction. It writes secrets and cannot read them: that is why they have a table of their own.
Whoever delivers pauses an endpoint that answers nothing, by the same transaction, with a row of the audit trail.
"""

from __future__ import annotations

from collections.abc import Iterator

from delivery.webhooks.keys import deliveries, is_endpoint_id
from delivery.webhooks.signatures import new_secret
from portal.schema import keys
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, TenantArrival, declare_holding
from portal.schema.registry import Grant, declare
from portal.schema.tables import Table
from tenants.audit_trail.tables import AUDIT, CHAINS
from tenants.tenancy.tables import TENANTS

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


def _endpoints(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(ENDPOINTS, reader.tenant_id)


def _secrets(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(SECRETS, reader.tenant_id)


def _fit_endpoint(item: Raw, arrival: TenantArrival) -> Raw:
    """Pause an endpoint that comes without its secret."""
    if arrival.with_secrets:
        return item
    why = {"S": "This desk was imported without secrets. Replace the secret of this endpoint, and resume it."}
    return {**item, "state": {"S": "paused"}, "paused_because": why}


def _fit_secret(item: Raw, arrival: TenantArrival) -> Raw:
    """Give an endpoint that comes without its secret another one, which nobody knows until it is replaced."""
    return item if "current" in item else {**item, "current": {"S": new_secret()}}


def _deliveries(reader: Reader) -> Iterator[StoredItem]:
    known = {row["endpoint_id"]["S"]: None for _, row, _ in _endpoints(reader)}
    for _, row, _ in reader.query(AUDIT, reader.tenant_id):  # an endpoint that was removed has left its log
        if is_endpoint_id(row["entity_id"]["S"]):
            known[row["entity_id"]["S"]] = None
    for endpoint in known:
        yield from reader.query(DELIVERIES, deliveries(reader.tenant_id, endpoint))


declare_holding(
    Holding("endpoints", (ENDPOINTS,), _endpoints, Stage.OWN, fit=_fit_endpoint),
    Holding("webhook secrets", (SECRETS,), _secrets, Stage.OWN, secret=("current", "previous"), fit=_fit_secret),
    Holding("delivery log", (DELIVERIES,), _deliveries, Stage.BESIDE, left_out="it tells of calls of some weeks"),
)
