"""Carry a resharding out, step by step, so that lists are whole at every moment and anybody can go on after a kill.

    widening    lists read as many partitions as there were or will be, whichever are more
    switching   writes go to as many as there will be
    moving      each ticket that stands elsewhere is moved to its place
    narrowing   lists read no more than there are, once nothing stands beyond
    sweeping    what somebody still wrote beyond is moved

After each change of the layout the mover waits until nobody can be using an older one. A step that was begun and not
finished is done again from the layout as it is stored; each is right however often it is done.
"""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any, Final

from portal.dynamo.placement import Placement
from portal.errors import ConditionFailed, Conflict, NotFound, Throttled
from portal.isolation import guard
from portal.schema import keys
from portal.streams import stream_source
from portal.streams.worker import WORKER
from tenants.tenancy.placements import CONTEXT_SECONDS, ShardLayout
from tenants.tenancy.stored import TenantItem
from tickets.jobs.leased_job import EndAsked, LeasedJob
from tickets.sharding import reshard_requests, shard_rows
from tickets.sharding.shard_rows import Placed, Shelf
from tickets.sharding.stored import ReshardItem
from tickets.ticket.fields import Status


def stored(tenant_id: str) -> TenantItem:
    """Read the tenant consistently. Raises NotFound, Unavailable."""
    with guard.acting_for(tenant_id):
        found = WORKER.get(TenantItem, keys.tenant(tenant_id), consistent=True)
    if found is None:
        raise NotFound("There is no such tenant.")
    return found


def read(tenant_id: str) -> ShardLayout:
    """Return the layout as it is now: one consistent read. Raises NotFound, Unavailable."""
    return ShardLayout.of(stored(tenant_id))


def change(tenant_id: str, seen: ShardLayout, **to: int) -> ShardLayout:
    """Change `readers`, `writers` or `moving_to` of the layout that was seen, and return it as it is then.

    Costs nothing where that changes nothing. Raises Conflict where somebody else has changed it since.
    """
    wanted = replace(seen, **to)
    if wanted == seen:
        return seen
    wanted = replace(wanted, epoch=seen.epoch + 1)
    actions: list[Any] = [
        TenantItem.shards.set(wanted.readers),
        TenantItem.write_shards.set(wanted.writers),
        TenantItem.shard_epoch.set(wanted.epoch),
        TenantItem.moving_to.set(wanted.moving_to) if wanted.moving_to else TenantItem.moving_to.remove(),
    ]
    try:
        with guard.acting_for(tenant_id):
            WORKER.update(TenantItem(tenant_id), actions, condition=TenantItem.shard_epoch == seen.epoch)
    except ConditionFailed as failed:
        # A lost answer is sent again, and the second time it meets what the first has written.
        now = failed.stored(TenantItem)
        if now is None or ShardLayout.of(now) != wanted:
            raise Conflict("Somebody else has changed this tenant's shards.") from failed
    return wanted


# --- the job ---


# What began by an older layout may take as long again: a request with all its attempts.
SETTLE_SECONDS: Final = 2 * CONTEXT_SECONDS
RATE: Final = 100.0  # tickets a second: some 600 write units, half of them in the partition that they leave
PAGE: Final = 100  # tickets that are read at once, and moved before the progress is written
_LOOKS: Final = 50  # at the partitions that must be empty: an index lags behind its table by a moment
_LOOK_SECONDS: Final = 0.1
_PHASES: Final = ("widening", "switching", "moving", "narrowing", "sweeping")
_STOPPABLE: Final = ("widening", "switching", "moving")


class Mover(LeasedJob[ReshardItem]):
    """Carries one resharding out. `rate` is in tickets a second. `advance` gets the number of tickets looked at."""

    kind = reshard_requests.RESHARDINGS

    def __init__(
        self, item: ReshardItem, *, rate: float = RATE, settle_seconds: float | None = None, **how: Any
    ) -> None:
        super().__init__(item, **how)
        self._rate = rate
        self._settle_seconds = SETTLE_SECONDS if settle_seconds is None else settle_seconds

    @property
    def _tenant_id(self) -> str:
        return self.item.tenant_id

    @property
    def _to(self) -> int:
        return int(self.item.to_shards)

    def _is_to_end(self) -> bool:
        return self.item.state == reshard_requests.STOPPING and self.item.phase in _STOPPABLE

    def _carry_out(self) -> None:
        # Whoever moves the desk elsewhere waits until this has ended, and this while that goes on.
        where = Placement.parse(stored(self._tenant_id).placement)
        state = reshard_requests.DONE
        with stream_source.of(self._tenant_id, where).entered():
            try:
                self._heed()
                self._go_through(_PHASES, place="")
            except EndAsked:
                change(self._tenant_id, read(self._tenant_id), moving_to=0)
                state = reshard_requests.STOPPED
        self.item = reshard_requests.end(self.item, me=self.me, state=state)

    # --- steps ---

    def _widening(self) -> None:
        layout = read(self._tenant_id)
        readers = max(layout.readers, layout.writers, self._to)
        change(self._tenant_id, layout, readers=readers, moving_to=self._to)
        self._rest(self._settle_seconds)

    def _switching(self) -> None:
        change(self._tenant_id, read(self._tenant_id), writers=self._to)
        self._rest(self._settle_seconds)

    def _moving(self) -> None:
        layout = read(self._tenant_id)
        shelves = [Shelf(status, shard) for status in Status for shard in range(layout.readers)]
        begin, after = self._place(shelves)
        # By now everybody writes to the new places, so who is empty stays empty, or gets what belongs there.
        occupied = shard_rows.occupied(self._tenant_id, shelves[begin:])
        for number, shelf in enumerate(shelves[begin:], start=begin):
            while shelf in occupied:
                found, rest = self._empty(shelf, after)
                after = rest
                self._note(place=_written(number, rest))
                self._advance(found)
                if rest is None:
                    break

    def _narrowing(self) -> None:
        layout = read(self._tenant_id)
        for _ in range(_LOOKS):
            if not self._look_beyond(layout.readers):
                change(self._tenant_id, layout, readers=self._to, moving_to=0)
                self._rest(self._settle_seconds)
                return
            self._rest(_LOOK_SECONDS)
        raise Throttled("Tickets keep coming into partitions that are to be empty.")

    def _sweeping(self) -> None:
        for _ in range(_LOOKS):
            if not self._look_beyond(max(int(self.item.from_shards), self._to)):
                return
            self._rest(_LOOK_SECONDS)
        raise Throttled("Tickets keep coming into partitions that lists no longer read.")

    # --- what they are made of ---

    def _look_beyond(self, shards: int) -> int:
        """Move whatever stands in the partitions from `to` on. Return how many tickets that were."""
        met = 0
        beyond = [Shelf(status, shard) for status in Status for shard in range(self._to, shards)]
        for shelf in shard_rows.occupied(self._tenant_id, beyond):
            after: Placed | None = None
            while True:
                found, after = self._empty(shelf, after)
                met += found
                if after is None:
                    break
        return met

    def _empty(self, shelf: Shelf, after: Placed | None) -> tuple[int, Placed | None]:
        """Move what does not belong into this partition, of one page. Return the page's length and where to go on."""
        rows, rest = shard_rows.look(self._tenant_id, shelf, after=after, limit=PAGE)
        todo = shard_rows.misplaced(rows, to=self._to)
        began, moved = time.monotonic(), 0
        for start in range(0, len(todo), shard_rows.AT_ONCE):
            some = todo[start : start + shard_rows.AT_ONCE]
            moved += shard_rows.move(self._tenant_id, some, to=self._to)
            self._rest(began + (start + len(some)) / self._rate - time.monotonic())
        if moved:
            self._note(moved=int(self.item.moved) + moved)
        return len(rows), rest

    def _place(self, shelves: list[Shelf]) -> tuple[int, Placed | None]:
        """Return the partition that a former holder has come to, and the ticket behind which it would go on."""
        if not self.item.place:
            return 0, None
        number, *after = json.loads(self.item.place)
        return number, Placed(after[0], after[1], shelves[number]) if after else None


def _written(number: int, rest: Placed | None) -> str:
    """Say in JSON how far it is: the partition to go on with, and the ticket in it."""
    return json.dumps([number, rest.number, rest.updated_at] if rest else [number + 1])
