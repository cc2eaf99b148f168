"""Declare what is stored of tickets: their collections, the requests that made them, and the counter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, TenantArrival, declare_holding
from tickets.ticket import keys
from tickets.ticket.tables import TICKETS

_AT_ONCE: Final = 100  # request records that are read together
_TRIES: Final = 3  # for a ticket that changes while it is read


def _counter(reader: Reader) -> Iterator[StoredItem]:
    return reader.get(TICKETS, (keys.counter(reader.tenant_id), keys.COUNTER_TICKET))


def numbers(reader: Reader) -> range:
    """Return the numbers that tickets can have."""
    given = next((int(stored.item["last"]["N"]) for stored in _counter(reader)), 0)
    return range(1, given + 1)


def _tickets(reader: Reader) -> Iterator[StoredItem]:
    for number in numbers(reader):
        yield from reader.query(TICKETS, keys.ticket(reader.tenant_id, number))


def _settled(reader: Reader) -> Iterator[StoredItem]:
    """Yield the items of each ticket as of one moment: a change writes several, and a reading may part them."""
    for number in numbers(reader):
        for _ in range(_TRIES):
            items = [*reader.query(TICKETS, keys.ticket(reader.tenant_id, number))]
            if _adds_up([stored.item for stored in items]):
                break
        yield from items


def _adds_up(items: list[Raw]) -> bool:
    summary = next((item for item in items if item["sk"]["S"] == keys.SUMMARY), None)
    if summary is None:
        return True  # an import is writing it
    comments = sum(item.get("kind", {}).get("S") == "comment" for item in items)
    versions = 1 + sum(bool(item.get("changes", {}).get("L")) for item in items)
    erased = len(summary.get("erased_versions", {}).get("L", ()))
    told = [int(summary["comment_count"]["N"]), int(summary["version"]["N"]) - erased]
    return told == [comments, versions]


def _fit(item: Raw, arrival: TenantArrival) -> Raw:
    """Put a summary into the list of its status where it arrives: over how many partitions, the tenant says."""
    if item["sk"]["S"] != keys.SUMMARY:
        return item
    tenant_id, shards = arrival.tenant["tenant_id"]["S"], int(arrival.tenant["shards"]["N"])
    shard = keys.status_shard(int(item["number"]["N"]), shards)
    return {**item, "tenant_status": {"S": keys.tenant_status(tenant_id, item["status"]["S"].upper(), shard)}}


def _requests(reader: Reader) -> Iterator[StoredItem]:
    named: list[tuple[str, str | None]] = []
    for stored in _tickets(reader):
        if digest := stored.item.get("request", {}).get("S"):
            is_ticket = stored.item["sk"]["S"] == keys.DETAIL
            named.append((keys.request(reader.tenant_id, digest), keys.MADE_TICKET if is_ticket else keys.MADE_COMMENT))
        if len(named) >= _AT_ONCE:
            yield from reader.get(TICKETS, *named)
            named = []
    yield from reader.get(TICKETS, *named)


declare_holding(
    Holding("tickets", (TICKETS,), _tickets, Stage.CONTENT, export=_settled, fit=_fit),
    Holding("ticket counter", (TICKETS,), _counter, Stage.OWN),
    Holding("requests", (TICKETS,), _requests, Stage.NAMED, left_out="each is forgotten a day after its request"),
)
