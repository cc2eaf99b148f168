"""Declare where processes tell each other what tenants ask of them."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

SHARES = Table("Limits.Shares", "platform", "kind", "process", ttl="expires_at")

declare(SHARES, grants=(Grant("platform", SHARES, ("PutItem", "Query")),))
