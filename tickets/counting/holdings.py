"""Declare what counting stores: aggregates with what lies beside them, markers of barriers, and dead letters."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tickets.counting import keys
from tickets.counting.tables import DEAD_LETTERS
from tickets.ticket.stored import TICKETS

_COUNTED_AGAIN = "the stream of the imported tickets makes it again"


def _aggregates(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, keys.aggregate(reader.tenant_id))


def _markers(reader: Reader) -> Iterator[StoredItem]:
    met = reader.query(TICKETS, keys.aggregate(reader.tenant_id), begins_with=keys.BARRIERS)
    wanted = [(keys.marker_met(reader.tenant_id, stored.item["sk"]["S"]), keys.MARKER) for stored in met]
    return reader.get(TICKETS, *wanted)


def _dead_letters(reader: Reader) -> Iterator[StoredItem]:
    yield from reader.query(DEAD_LETTERS, reader.tenant_id)
    yield from reader.get(DEAD_LETTERS, (keys.DEAD_LETTER_TENANTS, reader.tenant_id))


declare_holding(
    Holding("aggregates", (TICKETS,), _aggregates, Stage.BESIDE, left_out=_COUNTED_AGAIN),
    Holding("markers of barriers", (TICKETS,), _markers, Stage.DERIVED, left_out="each is forgotten after a day"),
    Holding(
        "dead letters", (DEAD_LETTERS,), _dead_letters, Stage.BESIDE, left_out="their tickets are exported and counted"
    ),
)
