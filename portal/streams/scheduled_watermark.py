"""Write the watermark for a host that is called only when something happens, such as a Lambda function.

Such a host knows the records that it has applied, and not whether there are others. So a scheduled call reads on behind
the position of each shard. It passes over records that do not concern the handler, moves the position behind them, and
stops at the first one that does: that one is still to come. A closed shard without one is finished.

A position says that everything up to it is applied or skipped, so this may run beside the host, beside pollers and
beside itself.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import takewhile
from typing import Final

from portal.dynamo.client import fan_out
from portal.errors import Unavailable
from portal.schema.registry import Table
from portal.streams import positions, shards, watermark
from portal.streams.batch import Record
from portal.streams.poller import LEASE_SECONDS
from portal.streams.shard_lister import ShardLister
from portal.streams.stored import ShardItem

log = logging.getLogger("pooldesk.stream")

READ_SECONDS: Final = 30.0  # of one call, for all shards together; the next call goes on where this one ended
_AWAY: Final = "Up to when shard %s is applied could not be read: %s"

Concerns = Callable[[Record], bool]  # tells whether the handler does anything about a record


def write(table: Table, *, concerns: Concerns, if_lost: str = "", read_seconds: float = READ_SECONDS) -> str:
    """Write up to when everything in the table's stream is applied, and return it; "" where that is not known.

    `if_lost` says in the log what is to be done where records are lost.

    Costs one DescribeStream per hundred shards, and at least one GetShardIterator and GetRecords per unfinished shard.
    Raises Throttled, Unavailable.
    """
    stream_arn = shards.arn(table)
    lister = _lister(stream_arn, if_lost)
    stored = positions.unfinished(stream_arn)
    if lister.list_if_due(stored):
        stored = positions.unfinished(stream_arn)
    if lister.listing is None:
        return ""
    listed, deadline = {shard.id for shard in lister.listing.shards}, time.monotonic() + read_seconds
    unfinished = [shard for shard in stored if shard.shard in listed - lister.finished]
    ended = fan_out([partial(_passed_to_its_end, shard, concerns, deadline) for shard in unfinished])
    lister.finished |= {shard.shard for shard, at_end in zip(unfinished, ended, strict=True) if at_end}
    as_of = lister.complete_until(stored)
    if as_of:
        watermark.write(table, as_of)
    return as_of


@lru_cache(maxsize=256)  # streams: that of the table of all, and those of tenants' own
def _lister(stream_arn: str, if_lost: str) -> ShardLister:
    return ShardLister(stream_arn, lease_seconds=LEASE_SECONDS, if_lost=if_lost)


def _passed_to_its_end(shard: ShardItem, concerns: Concerns, deadline: float) -> bool:
    """Pass over what concerns nobody; what is stored of it then says until when it is applied. Return whether it is
    finished."""
    try:
        last, at_end = _pass_over(shard, concerns, deadline)
        if at_end:
            positions.finish(shard, position=last.sequence if last else shard.position or "")
        elif last:
            positions.advance(shard.stream, shard.shard, last.checkpoint, applied_until=last.created_at)
    except (Unavailable, shards.IteratorExpired, shards.Trimmed) as error:
        log.warning(_AWAY, shard.shard, error.message)
        return False
    return at_end


def _pass_over(shard: ShardItem, concerns: Concerns, deadline: float) -> tuple[Record | None, bool]:
    """Return the last record that was passed over, and whether a closed shard has no others."""
    last: Record | None = None
    iterator = _iterator(shard)
    while True:
        answer = shards.read(iterator)
        passed = list(takewhile(lambda record: not concerns(record), answer.records))
        last = passed[-1] if passed else last
        if len(passed) < len(answer.records):
            _reach(shard, answer.records[len(passed)].created_at)
            return last, False
        if answer.next is None:
            return last, True
        _reach(shard, last.created_at if answer.records and last else answer.as_of)
        if not answer.records or time.monotonic() > deadline:
            return last, False
        iterator = answer.next


def _iterator(shard: ShardItem) -> str:
    try:
        return shards.iterator(shard.stream, shard.shard, after=shard.checkpoint or "")
    except shards.Trimmed:  # of a quiet shard: only old news is gone
        return shards.iterator(shard.stream, shard.shard)


def _reach(shard: ShardItem, moment: str) -> None:
    """Note in the shard as it was read that every change in it before the moment is applied."""
    shard.applied_until = max(shard.applied_until or "", moment)
