"""Form the keys of tenants."""

from __future__ import annotations

from portal.dynamo.placement import Placement
from portal.schema import keys


def slug(value: str) -> str:
    """Return the partition key of the item that makes a tenant's slug unique, beside the accounts."""
    return keys.labelled("SLUG", keys.part(value, "a slug"))


def placed(tenant_id: str, placement: str) -> str:
    """Return the sort key of a tenant's own tables among those that are followed: `<tenant id>/<placement>`."""
    return f"{keys.tenant(tenant_id)}/{Placement.parse(keys.part(placement, 'a placement'))}"
