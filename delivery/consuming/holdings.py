"""Declare the deliveries that are dead."""

from __future__ import annotations

from collections.abc import Iterator

from delivery.consuming.tables import DEAD_DELIVERIES
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding


def _dead(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(DEAD_DELIVERIES, reader.tenant_id)


declare_holding(
    Holding(
        "dead deliveries", (DEAD_DELIVERIES,), _dead, Stage.BESIDE, left_out="each is a row of an outbox that stays"
    )
)
