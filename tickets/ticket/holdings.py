"""Declare what is stored of tickets: their collections, the requests that made them, and the counter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tickets.ticket import keys
from tickets.ticket.tables import TICKETS

_AT_ONCE: Final = 100  # request records that are read together


def _counter(reader: Reader) -> Iterator[StoredItem]:
    return reader.get(TICKETS, (keys.counter(reader.tenant_id), keys.COUNTER_TICKET))


def numbers(reader: Reader) -> range:
    """Return the numbers that tickets can have."""
    given = next((int(stored.item["last"]["N"]) for stored in _counter(reader)), 0)
    return range(1, given + 1)


def _tickets(reader: Reader) -> Iterator[StoredItem]:
    for number in numbers(reader):
        yield from reader.query(TICKETS, keys.ticket(reader.tenant_id, number))


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
    Holding("tickets", (TICKETS,), _tickets, Stage.CONTENT),
    Holding("ticket counter", (TICKETS,), _counter, Stage.OWN),
    Holding("requests", (TICKETS,), _requests, Stage.NAMED, left_out="each is forgotten a day after its request"),
)
