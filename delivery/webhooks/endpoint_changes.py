"""Write a change of an endpoint: with what it is subscribed to from then on, and with its row of the audit trail.

All that a change depends on is read at once: the endpoints or endpoint, the tenant's item, and the end of the audit
chain. So it costs two round trips, however much there is to say.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, TypeVar

from delivery.webhooks.stored import EndpointItem
from portal.dynamo.client import fan_out
from portal.dynamo.store import Transaction
from portal.dynamo.transaction import Companion, beside
from portal.errors import Overtaken, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import AuditEntry, ReadChange
from tenants.membership import member_changes
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import TenantItem

CHANGED: Final = "Somebody else has just changed this endpoint. Please check and try again."
ENDPOINT: Final = "endpoint"  # names of members of a transaction
_SUBSCRIPTIONS: Final = "subscriptions"

_T = TypeVar("_T")


@dataclass(frozen=True)
class ChangedEndpoint:
    """Hold an endpoint as a change leaves it, with a new secret where the change made one."""

    item: EndpointItem
    secret: str = ""


@dataclass(frozen=True)
class Planned:
    """Hold a change before it is written. `subscribe` are the types of events from then on, None to leave them."""

    transaction: Transaction
    row: AuditEntry
    told: ChangedEndpoint
    subscribe: Sequence[str] | None = None


def updated(item: EndpointItem, actions: Sequence[Any], *beside: Any) -> Transaction:
    """Return the transaction that updates an endpoint if it is still the one that was read, and puts `beside`.

    The item gets the version that it has then.
    """
    transaction = Transaction()
    unchanged, item.version = EndpointItem.version == int(item.version), int(item.version) + 1
    key = EndpointItem(item.tenant_id, item.endpoint_id)
    grown = EndpointItem.version.set(item.version)
    transaction.update(key, [*actions, grown], condition=unchanged, name=ENDPOINT)
    for other in beside:
        transaction.put(other)
    return transaction


def commit(
    tenant: TenantContext,
    read: Callable[[], _T],
    plan: Callable[[_T], Planned | None],
    *,
    companion: Companion[ChangedEndpoint] | None = None,
    lacks: Callable[[_T, frozenset[str]], bool] = lambda found, subscribed: False,
) -> None:
    """Read, and write what `plan` makes of it, or nothing where that is None. Raises Conflict, and what both raise.

    `lacks` tells that what was read is older than the tenant's item, by the ids of the endpoints subscribed there: then
    it is read again.
    """
    waiting = [companion]  # for the first attempt, beside whose reads it does its part

    def build() -> ReadChange | None:
        reads: list[Callable[[], Any]] = [read, partial(tenant_directory.get, tenant.tenant_id)]
        found, stored = beside(waiting.pop() if waiting else None, lambda: fan_out(reads))
        if lacks(found, _subscribers(stored.subscriptions)):  # what is read at once need not be of one moment
            found = read()
        planned = plan(found)
        if planned is None:
            return None
        transaction = planned.transaction
        if planned.subscribe is not None:
            _subscribe(transaction, stored, planned.told.item.endpoint_id, planned.subscribe)
        if tenant.user_id:  # a worker that pauses an endpoint is nobody's
            member_changes.require_role(transaction, tenant)
        if companion is not None:
            companion.join(transaction, planned.told)
        return transaction, [planned.row]

    try:
        recording.commit_read(tenant.tenant_id, build, depending=(_SUBSCRIPTIONS,))
    except TransactionRefused as refused:
        if companion is not None:
            companion.blame(refused)
        member_changes.blame_standing(tenant, refused)
        raise Overtaken(CHANGED) from refused


def _subscribe(transaction: Transaction, stored: TenantItem, endpoint_id: str, types: Sequence[str]) -> None:
    text = _subscribed(stored.subscriptions, endpoint_id, types)
    now = TenantItem.subscriptions.set(text) if text else TenantItem.subscriptions.remove()
    seen = TenantItem.subscriptions
    unmoved = seen == stored.subscriptions if stored.subscriptions else seen.does_not_exist()
    condition = unmoved & TenantItem.tenant_id.exists()
    transaction.update(TenantItem(stored.tenant_id), [now], condition=condition, name=_SUBSCRIPTIONS)


def _subscribers(text: str | None) -> frozenset[str]:
    return frozenset(chain.from_iterable(json.loads(text).values())) if text else frozenset()


def _subscribed(text: str | None, endpoint_id: str, types: Sequence[str]) -> str:
    """Return the tenant's subscriptions as JSON, "" for none, with those of one endpoint replaced by these types."""
    subscriptions: dict[str, list[str]] = json.loads(text) if text else {}
    for name in {*subscriptions, *types}:
        others = [other for other in subscriptions.get(name, ()) if other != endpoint_id]
        subscriptions[name] = sorted([*others, endpoint_id]) if name in types else others
    kept = {name: ids for name, ids in sorted(subscriptions.items()) if ids}
    return json.dumps(kept, separators=(",", ":")) if kept else ""
