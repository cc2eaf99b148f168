"""Tell by how much the due index is behind, for operators: from the index itself, so also while no worker runs."""

from __future__ import annotations

from functools import partial

from delivery.timers import stored
from delivery.timers.stored import SHARDS, DueRow
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM


def seconds() -> float:
    """Return for how many seconds the row of the current source that is due longest has waited; 0 where none is due.

    Costs a Query of one row for each shard. Raises Unavailable.
    """
    now = clock.stamp()
    between = (stored.FIRST, stored.behind(stored.minute(now)))
    pages = fan_out([partial(PLATFORM.query, DueRow, stored.shard(n), between=between, limit=1) for n in range(SHARDS)])
    since = min((stored.wakes_parts(row.wakes)[2] for page in pages for row in page.items), default=now)
    return max((clock.now() - clock.parse(since)).total_seconds(), 0)
