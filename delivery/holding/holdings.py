"""Declare the hold that an operator may have put on a tenant's deliveries."""

from __future__ import annotations

from collections.abc import Iterator

from delivery.holding.keys import HOLDS
from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tenants.tenancy.stored import DIRECTORY


def _hold(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(DIRECTORY, HOLDS, begins_with=reader.tenant_id)


declare_holding(Holding("hold", (DIRECTORY,), _hold, Stage.BESIDE, left_out="it holds what another outbox has"))
