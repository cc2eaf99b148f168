"""Note, as the stream worker, who carries a resharding out and how far it is.

Two who hold the lease for a moment do no harm, because each step holds only in the layout that was seen.
"""

from __future__ import annotations

from typing import Any, Final

from portal import clock
from portal.streams import worker
from tickets.jobs.job_notes import JobNotes
from tickets.sharding import keys
from tickets.sharding.items import ReshardItem

RUNNING, STOPPING, STOPPED, DONE = "running", "stopping", "stopped", "done"
UNFINISHED: Final = (RUNNING, STOPPING)
FIRST_PHASE: Final = "widening"

RESHARDINGS: Final = JobNotes(ReshardItem, keys.RESHARDINGS, "worker")


def begun(*, tenant: Any, to_shards: int, reason: str, by: str, holder: str) -> tuple[ReshardItem, list[Any], Any]:
    """Return the item, the actions and the condition of the update that begins a resharding of a tenant as stored.

    It is refused while another one is running.
    """
    values = {
        "tenant_id": tenant.tenant_id, "slug": tenant.slug, "title": tenant.name, "from_shards": int(tenant.shards),
        "to_shards": to_shards, "reason": reason, "by": by, "state": RUNNING, "phase": FIRST_PHASE, "place": "",
        "moved": 0, "holder": holder, "counter": 0, "begun_at": clock.stamp(), "ended_at": "",
    }  # fmt: skip
    free = ReshardItem.state.does_not_exist() | (ReshardItem.state == STOPPED) | (ReshardItem.state == DONE)
    return RESHARDINGS.of(tenant.tenant_id), RESHARDINGS.actions(**values), free


def end(item: ReshardItem, *, me: str, state: str) -> ReshardItem:
    """Keep it among those that have ended, and let go of it."""
    ended_at = clock.stamp()
    kept = ReshardItem.from_raw_data(item.serialize())
    kept.kind, kept.name = keys.history(item.tenant_id), item.begun_at
    kept.state, kept.ended_at, kept.holder, kept.place = state, ended_at, "", ""
    worker.put(kept)
    return RESHARDINGS.note(item, me=me, state=state, ended_at=ended_at, holder="", place="")


def forget(item: ReshardItem) -> None:
    """Remove what has ended from the list of the last ones; the tenant's history keeps it."""
    worker.remove(item, condition=(ReshardItem.begun_at == item.begun_at) & (ReshardItem.state == item.state))
