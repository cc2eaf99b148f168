"""Apply a batch of the tickets' stream: what pollers and the Lambda function call."""

from __future__ import annotations

import time

from portal.streams.batch import Batch, BatchResult
from portal.streams.shards import name_of
from tickets.counting import fold


def handle(batch: Batch) -> BatchResult:
    """Apply the batch to the aggregates. Raises Throttled and Unavailable, and then all of it must come again."""
    outcome = fold.process(
        [record.raw for record in batch.records],
        shard=name_of(batch.stream_arn, batch.shard_id),
        read_at=time.monotonic(),
    )
    return BatchResult(counts=vars(outcome))
