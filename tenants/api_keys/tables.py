"""Declare the table of API keys.

A key is read before it is known who calls, so the platform role reads it, together with its tenant. It also writes it,
beside the audit trail. The tenant role shows keys and changes none.
"""

from __future__ import annotations

from portal.schema.registry import Grant, declare
from portal.schema.tables import Table

API_KEYS = Table("Tenants.ApiKeys", "tenant", "tenant_id", "api_key_prefix", ttl="kept_until")

declare(
    API_KEYS,
    grants=(
        Grant("tenant", API_KEYS, ("GetItem", "Query")),
        Grant("platform", API_KEYS, ("BatchGetItem", "ConditionCheckItem", "PutItem", "UpdateItem")),
    ),
)
