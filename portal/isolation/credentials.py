"""The third layer: a tenant's requests are signed with credentials that AWS itself binds to that tenant.

The web process assumes the tenant role with the session tag TenantId; the role's policy compares each leading key
with the tag, so DynamoDB refuses what the first two layers let through. One client and one connection pool serve
all tenants: the credentials are swapped at the moment of signing.

Off where TENANT_ROLE_ARN is empty. Where it is set there is no way back to the process's own credentials: if the
role cannot be assumed, the request is not sent.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from botocore.credentials import Credentials, DeferredRefreshableCredentials, ReadOnlyCredentials
from botocore.exceptions import BotoCoreError, ClientError

from portal.errors import Unavailable
from portal.schema import keys

log = logging.getLogger("pooldesk.security")

# One hour is the most that a role assumed by a role may last (AWS, "Role chaining").
SESSION: Final = 3600  # seconds
REFRESH_BEFORE: Final = 600  # seconds before expiry: at most one call per tenant, process and 50 minutes
CACHED_TENANTS: Final = 20_000  # some 1.5 KB each

Assume = Callable[[str], tuple[ReadOnlyCredentials, float]]  # tenant id to credentials and their expiry, epoch seconds


class CredentialsRefused(Unavailable):
    """The role of a request could not be assumed. The request was not sent."""

    code = "credentials_refused"


@dataclass
class _CachedCredentials:
    lock: threading.Lock
    credentials: ReadOnlyCredentials | None = None
    expires: float = 0.0


class TenantCredentials:
    """Credentials by tenant, fetched once by one thread while the others wait, renewed shortly before they expire."""

    def __init__(self, assume: Assume, *, clock: Callable[[], float] = time.time, size: int = CACHED_TENANTS) -> None:
        self._assume, self._clock, self._size = assume, clock, size
        self._entries: OrderedDict[str, _CachedCredentials] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, tenant_id: str) -> ReadOnlyCredentials:
        """Return a tenant's credentials. Raises CredentialsRefused, and ValueError for what is no tenant id."""
        keys.tenant(tenant_id)
        with self._lock:
            entry = self._entries.get(tenant_id)
            if entry is None:
                entry = self._entries[tenant_id] = _CachedCredentials(threading.Lock())
                if len(self._entries) > self._size:
                    self._entries.popitem(last=False)
            else:
                self._entries.move_to_end(tenant_id)
        if entry.credentials is not None and self._clock() < entry.expires - REFRESH_BEFORE:
            return entry.credentials
        with entry.lock:
            if entry.credentials is None or self._clock() >= entry.expires - REFRESH_BEFORE:
                self._renew(tenant_id, entry)
            assert entry.credentials is not None  # noqa: S101  # for the type checker; _renew sets or raises
            return entry.credentials

    def _renew(self, tenant_id: str, entry: _CachedCredentials) -> None:
        try:
            entry.credentials, entry.expires = self._assume(tenant_id)
        except (ClientError, BotoCoreError) as error:
            denied = isinstance(error, ClientError) and error.response["Error"]["Code"] in _DENIED
            if not denied and entry.credentials is not None and self._clock() < entry.expires:
                # STS is away for a moment and what we hold is still the tenant's own.
                log.warning("The credentials of tenant %s could not be renewed yet: %s", tenant_id, error)
                return
            entry.credentials = None
            log.critical("The role for tenant %s could not be assumed: %s", tenant_id, error)
            raise CredentialsRefused("The database cannot be used for this tenant right now.") from error


_DENIED: Final = {"AccessDenied", "AccessDeniedException", "ExpiredToken", "InvalidClientTokenId", "ValidationError"}


def assume_with(sts: Any, role_arn: str) -> Assume:
    """Return the function that fetches credentials: `AssumeRole` on this STS client, tagged with the tenant."""

    def assume(tenant_id: str) -> tuple[ReadOnlyCredentials, float]:
        answer = sts.assume_role(
            RoleArn=role_arn,
            RoleSessionName=f"pooldesk-{tenant_id}",
            DurationSeconds=SESSION,
            Tags=[{"Key": "TenantId", "Value": tenant_id}],
        )["Credentials"]
        credentials = ReadOnlyCredentials(
            answer["AccessKeyId"], answer["SecretAccessKey"], answer["SessionToken"], None
        )
        return credentials, answer["Expiration"].timestamp()

    return assume


def of_role(sts: Any, role_arn: str, name: str) -> DeferredRefreshableCredentials:
    """Return the credentials of a role of ours at a site, fetched at first use and renewed before they expire.

    Using them raises CredentialsRefused if there are none, or none any more.
    """

    def assume() -> dict[str, str]:
        try:
            answer = sts.assume_role(RoleArn=role_arn, RoleSessionName=f"pooldesk-{name}", DurationSeconds=SESSION)
        except (ClientError, BotoCoreError) as error:
            log.critical("The role %s could not be assumed: %s", role_arn, error)
            raise CredentialsRefused(f"The role {role_arn.rpartition('/')[2]} could not be assumed.") from error
        found = answer["Credentials"]
        return {
            "access_key": found["AccessKeyId"],
            "secret_key": found["SecretAccessKey"],
            "token": found["SessionToken"],
            "expiry_time": found["Expiration"].isoformat(),
        }

    return DeferredRefreshableCredentials(assume, method="site-role")


class ContextCredentials(Credentials):  # type: ignore[misc]  # botocore has no types
    """The credentials of a botocore client, looked up at each signing, so that each request gets its own tenant's."""

    method = "tenant-role"

    def __init__(self, source: TenantCredentials, current_tenant: Callable[[], str]) -> None:
        self._source, self._current_tenant = source, current_tenant

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        return self._source.get(self._current_tenant())

    access_key = property(lambda self: self.get_frozen_credentials().access_key)
    secret_key = property(lambda self: self.get_frozen_credentials().secret_key)
    token = property(lambda self: self.get_frozen_credentials().token)
    account_id = property(lambda self: None)
