"""Declare the exports of a desk: not exported themselves, purged with it, and left behind and dropped when it moves."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema.holdings import Holding, Reader, Stage, StoredItem, declare_holding
from tenants.tenancy.stored import DIRECTORY
from tickets.desk_export.keys import EXPORTS
from tickets.desk_export.tables import EXPORT_PARTS

_A_COPY = "it is a copy of what is exported, and expires"


def _exports(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(DIRECTORY, EXPORTS, begins_with=reader.tenant_id)


def _parts(reader: Reader) -> Iterator[StoredItem]:
    return reader.query(EXPORT_PARTS, reader.tenant_id)


declare_holding(
    Holding("desk exports", (DIRECTORY,), _exports, Stage.CONTENT, left_out=_A_COPY),
    Holding("files of desk exports", (EXPORT_PARTS,), _parts, Stage.BESIDE, left_out=_A_COPY),
)
