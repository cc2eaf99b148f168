"""Read rows of the outbox as the dispatcher: from the stream's images, from the index of what is due, by their keys.

A request may hold the keys of one tenant only, so rows are read tenant by tenant, all at the same time. Rows of
tenants that have an outbox of their own are read inside of its source, and their keys say where that is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from delivery.outbox import keys
from delivery.outbox.items import OutboxItem
from delivery.outbox.tables import OUTBOX, PENDING
from portal.dynamo import placement
from portal.dynamo.batches import BATCH_GET_LIMIT, batch_get
from portal.dynamo.client import fan_out
from portal.dynamo.paging import query_request
from portal.dynamo.placement import POOL, Placement, at
from portal.isolation import guard
from portal.streams import worker

_EARLIEST: Final = "0"  # sorts before every stamp


class RowKey(NamedTuple):
    """The key of a row, and in whose outbox it stands: a placement as text, "" for that of all."""

    event_id: str
    timestamp: str
    placement: str = ""


def here() -> str:
    """Return the placement inside of which this is called, as it stands in a key and in a message."""
    now = placement.current()
    return "" if now == POOL else str(now)


def of_image(image: Mapping[str, Any] | None) -> OutboxItem | None:
    """Return the row in a typed image of the stream, None where there is no image."""
    if not image:
        return None
    typed = dict(image)
    typed["attempts"] = typed.get("attempts") or {"M": {}}  # DynamoDB Local writes {} for an empty map
    return OutboxItem.from_raw_data(typed)


def key_of(row: OutboxItem) -> RowKey:
    """Return the key of a row that was read here."""
    return RowKey(row.event_id, row.timestamp, here())


def due(shard: int, *, until: str, limit: int) -> list[RowKey]:
    """Return the keys of rows in one shard of the index that are due, the longest due first: one Query."""
    request = query_request(OUTBOX, keys.pending(shard), index=PENDING, between=(_EARLIEST, until), limit=limit)
    found = worker.dispatch("Query", request)["Items"]
    return [RowKey(raw["event_id"]["S"], raw["timestamp"]["S"], here()) for raw in found]


def stored(wanted: Iterable[RowKey]) -> dict[RowKey, OutboxItem]:
    """Return those of these rows that exist, as they are now: a consistent BatchGetItem for each tenant and 100."""
    by_tenant: dict[tuple[str, str], list[RowKey]] = defaultdict(list)
    for key in dict.fromkeys(wanted):
        by_tenant[keys.row_parts(key.event_id)[0], key.placement].append(key)
    calls = [partial(_read, *whose, some) for whose, mine in by_tenant.items() for some in _batches(mine)]
    return {key: row for found in fan_out(calls) for key, row in found}


def _read(tenant_id: str, where: str, wanted: list[RowKey]) -> list[tuple[RowKey, OutboxItem]]:
    with guard.acting_for(tenant_id), at(Placement.parse(where)):
        named = [(OutboxItem, key.event_id, key.timestamp) for key in wanted]
        found = batch_get(worker.connection(), named, consistent=True)
        return [(key_of(row), row) for row in found if isinstance(row, OutboxItem)]


def _batches(wanted: list[RowKey]) -> Iterator[list[RowKey]]:
    for start in range(0, len(wanted), BATCH_GET_LIMIT):
        yield wanted[start : start + BATCH_GET_LIMIT]
