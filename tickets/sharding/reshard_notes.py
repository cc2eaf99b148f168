"""Note, as the stream worker, who carries a resharding out and how far it is, so that anybody can go on with it.

A holder gives signs of life by a counter. Who wants to take over watches it by a clock of its own, as with the leases
of stream shards: two who hold it for a moment do no harm, because each step holds only in the layout that was seen.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from portal import clock
from portal.errors import ConditionFailed, Conflict
from portal.streams import worker
from tenants.tenancy.tables import DIRECTORY
from tickets.sharding import keys
from tickets.sharding.items import ReshardItem

RUNNING, STOPPING, STOPPED, DONE = "running", "stopping", "stopped", "done"
UNFINISHED: Final = (RUNNING, STOPPING)
FIRST_PHASE: Final = "widening"
LEASE_SECONDS: Final = 15.0


def begun(*, tenant: Any, to_shards: int, reason: str, by: str, holder: str) -> tuple[ReshardItem, list[Any], Any]:
    """Return the item, the actions and the condition of the update that begins a resharding of a tenant as stored.

    It is refused while another one is running.
    """
    values = {
        "tenant_id": tenant.tenant_id, "slug": tenant.slug, "title": tenant.name, "from_shards": int(tenant.shards),
        "to_shards": to_shards, "reason": reason, "by": by, "state": RUNNING, "phase": FIRST_PHASE, "place": "",
        "moved": 0, "holder": holder, "counter": 0, "begun_at": clock.stamp(), "ended_at": "",
    }  # fmt: skip
    actions = [getattr(ReshardItem, name).set(value) for name, value in values.items()]
    free = ReshardItem.state.does_not_exist() | (ReshardItem.state == STOPPED) | (ReshardItem.state == DONE)
    return ReshardItem(keys.RESHARDINGS, tenant.tenant_id), actions, free


def all_last() -> list[ReshardItem]:
    """Return the last resharding of each tenant that had one lately: one consistent Query."""
    return list(worker.items(ReshardItem, keys.RESHARDINGS, consistent=True))


def last(tenant_id: str) -> ReshardItem | None:
    """Return the tenant's last resharding as it is now, None where it never had one."""
    key = {DIRECTORY.hash: {"S": keys.RESHARDINGS}, str(DIRECTORY.range): {"S": tenant_id}}
    answer = worker.dispatch("GetItem", {"TableName": DIRECTORY.full_name, "Key": key, "ConsistentRead": True})
    return ReshardItem.from_raw_data(answer["Item"]) if answer.get("Item") else None


def take(item: ReshardItem, *, me: str) -> ReshardItem | None:
    """Become the holder of what stands as it was seen, and return it; None where somebody was faster."""
    seen = (ReshardItem.holder == item.holder) & (ReshardItem.counter == int(item.counter))
    return _changed(item, [ReshardItem.holder.set(me)], seen & (ReshardItem.begun_at == item.begun_at), me)


def note(item: ReshardItem, *, me: str, **values: Any) -> ReshardItem:
    """Give a sign of life, and write how far it is; return the item as it is then. Raises Conflict for no holder."""
    actions = [getattr(ReshardItem, name).set(value) for name, value in values.items()]
    noted = _changed(item, actions, (ReshardItem.holder == me) & (ReshardItem.begun_at == item.begun_at), me)
    if noted is None:
        raise Conflict("Somebody else carries this resharding out.")
    return noted


def end(item: ReshardItem, *, me: str, state: str) -> ReshardItem:
    """Keep it among those that have ended, and let go of it."""
    ended_at = clock.stamp()
    kept = ReshardItem.from_raw_data(item.serialize())
    kept.kind, kept.name = keys.history(item.tenant_id), item.begun_at
    kept.state, kept.ended_at, kept.holder, kept.place = state, ended_at, "", ""
    worker.put(kept)
    return note(item, me=me, state=state, ended_at=ended_at, holder="", place="")


def forget(item: ReshardItem) -> None:
    """Remove what has ended from the list of the last ones; the tenant's history keeps it."""
    worker.remove(item, condition=(ReshardItem.begun_at == item.begun_at) & (ReshardItem.state == item.state))


def _changed(item: ReshardItem, actions: list[Any], condition: Any, me: str) -> ReshardItem | None:
    counter = ReshardItem.counter.set(ReshardItem.counter + 1)
    try:
        return ReshardItem.from_raw_data(worker.change(item, [*actions, counter], condition=condition))
    except ConditionFailed as failed:
        # A lost answer is sent again, and the second time it meets what the first has written.
        now = ReshardItem.from_raw_data(failed.item) if failed.item else None
        return now if now is not None and now.holder == me and now.begun_at == item.begun_at else None


class Held(Protocol):
    """Something that is carried out by one at a time: a resharding, or a move."""

    @property
    def name(self) -> Any: ...
    @property
    def holder(self) -> Any: ...
    @property
    def counter(self) -> Any: ...


class HolderWatch:
    """Tells which reshardings nobody carries out, by the monotonic clock of whoever looks."""

    def __init__(self, *, lease_seconds: float = LEASE_SECONDS, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds, self._now = lease_seconds, now
        self._seen: dict[str, tuple[tuple[str, int], float]] = {}

    def is_free(self, item: Held) -> bool:
        """Tell whether it has no holder, or one that gave no sign of life for so long as this looked on."""
        sign = (item.holder, int(item.counter))
        known = self._seen.get(item.name)
        if known is None or known[0] != sign:
            known = self._seen[item.name] = (sign, self._now())
        return not item.holder or self._now() - known[1] >= self._seconds
