"""Set up endpoints: add, change, pause, resume and remove them. Admins of a tenant do this.

What an endpoint subscribed to also stands in the tenant's own item, which every request has read already: that is how a
change of a ticket knows whom to tell without a read. Both are written in one transaction, with the row of the audit
trail. An endpoint that is paused is subscribed to nothing, so what happens meanwhile is not kept for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings

from delivery.webhooks import keys, safe_addresses, signatures, webhook_events
from delivery.webhooks.items import EndpointItem, SecretItem
from delivery.webhooks.tables import ENDPOINTS
from portal import clock, plain_text
from portal.dynamo.repository import TenantRepository, Transaction
from portal.errors import Conflict, Invalid, NotFound, TransactionRefused
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from portal.schema import keys as schema_keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.items import TenantItem

MOST: Final = 10  # endpoints of one tenant
DESCRIPTION_LIMIT: Final = 200  # characters
ACTIVE, PAUSED = "active", "paused"
CHANGED: Final = "Somebody else has just changed this endpoint. Please check and try again."
_SUBSCRIPTIONS: Final = "subscriptions"  # names of members of a transaction
_ENDPOINT: Final = "endpoint"


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


def listed(repository: TenantRepository, *, consistent: bool = False) -> list[EndpointItem]:
    """Return a tenant's endpoints, the oldest first: one Query."""
    stored = repository.query(ENDPOINTS, schema_keys.tenant, consistent=consistent)
    return sorted(map(EndpointItem.from_raw_data, stored.items), key=lambda e: (e.created_at, e.endpoint_id))


def find(repository: TenantRepository, endpoint_id: str) -> EndpointItem:
    """Return one endpoint: one consistent GetItem. Raises NotFound."""
    found = None
    if keys.is_endpoint_id(endpoint_id):
        found = repository.get(EndpointItem, schema_keys.tenant, sort=endpoint_id, consistent=True)
    if found is None:
        raise NotFound("There is no such endpoint.")
    return found


def add(tenant: TenantContext, *, choice: EndpointChoice, request_id: str, by: Actor) -> tuple[EndpointItem, str]:
    """Add an endpoint and return it with its secret, which is not shown again.

    Raises Conflict where there are MOST already, and for a form that has made its endpoint before.
    """
    secret, now = signatures.new_secret(), clock.stamp()
    item = EndpointItem(
        tenant.tenant_id,
        keys.endpoint_id(request_id),
        url=choice.url,
        description=choice.description,
        event_types=sorted(choice.event_types),
        created_at=now,
        rotated_at=now,
    )

    def build(stored: TenantItem) -> Transaction:
        others = listed(tenant.repository, consistent=True)
        if any(other.endpoint_id == item.endpoint_id for other in others):
            raise Conflict("This endpoint has been added already. Its secret was shown then; you can replace it.")
        if len(others) >= MOST:
            raise Conflict(f"A desk can have up to {MOST} endpoints. Remove one that is not used.")
        transaction = Transaction()
        transaction.put(item, condition=EndpointItem.endpoint_id.does_not_exist(), name=_ENDPOINT)
        transaction.put(SecretItem(tenant.tenant_id, item.endpoint_id, current=secret))
        return transaction

    _commit(tenant, item, build, AuditAction.WEBHOOK_ADDED, by, subscribe=choice.event_types, after=_shown(item))
    return item, secret


def change(tenant: TenantContext, *, endpoint_id: str, choice: EndpointChoice, version: int, by: Actor) -> bool:
    """Store what an admin chose anew, and tell whether that changed anything.

    `version` is the one that the form showed. Raises NotFound and Conflict.
    """
    item = find(tenant.repository, endpoint_id)
    if item.version != version:
        raise Conflict(CHANGED)
    before = _shown(item)
    item.url, item.description, item.event_types = choice.url, choice.description, sorted(choice.event_types)
    after = _shown(item)
    changed = {name for name in after if before[name] != after[name]}
    if not changed:
        return False
    actions = [
        EndpointItem.url.set(item.url),
        EndpointItem.description.set(item.description),
        EndpointItem.event_types.set(item.event_types),
    ]
    _commit(
        tenant,
        item,
        lambda stored: updated(item, actions),
        AuditAction.WEBHOOK_CHANGED,
        by,
        subscribe=choice.event_types if item.state == ACTIVE else (),
        before={name: before[name] for name in changed},
        after={name: after[name] for name in changed},
    )
    return True


def pause(
    tenant: TenantContext, *, endpoint_id: str, by: Actor, because: str = "", mails: Sequence[OutgoingMail] = ()
) -> EndpointItem:
    """Send an endpoint nothing more, until it is resumed. The mails leave with that, where they leave by the outbox.

    Raises NotFound and Conflict.
    """
    item = find(tenant.repository, endpoint_id)
    if item.state == PAUSED:
        raise Conflict("This endpoint is paused already.")
    actions = [EndpointItem.state.set(PAUSED), EndpointItem.paused_because.set(because)]
    reason = {"because": because} if because else {}

    def build(stored: TenantItem) -> Transaction:
        transaction = updated(item, actions)
        outgoing.join(transaction, mails)
        return transaction

    _commit(tenant, item, build, AuditAction.WEBHOOK_PAUSED, by, after=reason)
    return item


def resume(tenant: TenantContext, *, endpoint_id: str, by: Actor) -> EndpointItem:
    """Send an endpoint again what it subscribed to, from now on. Raises NotFound and Conflict."""
    item = find(tenant.repository, endpoint_id)
    if item.state == ACTIVE:
        raise Conflict("This endpoint is active already.")
    actions = [
        EndpointItem.state.set(ACTIVE),
        EndpointItem.paused_because.remove(),
        EndpointItem.failing_since.remove(),
    ]
    subscribe = tuple(item.event_types)
    _commit(tenant, item, lambda _: updated(item, actions), AuditAction.WEBHOOK_RESUMED, by, subscribe=subscribe)
    return item


def remove(tenant: TenantContext, *, endpoint_id: str, by: Actor) -> EndpointItem:
    """Remove an endpoint and its secrets. What it still has to get is not sent. Raises NotFound."""
    item = find(tenant.repository, endpoint_id)

    def build(stored: TenantItem) -> Transaction:
        transaction = Transaction()
        key = EndpointItem(item.tenant_id, item.endpoint_id)
        transaction.delete(key, condition=EndpointItem.endpoint_id.exists(), name=_ENDPOINT)
        transaction.delete(SecretItem(item.tenant_id, item.endpoint_id))
        return transaction

    _commit(tenant, item, build, AuditAction.WEBHOOK_REMOVED, by, before=_shown(item))
    return item


def updated(item: EndpointItem, actions: Sequence[Any], *beside: Any) -> Transaction:
    """Return the transaction that updates an endpoint if it is still the one that was read, and puts `beside`."""
    transaction = Transaction()
    grown = EndpointItem.version.set(int(item.version) + 1)
    unchanged = EndpointItem.version == int(item.version)
    key = EndpointItem(item.tenant_id, item.endpoint_id)
    transaction.update(key, [*actions, grown], condition=unchanged, name=_ENDPOINT)
    for other in beside:
        transaction.put(other)
    return transaction


def commit_alone(tenant: TenantContext, transaction: Transaction, entry: AuditEntry) -> None:
    """Write a change of an endpoint that leaves its subscriptions as they are. Raises Conflict."""
    _refusals(lambda: recording.commit(_by_role(transaction, tenant), [entry]))


def entry(item: EndpointItem, action: AuditAction, by: Actor, **values: Any) -> AuditEntry:
    """Return the row of the audit trail for a change of an endpoint."""
    return AuditEntry(item.tenant_id, action, by, "webhook", item.endpoint_id, item.url, **values)


def _commit(
    tenant: TenantContext,
    item: EndpointItem,
    build: Callable[[TenantItem], Transaction],
    action: AuditAction,
    by: Actor,
    *,
    subscribe: Sequence[str] = (),
    **values: Any,
) -> None:
    """Write a change together with what the endpoint is subscribed to from then on."""

    def whole() -> Transaction:
        stored = tenant_directory.get(tenant.tenant_id)
        transaction = build(stored)
        text = _subscribed(stored.subscriptions, item.endpoint_id, subscribe)
        now = TenantItem.subscriptions.set(text) if text else TenantItem.subscriptions.remove()
        seen = TenantItem.subscriptions
        unmoved = seen == stored.subscriptions if stored.subscriptions else seen.does_not_exist()
        condition = unmoved & TenantItem.tenant_id.exists()
        transaction.update(TenantItem(stored.tenant_id), [now], condition=condition, name=_SUBSCRIPTIONS)
        return _by_role(transaction, tenant)

    row = entry(item, action, by, **values)
    _refusals(lambda: recording.commit_built(whole, [row], depending=(_SUBSCRIPTIONS,)))


def _by_role(transaction: Transaction, tenant: TenantContext) -> Transaction:
    if tenant.user_id:  # a worker that pauses an endpoint is nobody's
        member_changes.require_role(transaction, tenant)
    return transaction


def _refusals(commit: Callable[[], None]) -> None:
    try:
        commit()
    except TransactionRefused as refused:
        raise Conflict(CHANGED) from refused


def _subscribed(text: str | None, endpoint_id: str, types: Sequence[str]) -> str:
    """Return the tenant's subscriptions as JSON, "" for none, with those of one endpoint replaced by these types."""
    subscriptions: dict[str, list[str]] = json.loads(text) if text else {}
    for name in {*subscriptions, *types}:
        others = [other for other in subscriptions.get(name, ()) if other != endpoint_id]
        subscriptions[name] = sorted([*others, endpoint_id]) if name in types else others
    kept = {name: ids for name, ids in sorted(subscriptions.items()) if ids}
    return json.dumps(kept, separators=(",", ":")) if kept else ""


def _shown(item: EndpointItem) -> dict[str, str]:
    return {"address": item.url, "description": item.description, "events": ", ".join(item.event_types)}
