"""Read the index partitions of a tenant, and move tickets from one to another, in the tenant's own name.

That is done where the tenant's content lies: inside of the source whose stream brings it.

A move changes one attribute of the summary, the partition key of the indexes. Neither the version nor the moment of the
last change is touched, so that no form becomes stale, no list gets another order, and the aggregates see nothing.

A process that stood still while the layout changed may write a ticket beyond it. The record of such a write says where
the ticket stands, so StrayWatch moves it without reading anything; until then lists do not show the ticket.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from portal.dynamo import placement
from portal.dynamo.client import fan_out
from portal.dynamo.library_errors import is_missing
from portal.dynamo.models import ByIndex
from portal.dynamo.retry import retrying
from portal.dynamo.store import Store
from portal.errors import ConditionFailed, Throttled, Unavailable
from portal.streams import stream_source
from portal.streams.batch import Record
from portal.streams.stream_source import POOLED, StreamSource
from tickets.sharding.stored import ReshardItem
from tickets.ticket import stored as ticket_keys
from tickets.ticket.fields import Status
from tickets.ticket.stored import STATUS_UPDATED, SummaryItem

AT_ONCE: Final = 8  # moves at the same time
_TRIES: Final = 6  # for a ticket that is in somebody's transaction
_WITH_PLANTED: Final = 1000  # rows, where the last ones of a page are another tenant's


@dataclass(frozen=True)
class Shelf:
    """One partition of a tenant's tickets in the indexes."""

    status: Status
    shard: int


@dataclass(frozen=True)
class Placed:
    """A ticket and the partition that it stands in, as the index has it."""

    number: int
    updated_at: str
    shelf: Shelf


def look(
    tenant_id: str, shelf: Shelf, *, after: Placed | None = None, limit: int
) -> tuple[list[Placed], Placed | None]:
    """Read up to `limit` tickets of a partition, oldest change first, and behind which one to go on, None at the end.

    One Query, eventually consistent. Raises Unavailable.
    """
    repository = Store("tenant", tenant_id, placement.current())
    start = _start_key(repository, after) if after else None
    listed = ByIndex(SummaryItem, STATUS_UPDATED)
    found = repository.query(listed, ticket_keys.tenant_status, *_key(shelf), limit=limit, start=start)
    rows = [
        Placed(number, row.updated_at, shelf)
        for row in found.items
        # A row that another tenant has planted is not ours to move.
        if (number := ticket_keys.ticket_number(tenant_id, row.pk)) is not None
    ]
    if not found.last_key:
        return rows, None
    if rows and found.last_key["pk"]["S"] == repository.key(ticket_keys.ticket, rows[-1].number):
        return rows, rows[-1]
    # Behind a planted row nothing can be read on: the guard refuses its key. So the row must not be the last.
    return look(tenant_id, shelf, after=after, limit=limit + _WITH_PLANTED)


def occupied(tenant_id: str, shelves: Sequence[Shelf]) -> list[Shelf]:
    """Return those of these partitions in which there is a ticket: one Query each, at the same time."""
    found = fan_out([partial(look, tenant_id, shelf, limit=1) for shelf in shelves])
    return [shelf for shelf, (rows, _) in zip(shelves, found, strict=True) if rows]


def move(tenant_id: str, some: Sequence[Placed], *, to: int) -> int:
    """Move tickets to where they belong among `to` partitions, and return how many moved.

    One that was changed meanwhile stays where the change has put it. Raises Unavailable.
    """
    repository = Store("tenant", tenant_id, placement.current())
    return sum(fan_out([partial(_move, repository, one, to) for one in some]))


def misplaced(some: Sequence[Placed], *, to: int) -> list[Placed]:
    """Return those that stand in another partition than theirs among `to`."""
    return [one for one in some if ticket_keys.status_shard(one.number, to) != one.shelf.shard]


def _move(repository: Store, one: Placed, to: int) -> bool:
    summary = SummaryItem(repository.key(ticket_keys.ticket, one.number), ticket_keys.SUMMARY)
    here = repository.key(ticket_keys.tenant_status, *_key(one.shelf))
    there = Shelf(one.shelf.status, ticket_keys.status_shard(one.number, to))
    placed = SummaryItem.tenant_status.set(repository.key(ticket_keys.tenant_status, *_key(there)))
    try:
        retrying(
            lambda: repository.update(summary, [placed], condition=SummaryItem.tenant_status == here),
            again=lambda error: isinstance(error, Throttled),
            attempts=_TRIES,
            first=0.05,
            longest=1,
        )
    except ConditionFailed:
        return False
    return True


def _key(shelf: Shelf) -> tuple[str, int]:
    return shelf.status.value.upper(), shelf.shard


def _start_key(repository: Store, after: Placed) -> dict[str, Any]:
    return {
        STATUS_UPDATED.hash: {"S": repository.key(ticket_keys.tenant_status, *_key(after.shelf))},
        STATUS_UPDATED.range: {"S": after.updated_at},
        "pk": {"S": repository.key(ticket_keys.ticket, after.number)},
        "sk": {"S": ticket_keys.SUMMARY},
    }


# --- strays ---


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
                    moved += move(tenant_id, [stray], to=to)
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
