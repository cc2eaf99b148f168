"""Keep what a purge has done so far, so that anybody can go on with it after a kill.

It stands in the directory, because all else of the tenant goes.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Final

from portal import clock
from portal.dynamo.repository import Transaction
from tenants.audit_trail.recording import Actor
from tenants.tenancy.stored import TenantItem
from tickets.jobs.job_notes import JobNotes
from tickets.purging import keys
from tickets.purging.items import PurgeItem

ORDERED, RUNNING, CHECKED = "ordered", "running", "checked"
UNFINISHED: Final = (ORDERED, RUNNING, CHECKED)

PURGES: Final = JobNotes(PurgeItem, keys.PURGES, "platform")


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
        keys.PURGES,
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


def by_slug(slug: str) -> PurgeItem | None:
    """Return the purge of the tenant that has or had this slug: its other names may be gone already."""
    return next((item for item in PURGES.all_last() if item.slug == slug), None)


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
