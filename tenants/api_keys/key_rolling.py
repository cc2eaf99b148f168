"""Replace a key by a new one of the same name and rights. For a while both work, so that nothing is refused meanwhile.

The new key has the id of the old one: in histories and the audit trail they are the same.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta

from portal import clock
from portal.dynamo.repository import TenantRepository, Transaction
from portal.errors import Conflict, NotFound
from tenants.api_keys import key_changes, key_text, scopes
from tenants.api_keys.items import ApiKeyItem
from tenants.api_keys.key_changes import KeyChoice
from tenants.audit_trail.recording import Actor, AuditAction
from tenants.tenancy.context import TenantContext


def roll(
    tenant: TenantContext, *, prefix: str, version: int, grace: timedelta, expires_at: datetime | None, by: Actor
) -> tuple[ApiKeyItem, str]:
    """Make the key that replaces this one, which works until `grace` is over or its own end comes.

    Returns the new key, which ends at `expires_at` if at all, with its text, which is not shown again. `version` is
    that of the old key on the form: a form that is sent twice rolls once. Raises NotFound; Conflict for a key that has
    ended or been replaced; and Invalid.
    """
    old = key_changes.find(tenant.repository, prefix)
    if old.replaced_by:
        raise Conflict("This key has been rolled already. The new one was shown then; you can roll that.")
    key_changes.refuse_ended(old)
    if old.version != version:
        raise Conflict(key_changes.CHANGED)
    choice = KeyChoice(
        name=old.name,
        scopes=scopes.named(old.scopes),
        expires_at=expires_at,
        addresses=tuple(old.addresses),
        origins=tuple(old.origins),
    )
    key, text = key_changes.new(tenant, choice, prefix=key_text.new_prefix(uuid.uuid4().hex), key_id=old.key_id)
    end = clock.now() + grace
    if old.expires_at:
        end = min(end, clock.parse(old.expires_at))

    def build() -> Transaction:
        others = key_changes.listed(tenant.repository, consistent=True)
        key_changes.refuse_too_many(others)
        _refuse_too_many_at_work([other for other in others if other.api_key_prefix != prefix or end > clock.now()])
        actions = [ApiKeyItem.replaced_by.set(key.api_key_prefix), *key_changes.ending(end)]
        transaction = key_changes.updated(old, actions)
        transaction.put(key, condition=ApiKeyItem.api_key_prefix.does_not_exist())
        return transaction

    row = key_changes.entry(
        old,
        AuditAction.API_KEY_ROLLED,
        by,
        before={"prefix": prefix},
        after={
            "prefix": key.api_key_prefix,
            "expires": key_changes.told(key.expires_at) or "never",
            "old_key_works_until": key_changes.told(clock.stamp(end)),
        },
    )
    key_changes.commit(tenant, build, row)
    return key, text


def with_rolled(repository: TenantRepository, prefix: str) -> tuple[ApiKeyItem, list[ApiKeyItem]]:
    """Return a key, and the keys that it replaced or that replaced it, the latest first, those that ended for KEPT.

    Costs one consistent Query. Raises NotFound.
    """
    stored = key_changes.listed(repository, consistent=True)
    found = next((key for key in stored if key.api_key_prefix == prefix), None)
    if found is None:
        raise NotFound("There is no such API key.")
    return found, [key for key in stored if key.key_id == found.key_id and key is not found]


def _refuse_too_many_at_work(beside: Sequence[ApiKeyItem]) -> None:
    """Raise Conflict where as many keys as a desk can have would work beside the new one."""
    if sum(map(key_changes.works, beside)) >= key_changes.MOST:
        raise Conflict(
            f"A desk can have up to {key_changes.MOST} keys. Revoke one that is not used, or let this one end at once."
        )
