"""Say what templates show of API keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from portal import clock
from tenants.api_keys import key_changes, key_text, key_uses, scopes
from tenants.api_keys.items import ApiKeyItem
from tenants.api_keys.scopes import Scope

SOON: Final = timedelta(days=7)


def api_key(key: ApiKeyItem) -> dict[str, Any]:
    """Return a key as the list and its own page show it. Nothing of it helps to use the key."""
    ends = clock.parse(key.expires_at) if key.expires_at else None
    return {
        "prefix": key.api_key_prefix,
        "shown": key_text.shown(key.api_key_prefix),
        "id": key.key_id,
        "name": key.name,
        "scopes": [scope for scope in Scope if scope in scopes.named(key.scopes)],
        "addresses": list(key.addresses),
        "origins": list(key.origins),
        "badge": _badge(key),
        "works": key_changes.works(key),
        "can_change": key_changes.works(key) and not key.replaced_by,
        "replaced_by": key.replaced_by or "",
        "created_at": clock.parse(key.created_at),
        "created_by": key.created_by,
        "ends_at": ends,
        "revoked_at": clock.parse(key.revoked_at) if key.revoked_at else None,
        "last_used_at": clock.parse(key.last_used_at) if key.last_used_at else None,
        "last_used_from": key.last_used_from or "",
        # A use is noted once in so many minutes, so that the last one may be later than what is noted.
        "noted_minutes": key_uses.EVERY // timedelta(minutes=1),
        "used_of_late": key_uses.is_of_late(key),
        "version": int(key.version),
    }


def _badge(key: ApiKeyItem) -> dict[str, str]:
    """Return a key's state as a word, with the kind of badge and the icon that go with it."""
    if key.revoked_at:
        return {"word": "Revoked", "kind": "closed", "icon": "close"}
    if not key_changes.works(key):
        return {"word": "Replaced" if key.replaced_by else "Expired", "kind": "closed", "icon": "close"}
    if key.replaced_by:
        return {"word": "Being replaced", "kind": "pending", "icon": "warning"}
    if key.expires_at and key.expires_at < clock.stamp(clock.now() + SOON):
        return {"word": "Ends soon", "kind": "pending", "icon": "warning"}
    return {"word": "Active", "kind": "resolved", "icon": "check"}
