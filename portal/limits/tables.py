"""Declare where processes tell each other what tenants ask of them, and what each tenant asked for."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

SHARES = Table(
    "Limits.Shares",
    "platform",
    "kind",
    "process",
    ttl="expires_at",
    shared="each process says what it needs of all tenants' rates in one row, and all rows are summed up",
)
USAGE = Table("Tenants.Usage", "tenant", "tenant_id", "minute", ttl="expires_at")

declare(
    SHARES,
    USAGE,
    grants=(
        Grant("platform", SHARES, ("PutItem", "Query")),
        Grant("tenant", USAGE, ("Query", "UpdateItem")),
    ),
)
