"""Count to-dos from the stream of their table: each record once, however often it is delivered.

The count and the mark of the shard, which is the last sequence number counted from it, are written in one item by one
conditional write. A batch that comes again finds its records at or below the mark and changes nothing; two writers at
once cannot both meet the condition. A mark goes when every record of its shard has left the stream.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from examples.todo.stored import LIST, CountItem
from portal import clock
from portal.dynamo.store import Store
from portal.errors import ConditionFailed
from portal.schema import keys
from portal.streams.batch import Batch, BatchResult, Record

KEPT: Final = timedelta(hours=48)  # a stream keeps records for 24


def fold(batch: Batch) -> BatchResult:
    """Count the records of a batch, each tenant's in its own item. Raises Unavailable, Throttled: it comes again."""
    by_tenant: dict[str, list[Record]] = defaultdict(list)
    for record in batch.records:
        parts = keys.collection_parts(record.keys["pk"])
        if parts and parts[1] == LIST:
            by_tenant[parts[0]].append(record)
    shard = keys.digest(f"{batch.stream_arn} {batch.shard_id}")
    counted = sum(_count(tenant_id, shard, records) for tenant_id, records in by_tenant.items())
    return BatchResult(counts={"counted": counted})


def _count(tenant_id: str, shard: str, records: Sequence[Record]) -> int:
    store = Store("worker", tenant_id)
    while True:
        item = store.get(CountItem, keys.tenant, consistent=True)
        is_as_read = CountItem.version == item.version if item else CountItem.version.does_not_exist()
        item = item or CountItem(tenant_id)
        marks = json.loads(item.marks)
        new = [record for record in records if record.sequence > marks.get(shard, [""])[0]]
        if not new:
            return 0
        for record in new:
            for image, change in ((record.old, -1), (record.new, 1)):
                item.open += change * _is(image, done=False)
                item.done += change * _is(image, done=True)
        marks[shard] = [new[-1].sequence, new[-1].created_at or clock.stamp()]
        oldest = clock.stamp(clock.now() - KEPT)
        item.marks = json.dumps({name: mark for name, mark in marks.items() if mark[1] > oldest or name == shard})
        item.version += 1
        try:
            store.put(item, condition=is_as_read)
            return len(new)
        except ConditionFailed:
            continue  # another shard was counted meanwhile


def _is(image: dict[str, Any] | None, *, done: bool) -> bool:
    return image is not None and bool(image.get("is_done")) is done
