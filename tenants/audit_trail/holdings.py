"""Declare the audit trail of a tenant, and the ends of its chain."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tenants.audit_trail.tables import AUDIT, CHAINS


def _rows(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(AUDIT, reader.tenant_id)


def _ends(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(CHAINS, reader.tenant_id)


def _whole(reader: Reader) -> Iterator[StoredItem]:
    """Yield the ends first, and then the rows up to them: those are all there, and nothing of what comes meanwhile."""
    ends: dict[str, int] = {}
    for stored in _ends(reader):
        ends[stored.item["partition"]["S"]] = int(stored.item["sequence"]["N"])
        yield stored
    for stored in _rows(reader):
        if int(stored.item["sequence"]["N"]) <= ends.get(stored.item["partition"]["S"], 0):
            yield stored


declare_holding(
    Holding("audit trail", (AUDIT,), _rows, Stage.TRAIL, export=_whole),
    Holding("ends of the audit chain", (CHAINS,), _ends, Stage.TRAIL, left_out="they are exported with the trail"),
)
