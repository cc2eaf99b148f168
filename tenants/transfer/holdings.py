"""Declare the note of a tenant that is being brought in."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tenants.tenancy.stored import DIRECTORY
from tenants.transfer.keys import ARRIVING


def _arriving(reader: Reader) -> Iterator[StoredItem]:
    return (one for one in reader.query(DIRECTORY, ARRIVING) if one.item["tenant_id"]["S"] == reader.tenant_id)


declare_holding(Holding("arrival", (DIRECTORY,), _arriving, Stage.OWN, left_out="it ends with the import"))
