"""Replace the secret of an endpoint. For a while the old one signs beside the new, so that nothing is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

from delivery.webhooks import endpoints, signatures
from delivery.webhooks import keys as webhook_keys
from delivery.webhooks.endpoint_changes import ChangedEndpoint, Planned, commit, updated
from delivery.webhooks.items import EndpointItem, SecretItem
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.companions import Companion
from portal.errors import Conflict, NotFound
from portal.schema import keys
from tenants.audit_trail.recording import Actor, AuditAction
from tenants.tenancy.context import TenantContext

OVERLAP: Final = timedelta(hours=24)


def rotate(
    tenant: TenantContext,
    *,
    endpoint_id: str,
    version: int | None,
    by: Actor,
    companion: Companion[ChangedEndpoint] | None = None,
) -> tuple[EndpointItem, str]:
    """Make a new secret and return it with the endpoint; it is not shown again. The old one signs until OVERLAP ends.

    `version` is that of the endpoint on the form: a form that is sent twice replaces the secret once. Raises NotFound
    and Conflict.
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
        replaced = SecretItem(
            tenant.tenant_id,
            endpoint_id,
            current=secret,
            previous=stored.current,
            previous_until=clock.stamp(now + OVERLAP),
        )
        item.rotated_at = clock.stamp(now)
        rotated[:] = [item]
        change = updated(item, [EndpointItem.rotated_at.set(item.rotated_at)], replaced)
        return Planned(change, endpoints.entry(item, AuditAction.WEBHOOK_ROTATED, by), ChangedEndpoint(item, secret))

    commit(tenant, partial(fan_out, reads), plan, companion=companion)
    return rotated[0], secret


def _secret_of(tenant: TenantContext, endpoint_id: str) -> SecretItem | None:
    if not webhook_keys.is_endpoint_id(endpoint_id):
        return None
    return tenant.repository.get(SecretItem, keys.tenant, sort=endpoint_id, consistent=True)


def signing(stored: SecretItem) -> list[str]:
    """Return the secrets that sign now: the current one, and the one before it while it is still accepted."""
    overlaps = stored.previous and stored.previous_until and clock.stamp() < stored.previous_until
    return [stored.current, stored.previous] if overlaps else [stored.current]
