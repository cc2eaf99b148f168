"""Replace the secret of an endpoint. For a while each old one signs beside the new, so that nothing is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

from delivery.webhooks import endpoints, signatures
from delivery.webhooks.endpoint_changes import ChangedEndpoint, Planned, commit, updated
from delivery.webhooks.stored import EndpointItem, SecretItem, is_endpoint_id
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.transaction import Companion
from portal.errors import Conflict, NotFound
from portal.schema import keys
from tenants.audit_trail.recording import Actor, AuditAction
from tenants.tenancy.context import TenantContext

OVERLAP: Final = timedelta(hours=24)
MOST_OLD: Final = 3  # replaced secrets that sign beside the current one


def rotate(
    tenant: TenantContext,
    *,
    endpoint_id: str,
    version: int | None,
    by: Actor,
    companion: Companion[ChangedEndpoint] | None = None,
) -> tuple[EndpointItem, str]:
    """Make a new secret and return it with the endpoint; it is not shown again. Each old one signs for OVERLAP.

    `version` is that of the endpoint on the form: a form that is sent twice replaces the secret once. Raises NotFound,
    and Conflict where MOST_OLD sign already: one more would end the signatures that a receiver may still rely on.
    """
    secret, now = signatures.new_secret(), clock.now()
    rotated = list[EndpointItem]()
    reads: list[Callable[[], Any]] = [
        partial(endpoints.find, tenant.repository, endpoint_id),
        partial(_secret_of, tenant, endpoint_id),
    ]

    def plan(found: list[Any]) -> Planned:
        item, stored = found
        if stored is None:
            raise NotFound("There is no such endpoint.")
        if version is not None and item.version != version:
            raise Conflict(
                "This secret has just been replaced, or the endpoint was changed. Please check and try again."
            )
        old = _old(stored)
        if len(old) >= MOST_OLD:
            ends = clock.parse(min(until for until, _ in old))
            raise Conflict(
                f"This secret was replaced {MOST_OLD} times within 24 hours, and deliveries are still signed with each "
                f"old one. You can replace it again after {ends:%-d %B, %H:%M:%S} UTC."
            )
        replaced = SecretItem(
            tenant.tenant_id,
            endpoint_id,
            current=secret,
            previous=stored.current,
            previous_until=clock.stamp(now + OVERLAP),
            earlier=[" ".join(one) for one in old],
        )
        item.rotated_at = clock.stamp(now)
        rotated[:] = [item]
        change = updated(item, [EndpointItem.rotated_at.set(item.rotated_at)], replaced)
        return Planned(change, endpoints.entry(item, AuditAction.WEBHOOK_ROTATED, by), ChangedEndpoint(item, secret))

    commit(tenant, partial(fan_out, reads), plan, companion=companion)
    return rotated[0], secret


def _secret_of(tenant: TenantContext, endpoint_id: str) -> SecretItem | None:
    if not is_endpoint_id(endpoint_id):
        return None
    return tenant.repository.get(SecretItem, keys.tenant, sort=endpoint_id, consistent=True)


def signing(stored: SecretItem) -> list[str]:
    """Return the secrets that sign now: the current one, and those that it replaced within OVERLAP."""
    return [stored.current, *(secret for _, secret in _old(stored))]


def _old(stored: SecretItem) -> list[tuple[str, str]]:
    """Return the replaced secrets that still sign, the latest first, each after the moment until which it does."""
    known = [(stored.previous_until or "", stored.previous or "")]
    known += [(until, secret) for until, _, secret in (text.partition(" ") for text in stored.earlier)]
    return [(until, secret) for until, secret in known if secret and clock.stamp() < until]
