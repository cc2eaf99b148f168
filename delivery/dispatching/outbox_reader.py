"""Read rows of the outbox as the dispatcher: from the stream's images, from the index of what is due, by their keys.

A request may hold the keys of one tenant only, so rows are read tenant by tenant, all at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from delivery.outbox import keys
from delivery.outbox.items import OutboxItem
from delivery.outbox.tables import OUTBOX, PENDING
from portal.dynamo.batches import BATCH_GET_LIMIT, batch_get
from portal.dynamo.client import fan_out
from portal.dynamo.pages import query_request
from portal.isolation import guard
from portal.streams import worker

RowKey = tuple[str, str]  # of the table: event id and timestamp
_EARLIEST: Final = "0"  # sorts before every stamp


def of_image(image: Mapping[str, Any] | None) -> OutboxItem | None:
    """Return the row in a typed image of the stream, None where there is no image."""
    if not image:
        return None
    typed = dict(image)
    typed["attempts"] = typed.get("attempts") or {"M": {}}  # DynamoDB Local writes {} for an empty map
    return OutboxItem.from_raw_data(typed)


def key_of(row: OutboxItem) -> RowKey:
    return row.event_id, row.timestamp


def due(shard: int, *, until: str, limit: int) -> list[RowKey]:
    """Return the keys of rows in one shard of the index that are due, the longest due first: one Query."""
    request = query_request(OUTBOX, keys.pending(shard), index=PENDING, between=(_EARLIEST, until), limit=limit)
    return [(raw["event_id"]["S"], raw["timestamp"]["S"]) for raw in worker.dispatch("Query", request)["Items"]]


def stored(wanted: Iterable[RowKey]) -> dict[RowKey, OutboxItem]:
    """Return those of these rows that exist, as they are now: a consistent BatchGetItem for each tenant and 100."""
    by_tenant: dict[str, list[RowKey]] = defaultdict(list)
    for key in dict.fromkeys(wanted):
        by_tenant[keys.row_parts(key[0])[0]].append(key)
    calls = [partial(_read, tenant_id, some) for tenant_id, mine in by_tenant.items() for some in _batches(mine)]
    return {key_of(row): row for found in fan_out(calls) for row in found}


def _read(tenant_id: str, wanted: list[RowKey]) -> list[OutboxItem]:
    with guard.acting_for(tenant_id):
        found = batch_get(worker.connection(), [(OutboxItem, *key) for key in wanted], consistent=True)
    return [row for row in found if isinstance(row, OutboxItem)]


def _batches(wanted: list[RowKey]) -> Iterator[list[RowKey]]:
    for start in range(0, len(wanted), BATCH_GET_LIMIT):
        yield wanted[start : start + BATCH_GET_LIMIT]
