"""Form the keys of tenants."""

from __future__ import annotations

from portal.schema import keys


def slug(value: str) -> str:
    """Partition key of the item that makes a tenant's slug unique, beside the accounts."""
    return keys.labelled("SLUG", keys.part(value, "a slug"))
