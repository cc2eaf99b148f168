"""Store the API keys of a tenant's systems."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import ListAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from portal.schema import row_forms
from portal.schema.access_patterns import declare_keys
from portal.schema.holdings import (
    Holding,
    Raw,
    Stage,
    TenantArrival,
    declare_holding,
    declare_people,
    own_partition,
)
from portal.schema.registry import Grant, Table, declare
from portal.schema.row_forms import RowForm
from tenants.api_keys.key_text import is_prefix

API_KEYS = Table("Tenants.ApiKeys", "tenant", "tenant_id", "api_key_prefix", ttl="kept_until")

declare(
    API_KEYS,
    grants=(
        Grant("tenant", API_KEYS, ("GetItem", "Query")),
        Grant("platform", API_KEYS, ("BatchGetItem", "ConditionCheckItem", "PutItem", "UpdateItem")),
    ),
)


class ApiKeyItem(Item):
    """A key by which a system of the tenant calls the API. Moments are stamps, missing where there is none.

    `key_id` says whose deeds they are, and is the same for the key that replaces this one. `digest` is the SHA-256 of
    the whole text, in hex. `addresses` has the networks that it may be used from and `origins` the pages whose scripts
    may use it; both are empty for no such rule. `replaced_by` is the prefix of the key that replaces it. `version`
    grows with each change by a person; `kept_until`, in seconds since 1970, is when an ended key is forgotten.
    """

    table = API_KEYS

    tenant_id = UnicodeAttribute(hash_key=True)
    api_key_prefix = UnicodeAttribute(range_key=True)
    key_id = UnicodeAttribute()
    digest = UnicodeAttribute()
    name = UnicodeAttribute()
    scopes: ListAttribute[Any] = ListAttribute(default=list)
    addresses: ListAttribute[Any] = ListAttribute(default=list)
    origins: ListAttribute[Any] = ListAttribute(default=list)
    created_at = UnicodeAttribute()
    created_by = UnicodeAttribute(default="")
    expires_at = UnicodeAttribute(null=True)
    revoked_at = UnicodeAttribute(null=True)
    replaced_by = UnicodeAttribute(null=True)
    last_used_at = UnicodeAttribute(null=True)
    last_used_from = UnicodeAttribute(null=True)
    version = NumberAttribute(default=1)
    kept_until = NumberAttribute(null=True)


_keys = own_partition(API_KEYS)


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
declare_people("API keys", "tenants.api_keys.key_changes")


declare_keys(API_KEYS, {"API key": ""})
