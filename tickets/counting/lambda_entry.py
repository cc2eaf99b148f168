"""The handler that AWS Lambda calls, the other host of the fold beside `manage.py run_stream`.

The aggregates remember per stream shard what they have taken, and a plain stream event does not say which shard it
comes from. With a tumbling window it does: `shardId` beside `Records`. So the event source mapping sets
TumblingWindowInSeconds, although no window is needed here, and the answer carries `state`, because an answer without
it counts as a failed one. At the end of a window comes an invocation without records.

Only one invocation for a shard runs at a time (ParallelizationFactor 1): side by side, the later part of a shard could
be applied first, and the earlier one would be taken for known.

Sources: AWS, "Implementing stateful DynamoDB stream processing in Lambda" (event, `state`, `batchItemFailures` in the
same answer) and "Configuring partial batch response with DynamoDB and Lambda".
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from typing import Any

import django
from django.apps import apps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
if not apps.ready:
    django.setup()

from portal.errors import Invalid, Unavailable
from portal.streams import positions  # needs the settings
from portal.streams.batch import Record, batch_of
from tickets.counting.stream_handler import handle

log = logging.getLogger("pooldesk.stream")


def stream_handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Apply a batch of one shard. While the database is busy or away, all of it is asked for again, from its first
    record on: what was applied already counts once.

    Raises Invalid for an event that names no shard.
    """
    arn, shard_id = event.get("eventSourceARN", ""), event.get("shardId", "")
    if not arn or not shard_id:
        raise Invalid(
            "The event does not say which shard it comes from, and without that nothing can be counted exactly once. "
            "Set TumblingWindowInSeconds on the event source mapping, as infra/template.yaml does."
        )
    batch = batch_of(arn, shard_id, event.get("Records", ()))
    if not batch.records:
        return {"state": {}, "batchItemFailures": []}
    try:
        result = handle(batch)
        positions.advance_behind(batch, result)
    except Unavailable as error:
        log.warning("A batch of %s records could not be applied: %s", len(batch.records), error.message)
        return _again_from(batch.records[0])
    log.info("%s", json.dumps({"records": len(batch.records), "deferred": len(result.deferred), **result.counts}))
    return _again_from(result.deferred[0]) if result.deferred else {"state": {}, "batchItemFailures": []}


def _again_from(record: Record) -> dict[str, Any]:
    """Ask for everything from this record on once more."""
    return {"state": {}, "batchItemFailures": [{"itemIdentifier": record.checkpoint}]}
