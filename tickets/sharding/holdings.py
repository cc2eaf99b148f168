"""Declare what is noted of a tenant's reshardings, and of its partitions that are written much."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding
from tenants.tenancy.stored import DIRECTORY
from tickets.sharding import keys

_OF_THIS_PLACE = "it is about the partitions of this installation"


def _reshardings(reader: Reader) -> Iterator[StoredItem]:
    yield from reader.query(DIRECTORY, keys.RESHARDINGS, begins_with=reader.tenant_id)
    yield from reader.query(DIRECTORY, keys.history(reader.tenant_id))


def _heat(reader: Reader) -> Iterator[StoredItem]:
    for stored in reader.query(DIRECTORY, keys.HEAT):
        if reader.tenant_id in stored.item["windows"]["S"]:
            yield stored


def _cooled(tenant_id: str, raw: Raw) -> Raw:
    windows: dict[str, dict[str, Any]] = json.loads(raw["windows"]["S"])
    left = {
        window: {name: units for name, units in warm.items() if json.loads(name)[0] != tenant_id}
        for window, warm in windows.items()
    }
    return {**raw, "windows": {"S": json.dumps(left)}}


declare_holding(
    Holding("reshardings", (DIRECTORY,), _reshardings, Stage.BESIDE, left_out=_OF_THIS_PLACE),
    Holding("heat", (DIRECTORY,), _heat, Stage.BESIDE, without=_cooled, left_out=_OF_THIS_PLACE),
)
