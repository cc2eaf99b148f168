"""Declare the keys of a tenant's systems."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema import row_forms
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, TenantArrival, declare_holding
from portal.schema.row_forms import RowForm
from tenants.api_keys.items import ApiKeyItem
from tenants.api_keys.key_text import is_prefix
from tenants.api_keys.tables import API_KEYS


def _keys(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(API_KEYS, reader.tenant_id)


def _fit(item: Raw, arrival: TenantArrival) -> Raw | None:
    """Let a key arrive only where it works: its text names the tenant's id, and is compared with its hash."""
    return item if "digest" in item and arrival.same_id else None


def _forms() -> tuple[RowForm, ...]:
    checks = {
        "api_key_prefix": is_prefix,
        **dict.fromkeys(("scopes", "addresses", "origins"), row_forms.texts),
        **row_forms.moments("created_at"),
        **row_forms.moments_if_any("expires_at", "revoked_at", "last_used_at"),
    }
    return (RowForm(ApiKeyItem, lambda own, item: (own, item["api_key_prefix"]["S"]), checks=checks),)


declare_holding(
    Holding("API keys", (API_KEYS,), _keys, Stage.OWN, secret=("digest",), fit=_fit, forms=_forms),
)
