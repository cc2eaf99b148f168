"""Declare the record of how far the demonstration of a tenant is seeded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tickets.data.stored import import_source
from tickets.ticket.stored import TICKETS

SOURCE: Final = "demonstration"  # among the archives; it is none, and no list of them has it


def _record(reader: Reader) -> Iterator[StoredItem]:
    return reader.get(TICKETS, (import_source(reader.tenant_id, SOURCE), SOURCE))


declare_holding(
    Holding("demonstration", (TICKETS,), _record, Stage.BESIDE, left_out="it is about a demonstration of this place")
)
