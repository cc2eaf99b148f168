"""Declare the tables of the audit trail."""

from __future__ import annotations

from portal.schema import keys
from portal.schema.registry import Grant, declare
from portal.schema.tables import Index, Table

# The attributes that a page shows. The chain that holds the rows together is read from the table alone.
_AUDIT_ROW = (
    "action",
    "actor_id",
    "actor_email",
    "origin",
    "entity_type",
    "entity_id",
    "entity_name",
    "before",
    "after",
)
AUDIT_ACTOR = Index("gsi-actor", "tenant_actor", "timestamp_event_id", _AUDIT_ROW, keys.OWN_COMPOSITES)
AUDIT_ENTITY = Index("gsi-entity", "tenant_entity", "timestamp_event_id", _AUDIT_ROW, keys.OWN_COMPOSITES)
AUDIT = Table(
    "Audit.AdminActions",
    "tenant",
    "tenant_id",
    "timestamp_event_id",
    indexes=(AUDIT_ACTOR, AUDIT_ENTITY),
    append_only=True,
)
# The end of each partition of a tenant's audit chain.
CHAINS = Table("Audit.Chains", "platform", "tenant_id", "partition")

declare(
    AUDIT,
    CHAINS,
    grants=(
        Grant("tenant", AUDIT, ("GetItem", "Query")),
        # No role may update or delete a row. That none is written over is held by the guard: IAM knows no conditions.
        Grant("platform", AUDIT, ("PutItem",)),
        Grant("platform", CHAINS, ("BatchGetItem", "PutItem", "Query")),
    ),
)
