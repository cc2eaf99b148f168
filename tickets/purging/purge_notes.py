"""Keep what a purge has done so far, so that anybody can go on with it after a kill.

It stands in the directory, because all else of the tenant goes. Each note holds only as long as nobody else has taken
the purge over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from portal import clock
from portal.dynamo import platform
from portal.dynamo.repository import Transaction
from portal.errors import Conflict, TransactionRefused
from tenants.audit_trail.recording import Actor
from tenants.tenancy.items import TenantItem
from tickets.purging.items import PurgeItem
from tickets.purging.keys import PURGES

ORDERED, RUNNING, CHECKED = "ordered", "running", "checked"
_TAKEN: Final = "Somebody else has taken this purge over."


@dataclass
class HoldingCount:
    """Hold how many items of a holding were counted at first, deleted, and found when it was looked through again."""

    counted: int = 0
    deleted: int = 0
    found_after: int = 0


Counts = dict[str, HoldingCount]


def new(tenant: TenantItem, *, state: str, by: Actor, reason: str) -> PurgeItem:
    """Return the note of a purge that is ordered or begins."""
    places = [tenant.placement or "pool", *([tenant.former_placement] if tenant.former_placement else [])]
    return PurgeItem(
        PURGES,
        tenant.tenant_id,
        tenant_id=tenant.tenant_id,
        slug=tenant.slug,
        title=tenant.name,
        state=state,
        reason=reason,
        by_id=by.id,
        by_email=by.email,
        by_origin=by.origin,
        asked_at=clock.stamp(),
        closes_at=tenant.closes_at or "",
        places=" ".join(dict.fromkeys(places)),
    )


def get(tenant_id: str) -> PurgeItem | None:
    """Return the purge of a tenant as it stands, None where none is ordered or has begun."""
    item: PurgeItem | None = platform.get_all([(PurgeItem, PURGES, tenant_id)], consistent=True)[0]
    return item


def all_purges() -> Iterator[PurgeItem]:
    """Return all purges that are ordered or have begun: one Query."""
    return (PurgeItem.from_raw_data(raw) for raw in platform.query_all(PurgeItem.table, PURGES))


def by_slug(slug: str) -> PurgeItem | None:
    """Return the purge of the tenant that has or had this slug: its other names may be gone already."""
    return next((item for item in all_purges() if item.slug == slug), None)


def take(item: PurgeItem, *, me: str) -> PurgeItem:
    """Become who carries it out, in place of whoever did; that one's next note is refused."""
    transaction = Transaction()
    transaction.update(item, [PurgeItem.holder.set(me)], condition=PurgeItem.state == item.state)
    _send(transaction)
    item.holder = me
    return item


def note(item: PurgeItem, **values: Any) -> None:
    """Write these attributes of a purge that is ours still. Raises Conflict where it is not."""
    transaction = Transaction()
    actions = [getattr(PurgeItem, name).set(value) for name, value in values.items()]
    transaction.update(item, actions, condition=PurgeItem.holder == item.holder)
    _send(transaction)
    for name, value in values.items():
        setattr(item, name, value)


def end(transaction: Transaction, item: PurgeItem) -> None:
    """Add to the transaction that the purge is over; it is refused where somebody else has taken it over."""
    transaction.delete(item, condition=PurgeItem.holder == item.holder)


def counts_of(item: PurgeItem) -> Counts:
    """Read the counts of a purge."""
    return {name: HoldingCount(**values) for name, values in json.loads(item.counts).items()}


def written(counts: Counts) -> str:
    """Return counts as they are stored."""
    return json.dumps({name: asdict(count) for name, count in counts.items()})


def asked_by(item: PurgeItem) -> Actor:
    """Return who asked for a purge."""
    return Actor(item.by_id, item.by_email, item.by_origin)


def _send(transaction: Transaction) -> None:
    try:
        platform.transact(transaction)
    except TransactionRefused as refused:
        raise Conflict(_TAKEN) from refused
