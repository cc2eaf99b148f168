"""Bring an audit trail in, so that its chain holds here as it held where it comes from.

Under its own id a trail is written as it was, row by row. Under another id no row can stay as it is, because each
names its tenant in its keys and its hash covers them. So the chain is verified first, and then made anew over the same
rows in the same order; the row that ends the import names the former id and the fingerprint of the former chain, which
whoever keeps fingerprints can compare. A chain that was kept under a foreign id could be shown by no page and verified
by no command that goes by the tenant.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Final

from portal.dynamo import platform
from portal.dynamo.repository import Transaction
from portal.errors import TransactionRefused
from portal.schema.holdings import Raw
from tenants.audit_trail import chain
from tenants.audit_trail.stored import AuditItem, ChainItem
from tenants.transfer.tenant_file import Entry, FileFault, TenantFile

_AT_ONCE: Final = 20  # rows of one transaction


def check(file: TenantFile, entry: Entry) -> str:
    """Verify the chain in the file and return its fingerprint. Raises FileFault."""
    ends: chain.Ends = {}
    rows: list[chain.Link] = []
    for _, table, item in file.items(entry):
        if table == ChainItem.table.name:
            ends[item["partition"]["S"]] = (int(item["sequence"]["N"]), item["hash"]["S"])
        else:
            rows.append(chain.link_of(item))
    if findings := chain.faults(rows, ends):
        first = findings[0]
        raise FileFault(
            f"The audit trail in {entry.name} does not hold: row {first.sequence} of partition {first.partition} is "
            f"{first.kind}, and {len(findings) - 1} more."
        )
    return chain.fingerprint(ends)


def bring_in(
    file: TenantFile,
    entry: Entry,
    *,
    replaced: Callable[[Raw], Raw],
    is_same: bool,
    look: Callable[[], object],
    advance: Callable[[int], object],
) -> None:
    """Write the rows and then the ends. `replaced` puts the ids of here into an item; a trail that `is_same` is left as
    it is. Rows that are there already, of a former attempt, are compared. Raises FileFault where one differs.

    `look` is called before each write, and may raise Conflict.
    """
    ends: chain.Ends = {}
    rows: list[AuditItem] = []
    with tempfile.TemporaryFile() as place:
        for raw in _in_order(file, entry, place):
            item = AuditItem.from_raw_data(raw if is_same else replaced(raw))
            last, previous = ends.get(item.partition, (0, ""))
            if not is_same:
                item.previous = previous
                item.hash = chain.hash_of(item.serialize(null_check=False))
            ends[item.partition] = (last + 1, item.hash)
            rows.append(item)
            if len(rows) == _AT_ONCE:
                look()
                _write(entry, rows)
                advance(len(rows))
                rows = []
        look()
        _write(entry, rows)
        advance(len(rows))
    tenant_id = item.tenant_id if ends else ""
    moved = Transaction()
    for partition, (sequence, hashed) in ends.items():
        moved.put(ChainItem(tenant_id, partition, sequence=sequence, hash=hashed))
    if len(moved):
        look()
        platform.transact(moved)


def _in_order(file: TenantFile, entry: Entry, place: IO[bytes]) -> Iterator[Raw]:
    """Yield the rows of each partition in the order of its chain. They lie in a temporary file meanwhile: memory holds
    where each begins."""
    found: list[tuple[str, int, int]] = []
    for _, table, item in file.items(entry):
        if table != ChainItem.table.name:
            found.append((item["partition"]["S"], int(item["sequence"]["N"]), place.tell()))
            place.write(json.dumps(item).encode() + b"\n")
    for _, _, begins in sorted(found):
        place.seek(begins)
        yield json.loads(place.readline())


def _write(entry: Entry, rows: list[AuditItem]) -> None:
    """Write rows that are not there yet, all or none; one by one where some are."""
    if not rows:
        return
    transaction = Transaction()
    for row in rows:
        name = row.timestamp_event_id
        transaction.put(row, name=name, condition=AuditItem.timestamp_event_id.does_not_exist())
    try:
        platform.transact(transaction)
    except TransactionRefused as refused:
        if len(rows) > 1:
            for row in rows:
                _write(entry, [row])
            return
        reason = refused.reason(rows[0].timestamp_event_id)
        if reason is None or reason.item is None:
            raise
        if reason.item["hash"]["S"] != rows[0].hash:
            raise FileFault(f"Another row of the audit trail is there in place of one of {entry.name}.") from refused
