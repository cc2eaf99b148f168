"""Find what nobody sent, over the sparse index: what the stream missed, what is to be tried again, what SQS lost.

A row is in the index while anything of it is open, by the moment at which somebody has to look at it. What a tenant's
limits leave behind is put off to about the time when its turn comes, so that a long backlog of one tenant is not looked
at again and again, and does not stand before the others.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Final

from delivery.dispatching import outbox_reader
from delivery.dispatching.dispatcher import Dispatcher
from delivery.dispatching.outbox_reader import RowKey
from delivery.dispatching.sender import Offer
from delivery.outbox import keys, member_state, progress
from delivery.outbox.items import OutboxItem
from delivery.queues import limits
from delivery.queues.limits import LimitsOf
from portal import clock
from portal.dynamo.client import fan_out

GRACE: Final = timedelta(seconds=10)  # in which the stream sends a row
ROWS: Final = 100  # of each shard of the index, in one sweep
PUT_OFF: Final = timedelta(seconds=60)  # of what waits in the sender, and is in no list if the sender dies


class Sweeper:
    """Look at what is due, a part at a time. One sweeper at a time is enough; two send a message twice now and then."""

    def __init__(self, dispatcher: Dispatcher, *, limits_of: LimitsOf = limits.of_all) -> None:
        self._dispatcher, self._limits_of = dispatcher, limits_of
        self._turns: dict[str, float] = {}  # seconds since the epoch: when the last row that was put off comes

    def sweep(self, *, grace: timedelta = GRACE) -> dict[str, int]:
        """Send what has been due for `grace`, up to ROWS of each shard. Returns how many rows were due, and how many
        messages were sent, wait, or are left.

        Costs a Query for each shard, and a read of each row that is due. Raises Unavailable.
        """
        until = clock.stamp(clock.now() - grace)
        shards = fan_out([partial(outbox_reader.due, shard, until=until, limit=ROWS) for shard in range(keys.SHARDS)])
        found = [key for shard in shards for key in shard]
        if not found:
            return dict.fromkeys(("due", "sent", "waiting", "left"), 0)
        rows = outbox_reader.stored(found)
        ready, early = list[OutboxItem](), list[OutboxItem]()
        for row in rows.values():
            if row.pending:
                (ready if member_state.due_members(row) else early).append(row)
        fan_out([partial(progress.settle, row) for row in early])
        taken = self._dispatcher.send(ready)
        self._put_off(taken.waiting, taken.left)
        return {
            "due": len(found),
            "sent": len(taken.sent),
            "waiting": len(taken.waiting),
            "left": len(taken.left),
        }

    def _put_off(self, waiting: Iterable[Offer], left: Iterable[Offer]) -> None:
        moments: dict[RowKey, tuple[OutboxItem, str]] = {}
        for offer in left:
            key = outbox_reader.key_of(offer.row)
            if key not in moments:
                moments[key] = offer.row, self._turn(offer.message.tenant_id)
        soon = clock.stamp(clock.now() + PUT_OFF)
        for offer in waiting:
            moments.setdefault(outbox_reader.key_of(offer.row), (offer.row, soon))
        fan_out([partial(progress.put_off, row, at) for row, at in moments.values()])

    def _turn(self, tenant_id: str) -> str:
        """Return when another row of this tenant may come: one after the other, as fast as its limits let them go."""
        now = time.time()
        last = max(self._turns.get(tenant_id, 0.0), now)
        self._turns[tenant_id] = last + 1 / self._limits_of(tenant_id).per_second
        return clock.stamp(clock.now() + timedelta(seconds=self._turns[tenant_id] - now))


def is_empty() -> bool:
    """Tell whether nothing is pending, whenever it is due."""
    far = clock.stamp(clock.now() + timedelta(days=365))
    found = fan_out([partial(outbox_reader.due, shard, until=far, limit=1) for shard in range(keys.SHARDS)])
    return not any(found)
