"""API keys for tests: made as an admin makes them, and altered in the store as no admin can."""

from __future__ import annotations

import uuid
from typing import Any

from tenants.api_keys import key_changes
from tenants.api_keys.key_changes import KeyChoice
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import ApiKeyItem
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tests.support.stored import put_all


def make_key(tenant: TenantContext, *scopes: Scope, name: str = "Billing", **choice: Any) -> tuple[ApiKeyItem, str]:
    """Make a key with these scopes, or one that reads tickets, and return it with its text."""
    chosen = KeyChoice(name=name, scopes=frozenset(scopes or {Scope.TICKETS_READ}), **choice)
    by = Actor(tenant.user_id, "alice@example.com", "192.0.2.1")
    return key_changes.create(tenant, choice=chosen, request_id=uuid.uuid4().hex, by=by)


def alter(key: ApiKeyItem, **values: Any) -> None:
    """Store a key with other values than it was made with."""
    for name, value in values.items():
        setattr(key, name, value)
    put_all([key])
