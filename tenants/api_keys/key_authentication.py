"""Authenticate a caller by an API key, and note that the key was used.

A key whose text cannot be one is refused without a read. The tenant comes from the key alone: its id in the text says
which partition to read, and the digest in the item that is found there is the proof. Key and tenant come by one
BatchGetItem, consistently, so that a key that was revoked a moment ago is refused.
"""

from __future__ import annotations

import hmac
import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from django.conf import settings

from portal import clock
from portal.dynamo import retry
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import Overtaken, PortalError, TransactionRefused
from portal.schema import keys
from tenants.api_keys import key_restrictions, key_text, scopes
from tenants.api_keys.key_text import KeyAddress
from tenants.api_keys.scopes import Scope
from tenants.api_keys.stored import ApiKeyItem
from tenants.audit_trail.recording import Actor
from tenants.tenancy import context
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import TenantItem

log = logging.getLogger("pooldesk.api_keys")

NOTED_EVERY: Final = timedelta(minutes=5)


def is_of_late(key: ApiKeyItem) -> bool:
    """Tell whether a use of the key is noted that is no older than NOTED_EVERY: any use since then is not noted."""
    return bool(key.last_used_at and key.last_used_at >= _before())


def _before() -> str:
    return clock.stamp(clock.now() - NOTED_EVERY)


_REFUSALS: Final = {
    "key_missing": (401, "Send an API key in the header Authorization: Bearer sk_…"),
    "key_malformed": (401, "This is no API key, or it was copied incompletely."),
    "key_unknown": (401, "There is no such API key."),
    "key_revoked": (401, "This API key was revoked."),
    "key_expired": (401, "This API key has expired."),
    "address_not_allowed": (403, "This API key must not be used from this network address."),
    "tenant_suspended": (403, "This desk is suspended, or being deleted."),
    "tenant_closing": (403, "This desk is being closed, and can only be read."),
    "scope_missing": (403, "This API key does not have the scope that this needs."),
}


class KeyRefused(PortalError):
    """A key that does not let in, or not to this. `code` is stable and says why; `scope` is the one that is missing.

    It is about the key, not about what was asked, which another key may be let in to do.
    """

    passes = True

    def __init__(self, code: str, *, scope: str = "", address: str = "") -> None:
        self.status, message = _REFUSALS[code]
        if scope:
            message = f"This needs the scope {scope}, which this API key does not have."
        if address:  # who holds the key may learn what a proxy made of it
            message += f" The request came from {address}."
        super().__init__(message)
        self.code, self.scope = code, scope


@dataclass(frozen=True)
class ApiCaller:
    """Hold who calls by a key. `origins` are those of pages whose scripts may use it, () for none.

    `tenant` is the context to read in and to show things by: it sees internal notes only where the key may. Its user is
    the key itself, which is never a member. To do something, take the context of `tenant_for`.
    """

    tenant: TenantContext
    prefix: str
    scopes: frozenset[Scope]
    origins: tuple[str, ...]
    address: str
    is_noted: bool = True  # that the key was used of late

    @property
    def actor(self) -> Actor:
        """Return who acts, for the audit trail: the key by its name, from where it is used."""
        return Actor(self.tenant.user_id, self.tenant.user_name, self.address)

    def tenant_for(self, scope: Scope) -> TenantContext:
        """Return the context that the rules behind a scope accept. Raises KeyRefused where the key does not have it.

        Its role may be above the one of `tenant`: do not show anything by it.
        """
        if scope not in self.scopes:
            raise KeyRefused("scope_missing", scope=scope.value)
        return self.tenant if self.tenant.role.at_least(scope.role) else replace(self.tenant, role=scope.role)


def address_in(text: str) -> KeyAddress:
    """Return where the item of a key is, by its text alone: no read. Raises KeyRefused for what cannot be one of ours.

    That the caller has the key is not proved. A limiter may go by the tenant in it where the key has let in before.
    """
    if not text:
        raise KeyRefused("key_missing")
    address = key_text.read(text)
    if address is None:
        raise KeyRefused("key_malformed")
    if address.environment != settings.API_KEY_ENVIRONMENT:
        raise KeyRefused("key_unknown")
    return address


def authenticate(text: str, *, address: str) -> ApiCaller:
    """Return who calls by this key from this network address. Raises KeyRefused.

    Costs no round trip where the text cannot be a key, and one else.
    """
    named = address_in(text)
    key, tenant = PLATFORM.get_all(
        [(ApiKeyItem, named.tenant_id, named.prefix), (TenantItem, keys.tenant(named.tenant_id), None)],
        consistent=True,
    )
    # Nobody learns anything of a key by its prefix, which is no secret.
    if not hmac.compare_digest(key_text.digest(text), key.digest if key else "") or tenant is None:
        raise KeyRefused("key_unknown")
    _refuse_ended(key)
    if not key_restrictions.includes(key.addresses, address):
        raise KeyRefused("address_not_allowed", address=address)
    granted = scopes.named(key.scopes)
    at_work = context.of_tenant(
        tenant,
        role=scopes.reading_role(granted),
        user_id=key.key_id,
        user_name=name_of(key),
        standing=_KeyStanding(named, int(key.version)),
    )
    if at_work.suspended:
        raise KeyRefused("tenant_suspended")
    return ApiCaller(at_work, named.prefix, granted, tuple(key.origins), address, is_of_late(key))


def note_use(caller: ApiCaller) -> None:
    """Write down that a key let its caller in, unless that was done of late. Other processes may do so meanwhile."""
    if caller.is_noted:
        return
    tenant_id = caller.tenant.tenant_id
    unnoted = ApiKeyItem.last_used_at.does_not_exist() | (ApiKeyItem.last_used_at < _before())
    transaction = Transaction()
    transaction.update(
        ApiKeyItem(tenant_id, caller.prefix),
        [ApiKeyItem.last_used_at.set(clock.stamp()), ApiKeyItem.last_used_from.set(caller.address)],
        condition=ApiKeyItem.digest.exists() & unnoted,
    )
    try:
        with retry.on_behalf_of(tenant_id):
            PLATFORM.transact(transaction)
    except TransactionRefused:
        return
    except PortalError as error:
        log.warning("That a key of tenant %s was used is not written down: %s", tenant_id, error.message)


def name_of(key: Any) -> str:
    """Return a key's name as histories and the audit trail have it, where people's names stand beside it."""
    return f"{key.name} (API key)"


def _refuse_ended(key: Any) -> None:
    if key.revoked_at:
        raise KeyRefused("key_revoked")
    if key.expires_at and key.expires_at <= clock.stamp():
        raise KeyRefused("key_expired")


@dataclass(frozen=True)
class _KeyStanding:
    """Let what a key does depend on the key as it was read: it is good still, and nobody has taken a scope from it."""

    named: KeyAddress
    version: int

    def require(self, transaction: Transaction, *, name: str) -> None:
        unexpired = ApiKeyItem.expires_at.does_not_exist() | (ApiKeyItem.expires_at > clock.stamp())
        unchanged = ApiKeyItem.digest.exists() & (ApiKeyItem.version == self.version)
        good = unchanged & ApiKeyItem.revoked_at.does_not_exist() & unexpired
        transaction.check(ApiKeyItem(self.named.tenant_id, self.named.prefix), good, name=name)

    def blame(self) -> None:
        (key,) = PLATFORM.get_all([(ApiKeyItem, self.named.tenant_id, self.named.prefix)], consistent=True)
        if key is None:
            raise KeyRefused("key_unknown")
        _refuse_ended(key)
        if key.version != self.version:
            raise Overtaken("This API key has just been changed, and nothing was done. Send it again.")
