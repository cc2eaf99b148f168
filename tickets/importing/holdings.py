"""Declare what imports and the demonstration remember of the archives that they have read."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tickets.importing import keys
from tickets.ticket.tables import TICKETS


def _sources(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(TICKETS, keys.import_sources(reader.tenant_id))


def _rows(reader: Reader) -> Iterator[StoredItem]:
    for source in _sources(reader):
        yield from reader.query(TICKETS, keys.import_source(reader.tenant_id, source.item["source"]["S"]))


declare_holding(
    Holding("imported rows", (TICKETS,), _rows, Stage.NAMED),
    Holding("imported archives", (TICKETS,), _sources, Stage.BESIDE),
)
