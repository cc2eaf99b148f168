"""Declare the audit trail of a tenant, and the ends of its chain."""

from __future__ import annotations

from collections.abc import Iterator

from portal.schema import row_forms
from portal.schema.holdings import FilePlace, Holding, Raw, Reader, Stage, StoredItem, declare_holding
from portal.schema.row_forms import RowForm
from tenants.audit_trail import keys
from tenants.audit_trail.items import AuditItem, ChainItem
from tenants.audit_trail.tables import AUDIT, CHAINS

_TRAIL = "audit trail"
_LONGEST = 150_000  # bytes of a row: an import writes twenty in a transaction, which takes 4 MB
_HASH = row_forms.like("[0-9a-f]{64}")


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


def _row_key(tenant_id: str, item: Raw) -> tuple[str, str]:
    row = item["timestamp_event_id"]["S"]
    return tenant_id, keys.audit_row(keys.audited_at(row), keys.event_id(row))


def _forms() -> tuple[RowForm, ...]:
    chained = {"hash": _HASH, "partition": row_forms.like("[0-9]{1,3}")}
    told = row_forms.json_object(row_forms.is_text)
    checks = {
        **chained,
        "before": told,
        "after": told,
        "timestamp_event_id": lambda value: row_forms.moment(keys.audited_at(value)),
    }
    return (
        RowForm(AuditItem, _row_key, checks=checks, most_bytes=_LONGEST),
        RowForm(ChainItem, lambda own, item: (own, item["partition"]["S"]), checks=chained, most_bytes=_LONGEST),
    )


class TrailEnds:
    """Looks whether the ends in a file name no more rows than it has: the chain is followed from there."""

    of = (_TRAIL,)

    def __init__(self) -> None:
        self._rows = self._named = 0
        self._at = FilePlace(0, "")

    def look(self, holding: str, item: Raw, place: FilePlace) -> str:
        """Take a row or an end."""
        if "action" in item:
            self._rows += 1
        else:
            self._named += int(item["sequence"]["N"])
            self._at = place
        return ""

    def fault(self) -> tuple[FilePlace, str] | None:
        """Return the last end, where they name more."""
        return (self._at, "names more rows than the file has") if self._named > self._rows else None


declare_holding(
    Holding(_TRAIL, (AUDIT,), _rows, Stage.TRAIL, export=_whole, forms=_forms, together=TrailEnds),
    Holding("ends of the audit chain", (CHAINS,), _ends, Stage.TRAIL, left_out="they are exported with the trail"),
)
