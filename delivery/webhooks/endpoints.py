"""Set up endpoints: add, change, pause, resume and remove them. Admins of a tenant do this.

An endpoint's subscriptions are also stored in the tenant's own item, which every request has read already: so a change
of a ticket knows its subscribers without a read. Both are written in one transaction, with the row of the audit trail.
An endpoint that is paused is subscribed to nothing, so what happens meanwhile is not kept for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from django.conf import settings

from delivery.webhooks import safe_addresses, signatures, webhook_events
from delivery.webhooks.endpoint_changes import CHANGED, ENDPOINT, ChangedEndpoint, Planned, commit, updated
from delivery.webhooks.stored import EndpointItem, SecretItem, endpoint_id, is_endpoint_id
from portal import clock, plain_text
from portal.dynamo.store import Store, Transaction
from portal.dynamo.transaction import Companion
from portal.errors import Conflict, Invalid, NotFound
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.schema import keys as schema_keys
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy.context import TenantContext

MOST: Final = 10  # endpoints of one tenant
DESCRIPTION_LIMIT: Final = 200  # characters
ACTIVE, PAUSED = "active", "paused"


@dataclass(frozen=True)
class EndpointChoice:
    """Hold what an admin chooses for an endpoint. Raises Invalid, with the field, for what cannot be."""

    url: str
    event_types: tuple[str, ...]
    description: str = ""

    def __post_init__(self) -> None:
        read_target(self.url)
        offered = {kind.name for kind in webhook_events.offered()}
        if unknown := [name for name in self.event_types if name not in offered]:
            raise Invalid(f"There is no event type “{unknown[0][:80]}”.", field="event_types")
        if not self.event_types:
            raise Invalid("Choose at least one event type.", field="event_types")
        if len(self.description) > DESCRIPTION_LIMIT:
            raise Invalid(f"The description can have up to {DESCRIPTION_LIMIT} characters.", field="description")
        if plain_text.has_controls(self.description):
            raise Invalid("Use characters that can be seen.", field="description")


def read_target(url: str) -> safe_addresses.WebhookAddress:
    """Read the address of an endpoint by the rules of this installation. Raises Invalid."""
    return safe_addresses.target(url, ports=settings.WEBHOOK_PORTS, receiver=settings.WEBHOOK_RECEIVER)


def listed(repository: Store, *, consistent: bool = False) -> list[EndpointItem]:
    """Return a tenant's endpoints, the oldest first: one Query."""
    found = repository.query(EndpointItem, schema_keys.tenant, consistent=consistent).items
    return sorted(found, key=lambda e: (e.created_at, e.endpoint_id))


def find(repository: Store, endpoint_id: str) -> EndpointItem:
    """Return one endpoint: one consistent GetItem. Raises NotFound."""
    found = None
    if is_endpoint_id(endpoint_id):
        found = repository.get(EndpointItem, schema_keys.tenant, sort=endpoint_id, consistent=True)
    if found is None:
        raise NotFound("There is no such endpoint.")
    return found


def add(
    tenant: TenantContext,
    *,
    choice: EndpointChoice,
    request_id: str,
    by: Actor,
    companion: Companion[ChangedEndpoint] | None = None,
) -> tuple[EndpointItem, str]:
    """Add an endpoint and return it with its secret, which is not shown again.

    Raises Conflict where there are MOST already, and for a form that has made its endpoint before.
    """
    secret, now = signatures.new_secret(), clock.stamp()
    item = EndpointItem(
        tenant.tenant_id,
        endpoint_id(request_id),
        url=choice.url,
        description=choice.description,
        event_types=sorted(choice.event_types),
        created_at=now,
        rotated_at=now,
    )

    def plan(others: list[EndpointItem]) -> Planned:
        if any(other.endpoint_id == item.endpoint_id for other in others):
            raise Conflict("This endpoint has been added already. Its secret was shown then; you can replace it.")
        if len(others) >= MOST:
            raise Conflict(f"A desk can have up to {MOST} endpoints. Remove one that is not used.")
        transaction = Transaction()
        transaction.put(item, condition=EndpointItem.endpoint_id.does_not_exist(), name=ENDPOINT)
        transaction.put(SecretItem(tenant.tenant_id, item.endpoint_id, current=secret))
        row = entry(item, AuditAction.WEBHOOK_ADDED, by, after=_shown(item))
        return Planned(transaction, row, ChangedEndpoint(item, secret), subscribe=choice.event_types)

    commit(
        tenant,
        partial(listed, tenant.repository, consistent=True),
        plan,
        companion=companion,
        lacks=lambda others, subscribed: not subscribed <= {other.endpoint_id for other in others},
    )
    return item, secret


def change(
    tenant: TenantContext,
    *,
    endpoint_id: str,
    choose: Callable[[EndpointItem], EndpointChoice],
    version: int | None,
    by: Actor,
) -> EndpointItem:
    """Store what an admin chose anew, made of what is stored, and return the endpoint as it is then.

    `version` is the one that the form showed, None where `choose` has judged what is stored. Where nothing changes,
    nothing is written. Raises NotFound and Conflict.
    """
    changed = list[EndpointItem]()

    def plan(item: EndpointItem) -> Planned | None:
        changed[:] = [item]
        if version is not None and item.version != version:
            raise Conflict(CHANGED)
        choice, before = choose(item), _shown(item)
        item.url, item.description, item.event_types = choice.url, choice.description, sorted(choice.event_types)
        after = _shown(item)
        names = {name for name in after if before[name] != after[name]}
        if not names:
            return None
        actions = [
            EndpointItem.url.set(item.url),
            EndpointItem.description.set(item.description),
            EndpointItem.event_types.set(item.event_types),
        ]
        was, now = ({name: values[name] for name in names} for values in (before, after))
        row = entry(item, AuditAction.WEBHOOK_CHANGED, by, before=was, after=now)
        subscribe = choice.event_types if item.state == ACTIVE else ()
        return Planned(updated(item, actions), row, ChangedEndpoint(item), subscribe=subscribe)

    commit(tenant, partial(find, tenant.repository, endpoint_id), plan)
    return changed[0]


def pause(
    tenant: TenantContext,
    *,
    endpoint_id: str,
    by: Actor,
    because: str = "",
    mails: Sequence[OutgoingMail] = (),
    companion: Companion[ChangedEndpoint] | None = None,
) -> None:
    """Send an endpoint nothing more, until it is resumed. The mails leave with that, where they leave by the outbox.

    Raises NotFound and Conflict.
    """

    def plan(item: EndpointItem) -> Planned:
        if item.state == PAUSED:
            raise Conflict("This endpoint is paused already.")
        item.state, item.paused_because = PAUSED, because
        actions = [EndpointItem.state.set(PAUSED), EndpointItem.paused_because.set(because)]
        transaction = updated(item, actions)
        outgoing.join(transaction, mails)
        row = entry(item, AuditAction.WEBHOOK_PAUSED, by, after={"because": because} if because else {})
        return Planned(transaction, row, ChangedEndpoint(item), subscribe=())

    commit(tenant, partial(find, tenant.repository, endpoint_id), plan, companion=companion)


def resume(
    tenant: TenantContext, *, endpoint_id: str, by: Actor, companion: Companion[ChangedEndpoint] | None = None
) -> None:
    """Send an endpoint again what it subscribed to, from now on. Raises NotFound and Conflict."""

    def plan(item: EndpointItem) -> Planned:
        if item.state == ACTIVE:
            raise Conflict("This endpoint is active already.")
        item.state, item.paused_because, item.failing_since = ACTIVE, None, None
        actions = [
            EndpointItem.state.set(ACTIVE),
            EndpointItem.paused_because.remove(),
            EndpointItem.failing_since.remove(),
        ]
        row = entry(item, AuditAction.WEBHOOK_RESUMED, by)
        return Planned(updated(item, actions), row, ChangedEndpoint(item), subscribe=tuple(item.event_types))

    commit(tenant, partial(find, tenant.repository, endpoint_id), plan, companion=companion)


def remove(tenant: TenantContext, *, endpoint_id: str, by: Actor) -> None:
    """Remove an endpoint and its secrets. Its pending events are not sent. Raises NotFound and Conflict."""

    def plan(item: EndpointItem) -> Planned:
        transaction = Transaction()
        key = EndpointItem(item.tenant_id, item.endpoint_id)
        transaction.delete(key, condition=EndpointItem.endpoint_id.exists(), name=ENDPOINT)
        transaction.delete(SecretItem(item.tenant_id, item.endpoint_id))
        row = entry(item, AuditAction.WEBHOOK_REMOVED, by, before=_shown(item))
        return Planned(transaction, row, ChangedEndpoint(item), subscribe=())

    commit(tenant, partial(find, tenant.repository, endpoint_id), plan)


def entry(item: EndpointItem, action: AuditAction, by: Actor, **values: Any) -> AuditEntry:
    """Return the row of the audit trail for a change of an endpoint."""
    return AuditEntry(item.tenant_id, action, by, "webhook", item.endpoint_id, item.url, **values)


def _shown(item: EndpointItem) -> dict[str, str]:
    return {"address": item.url, "description": item.description, "events": ", ".join(item.event_types)}
