"""Declare what processes noted of a tenant, minute by minute, in rows with others."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Final

from portal.noise.keys import notes_of
from portal.noise.tables import NOISE
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding

KEPT_MINUTES: Final = 7 * 60  # an hour more than rows have; TTL has those of before


def _notes(reader: Reader) -> Iterator[StoredItem]:
    now = int(time.time()) // 60
    for minute in range(now - KEPT_MINUTES, now + 2):
        for stored in reader.query(NOISE, notes_of(minute)):
            if reader.tenant_id in stored.item["tallies"]["S"]:
                yield stored


def _others(tenant_id: str, raw: Raw) -> Raw:
    tallies = {tenant: tally for tenant, tally in json.loads(raw["tallies"]["S"]).items() if tenant != tenant_id}
    return {**raw, "tallies": {"S": json.dumps(tallies)}}


declare_holding(Holding("noise", (NOISE,), _notes, Stage.BESIDE, without=_others, left_out="of some hours alone"))
