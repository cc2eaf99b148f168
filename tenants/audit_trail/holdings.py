"""Declare the audit trail of a tenant, and the ends of its chain."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tenants.audit_trail.tables import AUDIT, CHAINS


def _rows(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(AUDIT, reader.tenant_id)


def _ends(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(CHAINS, reader.tenant_id)


declare_holding(
    Holding("audit trail", (AUDIT,), _rows, Stage.TRAIL),
    Holding("ends of the audit chain", (CHAINS,), _ends, Stage.TRAIL),
)
