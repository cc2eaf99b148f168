"""Tell by how much the due index is behind, for operators: from the index itself, so also while no worker runs."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from delivery.timers import stored
from delivery.timers.stored import SHARDS, DueRow
from portal import clock
from portal.dynamo.client import fan_out
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store
from portal.errors import Unavailable
from portal.streams import stream_source
from portal.streams.stream_source import POOLED

LATE_SECONDS: Final = 60  # a Lambda function looks once a minute, and ahead


def worst(store: Store = PLATFORM) -> float:
    """Return for how many seconds the row that is due longest has waited, in the tables of all and in tenants' own; 0
    where none is due.

    Costs a Query of one row for each shard of each placement. Raises Unavailable.
    """
    found = 0.0
    for source in (POOLED, *stream_source.placed()):
        try:
            with source.entered():
                found = max(found, _seconds(store))
        except Unavailable:  # of one tenant's site the others do not hear
            if source is POOLED:
                raise
    return found


def summary() -> dict[str, Any]:
    """Return the same of the tables of all, for `/readyz` and `check_health`, and whether it is too much.

    Costs a Query of one row for each shard. Raises Unavailable.
    """
    behind = round(_seconds(PLATFORM))
    return {"behind": behind, "late": behind > LATE_SECONDS}


def _seconds(store: Store) -> float:
    now = clock.stamp()
    between = (stored.FIRST, stored.behind(stored.minute(now)))
    pages = fan_out([partial(store.query, DueRow, stored.shard(n), between=between, limit=1) for n in range(SHARDS)])
    since = min((stored.wakes_parts(row.wakes)[2] for page in pages for row in page.items), default=now)
    return max((clock.now() - clock.parse(since)).total_seconds(), 0)
