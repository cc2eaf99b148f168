"""Declare the keys of a tenant's systems."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tenants.api_keys.tables import API_KEYS


def _keys(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(API_KEYS, reader.tenant_id)


declare_holding(Holding("API keys", (API_KEYS,), _keys, Stage.OWN, secret=("digest",)))
