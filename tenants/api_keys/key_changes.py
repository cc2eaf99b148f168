"""Make, change, roll and revoke API keys. Admins of a tenant do this.

Each change is one transaction with its row of the audit trail, which depends on the admin still being one. Only the
digest of a key is stored: the text is returned once, when it is made.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from portal import clock, plain_text
from portal.dynamo.repository import TenantRepository, Transaction
from portal.errors import Conflict, Invalid, NotFound, TransactionRefused
from portal.schema import keys
from tenants.api_keys import key_places, key_text
from tenants.api_keys.items import ApiKeyItem
from tenants.api_keys.scopes import Scope
from tenants.api_keys.tables import API_KEYS
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.tenancy.context import TenantContext

MOST: Final = 50  # keys of one tenant that work; simultaneous forms may make some more
NAME_LIMIT: Final = 60  # characters
PLACES_LIMIT: Final = 20  # networks, and origins, of one key
KEPT: Final = timedelta(days=30)  # after its end
CHANGED: Final = "Somebody else has just changed this key. Please check and try again."
_KEY: Final = "key"  # a member of a transaction


@dataclass(frozen=True)
class KeyChoice:
    """Hold what an admin chooses for a key. Raises Invalid, with the field, for what cannot be.

    `expires_at` is None for a key that works until it is revoked.
    """

    name: str
    scopes: frozenset[Scope]
    expires_at: datetime | None = None
    addresses: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= NAME_LIMIT:
            raise Invalid(f"Use 1-{NAME_LIMIT} characters for the name.", field="name")
        if not plain_text.is_visible_name(self.name):
            raise Invalid("Use characters that can be seen.", field="name")
        if not self.scopes:
            raise Invalid("Choose at least one scope.", field="scopes")
        if self.expires_at is not None and self.expires_at <= clock.now():
            raise Invalid("Choose a day that is not over.", field="expires_on")
        for field, places, read in (
            ("addresses", self.addresses, key_places.network),
            ("origins", self.origins, key_places.origin),
        ):
            if len(places) > PLACES_LIMIT:
                raise Invalid(f"A key can have up to {PLACES_LIMIT} of them.", field=field)
            # As they are stored, each once.
            object.__setattr__(self, field, tuple(dict.fromkeys(map(read, places))))


def listed(repository: TenantRepository, *, consistent: bool = False) -> list[ApiKeyItem]:
    """Return a tenant's keys, the latest first, ended ones for KEPT: one Query up to 1 MB, which is some 1,500."""
    stored = repository.query_all(API_KEYS, keys.tenant, consistent=consistent)
    found = map(ApiKeyItem.from_raw_data, stored)
    return sorted(found, key=lambda key: (key.created_at, key.api_key_prefix), reverse=True)


def find(repository: TenantRepository, prefix: str) -> ApiKeyItem:
    """Return one key: one consistent GetItem. Raises NotFound."""
    found = None
    if key_text.is_prefix(prefix):
        found = repository.get(ApiKeyItem, keys.tenant, sort=prefix, consistent=True)
    if found is None:
        raise NotFound("There is no such API key.")
    return found


def works(key: ApiKeyItem) -> bool:
    """Tell whether a key is neither revoked nor expired."""
    return not key.revoked_at and (not key.expires_at or key.expires_at > clock.stamp())


def create(tenant: TenantContext, *, choice: KeyChoice, request_id: str, by: Actor) -> tuple[ApiKeyItem, str]:
    """Make a key and return it with its text, which is not shown again.

    Raises Conflict where there are MOST already, where a working key has the name, and for a form that has made its
    key before.
    """
    key = _new(tenant, choice, prefix=key_text.new_prefix(request_id), key_id=uuid.uuid4().hex)
    text = _seal(key)

    def build() -> Transaction:
        others = listed(tenant.repository, consistent=True)
        if any(other.api_key_prefix == key.api_key_prefix for other in others):
            raise Conflict("This key has been made already. It was shown then; you can roll it.")
        if sum(map(works, others)) >= MOST:
            raise Conflict(f"A desk can have up to {MOST} keys. Revoke one that is not used.")
        _refuse_taken_name(others, key)
        transaction = Transaction()
        transaction.put(key, condition=ApiKeyItem.api_key_prefix.does_not_exist(), name=_KEY)
        return transaction

    _commit(tenant, build, _entry(key, AuditAction.API_KEY_CREATED, by, after=_shown(key)))
    return key, text


def _new(tenant: TenantContext, choice: KeyChoice, *, prefix: str, key_id: str) -> ApiKeyItem:
    key = ApiKeyItem(
        tenant.tenant_id,
        prefix,
        key_id=key_id,
        created_at=clock.stamp(),
        created_by=tenant.user_name,
    )
    _apply(key, choice)
    return key


def _seal(key: ApiKeyItem) -> str:
    """Give a key its text, and return that."""
    text = key_text.new(key.tenant_id, key.api_key_prefix)
    key.digest = key_text.digest(text)
    return text


def _apply(key: ApiKeyItem, choice: KeyChoice) -> None:
    key.name, key.scopes = choice.name, sorted(scope.value for scope in choice.scopes)
    key.addresses, key.origins = [*choice.addresses], [*choice.origins]
    _end(key, choice.expires_at)


def _end(key: ApiKeyItem, at: datetime | None) -> None:
    key.expires_at = clock.stamp(at) if at else None
    key.kept_until = int((at + KEPT).timestamp()) if at else None


def _refuse_taken_name(others: Sequence[ApiKeyItem], key: ApiKeyItem) -> None:
    """Raise Conflict where another working key has this name: histories could not tell the two apart."""
    if any(o.key_id != key.key_id and o.name.casefold() == key.name.casefold() for o in others if works(o)):
        raise Conflict("Another key has this name. Choose one that says what this key is for.", field="name")


def _commit(tenant: TenantContext, build: Callable[[], Transaction], entry: AuditEntry) -> None:
    def whole() -> Transaction:
        transaction = build()
        if tenant.user_id:  # a command is nobody's
            member_changes.require_role(transaction, tenant)
        return transaction

    try:
        recording.commit_built(whole, [entry])
    except TransactionRefused as refused:
        raise Conflict(CHANGED) from refused


def _entry(key: ApiKeyItem, action: AuditAction, by: Actor, **values: Any) -> AuditEntry:
    return AuditEntry(key.tenant_id, action, by, "api_key", key.key_id, key.name, **values)


def _shown(key: ApiKeyItem) -> dict[str, str]:
    """Return what the audit trail says of a key; nothing of it helps to use the key."""
    return {
        "prefix": key.api_key_prefix,
        "name": key.name,
        "scopes": ", ".join(key.scopes),
        "expires": key.expires_at or "",
        "addresses": ", ".join(key.addresses),
        "origins": ", ".join(key.origins),
    }
