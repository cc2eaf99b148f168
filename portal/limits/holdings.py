"""Declare what a tenant has asked for, and where processes tell each other of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from portal.limits.keys import POSTS
from portal.limits.tables import SHARES, USAGE
from portal.schema.holdings import Holding, Raw, Reader, Stage, StoredItem, declare_holding


def _usage(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(USAGE, reader.tenant_id)


def _shares(reader: Reader) -> Iterator[StoredItem]:
    for stored in reader.query(SHARES, POSTS):
        if reader.tenant_id in stored.item["asked"]["S"]:
            yield stored


def _others(tenant_id: str, raw: Raw) -> Raw:
    asked = {tenant: part for tenant, part in json.loads(raw["asked"]["S"]).items() if tenant != tenant_id}
    return {**raw, "asked": {"S": json.dumps(asked)}}


declare_holding(
    Holding("usage", (USAGE,), _usage, Stage.BESIDE, left_out="each is forgotten after a day"),
    Holding("shares of rates", (SHARES,), _shares, Stage.BESIDE, without=_others, left_out="of this moment alone"),
)
