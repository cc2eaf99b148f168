"""Declare the table of exported files, in parts, and what is granted for them."""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table
from tenants.tenancy.stored import DIRECTORY
from tickets.desk_export.keys import EXPORTS

EXPORT_PARTS = Table("Support.ExportParts", "tenant", "tenant_id", "part", ttl="expires_at", placed=True)

declare(
    EXPORT_PARTS,
    grants=(
        Grant("tenant", EXPORT_PARTS, ("GetItem",)),
        Grant("lifecycle", EXPORT_PARTS, ("PutItem",), "WriteExports"),
        Grant("platform", DIRECTORY, ("GetItem",), "ReadExports", leading_keys=EXPORTS),
    ),
)
