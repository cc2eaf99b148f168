"""Say up to where a shard is applied, whoever reads it: pollers or a Lambda function.

A position is a fact: every record of the shard up to it has been applied, skipped or dead-lettered. It only grows. So
what is kept to refuse a second delivery of records below it may go, and a rebuild may wait for it; no clock is asked.
"""

from __future__ import annotations

from typing import Final

from pynamodb.expressions.update import Action

from portal.dynamo.batches import batch_get
from portal.errors import ConditionFailed
from portal.streams import keys, shards, worker
from portal.streams.batch import SEQUENCE_DIGITS, Batch, BatchResult, padded
from portal.streams.items import FinishedShardItem, LeaseItem

END: Final = "9" * SEQUENCE_DIGITS  # the position of a shard that has left the stream


def read(stream_arn: str, shard_id: str) -> str:
    """Return the padded sequence number up to which the shard is applied: "" for one of which nobody has said anything,
    END for one that has left the stream and is forgotten.

    One consistent BatchGetItem where it is stored, else two and a GetShardIterator. Raises Throttled, Unavailable.
    """
    # A shard that is being finished moves from one item to another: whoever saw neither sees it the second time.
    stored = _stored(stream_arn, shard_id) or _stored(stream_arn, shard_id)
    return stored or (END if shards.has_left(stream_arn, shard_id) else "")


def _stored(stream_arn: str, shard_id: str) -> str:
    wanted = [(LeaseItem, stream_arn, shard_id), (FinishedShardItem, keys.finished(stream_arn), shard_id)]
    items = batch_get(worker.connection(), wanted, consistent=True)
    return max((item.position or "" for item in items if isinstance(item, LeaseItem | FinishedShardItem)), default="")


def advance_behind(batch: Batch, result: BatchResult) -> None:
    """Write that the records of the batch before its first deferred one are applied; for a host without leases."""
    if last := result.last_applied(batch.records):
        advance(batch.stream_arn, batch.shard_id, last.checkpoint, applied_until=last.created_at)


def advance(stream_arn: str, shard_id: str, sequence: str, *, applied_until: str = "") -> None:
    """Write that all records of the shard up to this one are applied; for a host without leases.

    `sequence` is as the engine wrote it. `applied_until` is when that record was made, by the service's clock. Nothing
    is written where the position is already further.
    """
    position = padded(sequence)
    actions: list[Action] = [
        LeaseItem.position.set(position),
        LeaseItem.checkpoint.set(sequence),
        # A poller that takes the shard later finds an item as it knows them.
        *(a.set(a | default) for a, default in _DEFAULTS),
    ]
    if applied_until:
        actions.append(LeaseItem.applied_until.set(applied_until))
    behind = LeaseItem.position.does_not_exist() | (LeaseItem.position < position)
    try:
        worker.change(LeaseItem(stream_arn, shard_id), actions, condition=behind)
    except ConditionFailed:
        return


_DEFAULTS = ((LeaseItem.parent, ""), (LeaseItem.owner, ""), (LeaseItem.counter, 0), (LeaseItem.gap_at, ""))
