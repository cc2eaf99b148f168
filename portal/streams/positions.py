"""Store up to where each shard of a stream is applied, and which processes follow it: pollers or a Lambda function.

A position is a fact: every record of the shard up to it has been applied, skipped or dead-lettered. It only grows, and
it is true whoever wrote it. So what is kept to refuse a second delivery of records below it may go, and a rebuild may
wait for it; no clock is asked.

A finished shard leaves the partition of the unfinished ones for another one. That it is finished is a fact too, so
whoever has read it to its end may write it; and it is written before the other item goes.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable
from typing import Final

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from portal import clock
from portal.errors import ConditionFailed
from portal.streams import shards
from portal.streams.batch import SEQUENCE_DIGITS, Batch, BatchResult, padded
from portal.streams.stored import (
    FinishedShardItem,
    FollowedStreamItem,
    HeartbeatItem,
    ShardItem,
    finished_key,
    keys_of_stream,
    pollers_key,
)
from portal.streams.worker import WORKER

END: Final = "9" * SEQUENCE_DIGITS  # the position of a shard that has left the stream
KEPT_SECONDS: Final = 3 * 86400  # of a silent poller


def read(stream_arn: str, shard_id: str) -> str:
    """Return the padded sequence number up to which the shard is applied: "" for one of which nobody has said anything,
    END for one that has left the stream and is forgotten.

    One consistent BatchGetItem where it is stored, else two and a GetShardIterator. Raises Throttled, Unavailable.
    """
    # A shard that is being finished moves from one item to another: whoever saw neither sees it the second time.
    stored = _stored(stream_arn, shard_id) or _stored(stream_arn, shard_id)
    return stored or (END if shards.has_left(stream_arn, shard_id) else "")


def _stored(stream_arn: str, shard_id: str) -> str:
    wanted = [(ShardItem, stream_arn, shard_id), (FinishedShardItem, finished_key(stream_arn), shard_id)]
    return max(item.position or "" if item else "" for item in WORKER.get_all(wanted, consistent=True))


def advance_behind(batch: Batch, result: BatchResult) -> None:
    """Write that the records of the batch before its first deferred one are applied; for a Lambda function."""
    if last := result.last_applied(batch.records):
        advance(batch.stream_arn, batch.shard_id, last.checkpoint, applied_until=last.created_at)


def advance(stream_arn: str, shard_id: str, sequence: str, *, applied_until: str = "") -> None:
    """Write that all records of the shard up to this one are applied; for a host that does not list the shards.

    `sequence` is as the engine wrote it. `applied_until` is when that record was made, by the service's clock. Nothing
    is written where the position is already further.
    """
    position = padded(sequence)
    actions: list[Action] = [
        ShardItem.position.set(position),
        ShardItem.checkpoint.set(sequence),
        # A poller that reads the shard later finds an item as it knows them.
        *(a.set(a | "") for a in (ShardItem.parent, ShardItem.owner, ShardItem.gap_at)),
        *([ShardItem.applied_until.set(applied_until)] if applied_until else []),
    ]
    behind = ShardItem.position.does_not_exist() | (ShardItem.position < position)
    try:
        WORKER.update(ShardItem(stream_arn, shard_id), actions, condition=behind)
    except ConditionFailed:
        return


# --- by pollers ---


def unfinished(stream_arn: str) -> list[ShardItem]:
    """Return all unfinished shards of a stream, read consistently."""
    return list(WORKER.query_all(ShardItem, stream_arn, consistent=True))


def add(stream_arn: str, shard_id: str, *, parent: str, applied_until: str = "") -> None:
    """Make the item of a shard that nobody has read, if there is none."""
    shard = ShardItem(stream_arn, shard_id, parent=parent, applied_until=applied_until)
    stored = [a for a in ShardItem.get_attributes().values() if not (a.is_hash_key or a.is_range_key or a.null)]
    actions: list[Action] = [a.set(getattr(shard, str(a.attr_name))) for a in stored]
    try:
        WORKER.update(shard, actions, condition=ShardItem.shard.does_not_exist())
    except ConditionFailed:
        return


def save(shard: ShardItem, *, owner: str, position: str, checkpoint: str, applied_until: str) -> None:
    """Write up to where a listed shard is applied. Nothing is written where the position is already further, or the
    shard is finished."""
    actions: list[Action] = [ShardItem.owner.set(owner)]
    actions += [ShardItem.applied_until.set(applied_until)] if applied_until else []
    condition: Condition = ShardItem.shard.exists()
    if position:
        actions += [ShardItem.position.set(position), ShardItem.checkpoint.set(checkpoint)]
        condition &= ShardItem.position.does_not_exist() | (ShardItem.position <= position)
    _change_if(shard, actions, condition)


def note_gap(shard: ShardItem) -> None:
    """Write that records were lost, and that reading goes on at the oldest one."""
    _change_if(shard, [ShardItem.gap_at.set(clock.stamp())], ShardItem.shard.exists())


def finish(shard: ShardItem, *, position: str, lost: bool = False) -> None:
    """Write that a closed shard was read to its end, or with `lost` that it can no longer be."""
    gap_at = clock.stamp() if lost else shard.gap_at
    WORKER.put(FinishedShardItem(finished_key(shard.stream), shard.shard, position=position, gap_at=gap_at))
    WORKER.delete(shard)


def finished_among(stream_arn: str, shard_ids: Iterable[str]) -> dict[str, FinishedShardItem]:
    """Return those of these shards that are finished, read consistently, by shard."""
    wanted = [(FinishedShardItem, finished_key(stream_arn), shard_id) for shard_id in shard_ids]
    return {item.shard: item for item in WORKER.get_all(wanted, consistent=True) if item is not None}


def forget(stream_arn: str, *, listed: Container[str]) -> None:
    """Remove what is kept of finished shards that have left the stream; `listed` are those that have not.

    The stream is asked for each of them once more, because `read` asks it as well where it finds no position.
    """
    for item in WORKER.query_all(FinishedShardItem, finished_key(stream_arn)):
        if item.shard not in listed and shards.has_left(stream_arn, item.shard):
            WORKER.delete(item)


def heartbeats(stream_arn: str) -> dict[str, int]:
    """Return the heartbeats of all pollers of a stream, read consistently."""
    found = WORKER.query_all(HeartbeatItem, pollers_key(stream_arn), consistent=True)
    return {one.shard: int(one.counter) for one in found}


def give_heartbeat(stream_arn: str, *, me: str) -> None:
    """Write a sign of life."""
    expires_at = HeartbeatItem.expires_at.set(int(time.time()) + KEPT_SECONDS)
    counter: Action = HeartbeatItem.counter.add(1)
    WORKER.update(HeartbeatItem(pollers_key(stream_arn), me), [counter, expires_at])


def leave(stream_arn: str, *, me: str) -> None:
    """Take back one's heartbeat, so that nobody waits for it."""
    WORKER.delete(HeartbeatItem(pollers_key(stream_arn), me))


def _change_if(shard: ShardItem, actions: list[Action], condition: Condition) -> None:
    try:
        WORKER.update(shard, actions, condition=condition)
    except ConditionFailed:
        return


# --- streams that are followed no more ---


def note_stream(name: str, stream_arn: str) -> None:
    """Note under a name of a tenant's own table that the stream with this ARN is followed."""
    WORKER.put(FollowedStreamItem(name, stream_arn))


def forget_stream(name: str, stream_arn: str) -> None:
    """Remove what is kept of one stream of a tenant's own table that was followed under this name, once it is no more.

    A poller that has not heard of that yet writes some of it again, so each one forgets where it ends.
    """
    for partition in keys_of_stream(stream_arn):
        for item in list(WORKER.query_all(FollowedStreamItem, partition, consistent=True)):
            WORKER.delete(item)
    WORKER.delete(FollowedStreamItem(name, stream_arn))
