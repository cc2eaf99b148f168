"""Note who carries a move out and how far it is, so that anybody can go on with it.

Two who hold the lease for a moment do no harm: what they write at the destination passes a gate that only the last one
has the key to, and the switch demands what that one has seen.
"""

from __future__ import annotations

from typing import Final

from portal import clock
from portal.dynamo import platform
from portal.dynamo.repository import Transaction
from tenants.tenancy.stored import DIRECTORY
from tickets.jobs.job_notes import JobNotes
from tickets.moving import keys
from tickets.moving.items import MoveItem

RUNNING, CANCELLING, CANCELLED = "running", "cancelling", "cancelled"
KEPT, DISCARDING, DONE = "kept", "discarding", "done"
UNFINISHED: Final = (RUNNING, CANCELLING, DISCARDING)  # somebody has to carry it on
ENDED: Final = (CANCELLED, DONE)
FIRST_PHASE: Final = "preparing"
FIRST_OF_DISCARD: Final = "comparing"

MOVES: Final = JobNotes(MoveItem, keys.MOVES, "platform")


def history(tenant_id: str, *, limit: int) -> list[MoveItem]:
    """Return the moves of a tenant that were followed by others, newest first."""
    page = platform.query(DIRECTORY, keys.history(tenant_id), descending=True, limit=limit)
    return [MoveItem.from_raw_data(raw) for raw in page.items]


def keep(transaction: Transaction, item: MoveItem) -> None:
    """Add to the transaction that a move which another one follows stays in the tenant's history."""
    kept = MoveItem.from_raw_data(item.serialize())
    kept.kind, kept.name = keys.history(item.tenant_id), item.begun_at
    kept.ended_at = kept.ended_at or clock.stamp()
    transaction.put(kept)
