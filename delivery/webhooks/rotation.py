"""Replace the secret of an endpoint. For a while the old one signs beside the new, so that nothing is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from delivery.webhooks import endpoints, signatures
from delivery.webhooks.items import EndpointItem, SecretItem
from portal import clock
from portal.errors import Conflict, NotFound
from portal.schema import keys
from tenants.audit_trail.recording import Actor, AuditAction
from tenants.tenancy.context import TenantContext

OVERLAP: Final = timedelta(hours=24)


def rotate(tenant: TenantContext, *, endpoint_id: str, version: int, by: Actor) -> tuple[EndpointItem, str]:
    """Make a new secret and return it with the endpoint; it is not shown again. The old one signs until OVERLAP ends.

    `version` is that of the endpoint on the form: a form that is sent twice replaces the secret once. Raises NotFound
    and Conflict.
    """
    item = endpoints.find(tenant.repository, endpoint_id)
    if item.version != version:
        raise Conflict("This secret has just been replaced, or the endpoint was changed. Please check and try again.")
    stored = tenant.repository.get(SecretItem, keys.tenant, sort=endpoint_id, consistent=True)
    if stored is None:
        raise NotFound("There is no such endpoint.")
    secret, now = signatures.new_secret(), clock.now()
    replaced = SecretItem(
        tenant.tenant_id,
        endpoint_id,
        current=secret,
        previous=stored.current,
        previous_until=clock.stamp(now + OVERLAP),
    )
    change = endpoints.updated(item, [EndpointItem.rotated_at.set(clock.stamp(now))], replaced)
    endpoints.commit_alone(tenant, change, endpoints.entry(item, AuditAction.WEBHOOK_ROTATED, by))
    return item, secret


def signing(stored: SecretItem) -> list[str]:
    """Return the secrets that sign now: the current one, and the one before it while it is still accepted."""
    overlaps = stored.previous and stored.previous_until and clock.stamp() < stored.previous_until
    return [stored.current, stored.previous] if overlaps else [stored.current]
