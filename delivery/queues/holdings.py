"""Declare the set of queues that a tenant has, as it stands beside those of all others."""

from __future__ import annotations

from collections.abc import Iterator

from delivery.queues.keys import SETS
from delivery.queues.tables import QUEUES
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding


def _set(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(QUEUES, SETS, begins_with=reader.tenant_id)


declare_holding(Holding("queue set", (QUEUES,), _set, Stage.OWN, left_out="an installation gives its own queues"))
