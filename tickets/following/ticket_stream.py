"""Handle a batch of the tickets' stream: index it, then count it. Both hosts, poller and function, call `handle`.

The aggregates take each change once and the index bears any repetition, so the index comes first: what is counted is
found. A tenant whose index is throttled gets all of its records back, a barrier's markers among them, and nobody else
waits for it.
"""

from __future__ import annotations

from typing import Final

from portal.errors import Unavailable
from portal.schema.keys import collection_parts
from portal.streams.batch import Batch, BatchResult, Record
from tickets.counting import stream_handler
from tickets.counting.record_changes import concerns_counting
from tickets.search.index import indexing
from tickets.search.index.fragments import concerns_search
from tickets.search.index.merge_follower import MergeFollower

IF_LOST: Final = f"{stream_handler.IF_LOST}. The search lacks them too. Run: manage.py rebuild_search"

merges: Final = MergeFollower()  # of the indexes that this process has added to


def concerns(record: Record) -> bool:
    """Tell whether anything is done about a record. The filter of the Lambda function says the same."""
    return concerns_counting(record) or concerns_search(record)


def handle(batch: Batch) -> BatchResult:
    """Apply a batch. Records of a throttled tenant are returned as deferred.

    Raises Throttled or Unavailable where no tenant could be applied.
    """
    indexed = indexing.index(batch)
    merges.note(indexed.added)
    later = _of(indexed.failed, batch.records)
    now = [record for record in batch.records if id(record) not in later]
    if indexed.failed and not any(map(concerns, now)):
        raise next(iter(indexed.failed.values()))
    try:
        counted = stream_handler.handle(Batch(batch.stream_arn, batch.shard_id, tuple(now)))
    except Unavailable:
        if not later:
            raise
        # Others wait already: those who cannot be counted wait with them.
        counted = BatchResult(deferred=tuple(record for record in now if concerns(record)))
    later |= {id(record) for record in counted.deferred}
    counts = {"indexed": indexed.records, "index_write_units": indexed.write_units}
    deferred = tuple(record for record in batch.records if id(record) in later)
    return BatchResult(deferred=deferred, counts={**counted.counts, **counts})


def _of(failed: dict[str, Unavailable], records: tuple[Record, ...]) -> set[int]:
    """Return the identities of the records of these tenants that concern anything."""
    if not failed:
        return set()
    return {id(record) for record in records if concerns(record) and _tenant(record) in failed}


def _tenant(record: Record) -> str:
    parts = collection_parts(str(record.keys.get("pk", "")))
    return parts[0] if parts else ""
