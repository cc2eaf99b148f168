"""Store API keys: PynamoDB models and nothing else."""

from __future__ import annotations

from typing import Any

from pynamodb.attributes import ListAttribute, NumberAttribute, UnicodeAttribute

from portal.dynamo.client import Item
from tenants.api_keys.tables import API_KEYS


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
