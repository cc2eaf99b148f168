"""Say up to which moment everything in a table's stream is applied: for people who look at what was made from it.

The poller that lists the shards writes it every few seconds (`portal.streams.poller`), a Lambda function every minute
(`portal.streams.scheduled_watermark`). It stands still while nobody does.
It is told by the service's clock, from what is stored about each shard; no clock of a poller's moves it. It is good for
a page and not for a repair: how soon a change can be read from a stream has no bound that anybody promises.

Every page reads it, so a process remembers it for a second.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.core.cache import cache
from pynamodb.expressions.update import Action

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store
from portal.errors import ConditionFailed
from portal.schema.registry import Table
from portal.streams import stream_source
from portal.streams.stored import WATERMARK, FinishedShardItem, ShardItem, WatermarkItem, finished_key
from portal.streams.worker import WORKER

CACHED_SECONDS: Final = 1
# After so long, what follows the stream is behind, or has stopped. A Lambda function writes once a minute, so this is
# two turns of it and half a minute.
LATE_SECONDS: Final = 150
# As long as people may take to notice that nothing follows the stream: without a watermark, a worker that has stopped
# looks like one that was never started.
KEPT_SECONDS: Final = 30 * 86400


@dataclass(frozen=True)
class Watermark:
    """All changes before `as_of`, by the service's clock, are applied; `written_at` is when that was known. In UTC."""

    as_of: datetime
    written_at: datetime


def write(table: Table, as_of: str) -> None:
    """Write up to when everything in the table's stream, that of the current source, is applied. It never goes back."""
    condition = WatermarkItem.as_of.does_not_exist() | (WatermarkItem.as_of <= as_of)
    actions: list[Action] = [
        WatermarkItem.as_of.set(as_of),
        WatermarkItem.written_at.set(clock.stamp()),
        WatermarkItem.expires_at.set(int(time.time()) + KEPT_SECONDS),
    ]
    try:
        WORKER.update(WatermarkItem(stream_source.current().name(table), WATERMARK), actions, condition=condition)
    except ConditionFailed:
        return  # another poller knew more


def read(table: Table, of: Store | None = None) -> Watermark | None:
    """Return the latest watermark, None where nobody keeps one: of the stream that brings the changes of a tenant,
    or of the current source. Costs a GetItem once a second and process.

    Raises Throttled, Unavailable.
    """
    with of.here() if of is not None else nullcontext():
        stream = stream_source.current().name(table)
    name = f"watermark:{table.full_name}:{stream}"
    known: Watermark | str | None = cache.get(name)
    if known is None:
        known = _read(stream) or "none"
        cache.set(name, known, CACHED_SECONDS)
    return None if isinstance(known, str) else known


def _read(stream: str) -> Watermark | None:
    item = PLATFORM.get(WatermarkItem, stream, sort=WATERMARK)
    if item is None or item.expires_at <= time.time():  # the database removes it some time later
        return None
    return Watermark(clock.parse(item.as_of), clock.parse(item.written_at))


def finished(stream_arn: str, shard_ids: Iterable[str]) -> set[str]:
    """Return those of these shards that are closed, read to their ends and applied, with nothing lost. A GetItem each.

    Once true it stays true. Raises Throttled, Unavailable.
    """
    partition = finished_key(stream_arn)
    items = {shard_id: PLATFORM.get(FinishedShardItem, partition, sort=shard_id) for shard_id in shard_ids}
    return {shard_id for shard_id, item in items.items() if item is not None and not item.gap_at}


def unfinished(stream_arn: str) -> list[ShardItem]:
    """Return who reads which shard of a stream, and how far: one Query of at most 1 MB, some thousand shards."""
    return PLATFORM.query(ShardItem, stream_arn).items
