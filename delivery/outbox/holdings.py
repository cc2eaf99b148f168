"""Declare the rows of the outbox that are a tenant's."""

from __future__ import annotations

from collections.abc import Iterator

from delivery.outbox.tables import OUTBOX, OUTBOX_BY_TENANT
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding


def _rows(reader: Reader) -> Iterator[StoredItem]:
    for place in reader.places:  # mail is written in the pool, whoever writes it
        named = place.query(OUTBOX, reader.tenant_id, index=OUTBOX_BY_TENANT)
        yield from place.get(OUTBOX, *((one.item["event_id"]["S"], one.item["timestamp"]["S"]) for one in named))


declare_holding(
    Holding("outbox", (OUTBOX,), _rows, Stage.NAMED, left_out="what is to be told is told by where it happened")
)
