"""Hand a batch that AWS Lambda brings to a handler, and answer from which record on Lambda has to bring it again.

Of the records that an answer names Lambda takes the first of the shard, and repeats everything from there on. Later
work is repeated, which every handler tolerates (`portal.streams.batch`).

Source: AWS, "Configuring partial batch response with DynamoDB and Lambda".
"""

from __future__ import annotations

import json
import logging
from typing import Any

from portal.errors import Unavailable
from portal.streams.batch import Batch, Handler, Record

log = logging.getLogger("pooldesk.stream")


def answer(batch: Batch, handler: Handler) -> dict[str, Any]:
    """Return the answer, with the checkpoint of the first record that must come again.

    That is the first deferred one, and the first of all while the database is busy or away. Any other error is raised:
    it makes the invocation a failed one.
    """
    if not batch.records:
        return {"batchItemFailures": []}
    try:
        result = handler(batch)
    except Unavailable as error:
        log.warning("A batch of %s records could not be applied: %s", len(batch.records), error.message)
        return _again_from(batch.records[0])
    log.info("%s", json.dumps({"records": len(batch.records), "deferred": len(result.deferred), **result.counts}))
    return _again_from(result.deferred[0]) if result.deferred else {"batchItemFailures": []}


def _again_from(record: Record) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": record.checkpoint}]}
