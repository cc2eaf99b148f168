"""Put right what was written beyond a tenant's layout by a process that had stood still while the layout changed.

The record of such a write says where the ticket stands and the resharding where it belongs, so nothing is read for it.
That lists do not show the ticket lasts as long as its record takes to get here.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence

from portal.dynamo.library_errors import is_missing
from portal.errors import Unavailable
from portal.streams import stream_source
from portal.streams.batch import Record
from portal.streams.stream_source import POOLED, StreamSource
from tickets.sharding import shard_rows
from tickets.sharding.items import ReshardItem
from tickets.sharding.shard_rows import Placed, Shelf
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status

log = logging.getLogger("pooldesk.stream")

_KEPT = 10_000  # strays that could not be moved at once
_LEAVING = ("narrowing", "sweeping")


class StrayWatch:
    """Knows whose lists have left partitions lately, and moves what still comes into those."""

    def __init__(self) -> None:
        self._limits: dict[str, int] = {}
        self._left: deque[tuple[StreamSource, str, Placed, int]] = deque(maxlen=_KEPT)

    def learn(self, reshardings: Iterable[ReshardItem]) -> None:
        """Take note of the last resharding of each tenant."""
        self._limits = {
            item.tenant_id: int(item.to_shards)
            for item in reshardings
            if int(item.to_shards) < int(item.from_shards) and (item.state == "done" or item.phase in _LEAVING)
        }

    def look(self, records: Sequence[Record]) -> int:
        """Move the strays among the tickets of these records. Return how many moved; the others are kept for later."""
        limits = self._limits
        if not limits:
            return 0
        for record in records:
            owner = ticket_keys.owner_of(str(record.keys.get("pk", ""))) if record.typed_new else None
            if owner and owner[0] in limits and (stray := _stray(record, owner[1], limits[owner[0]])):
                self._left.append((stream_source.current(), owner[0], stray, limits[owner[0]]))
        return self.put_right()

    def put_right(self) -> int:
        """Move what is kept. Return how many moved."""
        moved = 0
        for _ in range(len(self._left)):
            source, tenant_id, stray, to = self._left.popleft()
            try:
                with source.entered():
                    moved += shard_rows.move(tenant_id, [stray], to=to)
            except Unavailable as error:
                if source == POOLED or not is_missing(error):
                    self._left.append((source, tenant_id, stray, to))
        if moved:
            log.warning("%d tickets were written beyond their tenant's partitions, and moved.", moved)
        return moved


def _stray(record: Record, number: int, limit: int) -> Placed | None:
    image = record.typed_new or {}
    shelf = ticket_keys.shelf_of(image.get("tenant_status", {}).get("S", ""))
    if shelf is None or shelf[1] < limit:
        return None
    return Placed(number, image["updated_at"]["S"], Shelf(Status(shelf[0].lower()), shelf[1]))
