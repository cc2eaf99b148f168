"""Declare the keys of a tenant's systems."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, TenantArrival, declare_holding
from tenants.api_keys.tables import API_KEYS


def _keys(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(API_KEYS, reader.tenant_id)


def _fit(item: Raw, arrival: TenantArrival) -> Raw | None:
    """Let a key arrive only where it works: its text names the tenant's id, and is compared with its hash."""
    return item if "digest" in item and arrival.same_id else None


declare_holding(Holding("API keys", (API_KEYS,), _keys, Stage.OWN, secret=("digest",), fit=_fit))
