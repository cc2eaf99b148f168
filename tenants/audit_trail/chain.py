"""The chain that holds the rows of a tenant's audit trail together, and its verification.

A tenant has LANES chains. Each row carries its lane, its number in it, the hash of the row before and its own, over
everything else that is stored of it. The end of each lane stands in a table of its own and moves in the transaction
that adds the rows. Why lanes, and what a chain cannot tell: docs/adr/0010-audit-chain.md.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from portal.dynamo import platform
from portal.dynamo.repository import TenantRepository
from portal.schema import keys
from tenants.audit_trail.items import AuditItem, ChainItem
from tenants.audit_trail.tables import AUDIT

LANES: Final = 8
_HASH: Final = "hash"


@dataclass(frozen=True)
class Finding:
    """What is wrong: "altered", "missing", "inserted" or "unknown end", and where."""

    kind: str
    lane: str
    sequence: int
    where: str


@dataclass(frozen=True)
class Verified:
    """`fingerprint` stands for all lanes up to their ends: written down elsewhere, it tells later that nothing of what
    was there has changed."""

    rows: int
    fingerprint: str
    findings: list[Finding]


def end_of(tenant_id: str) -> ChainItem:
    """The end of one of the tenant's lanes, drawn by lot; with an empty hash where the lane is empty.

    One consistent read. By lot, so that writers of one moment meet at different ends.
    """
    lane = str(random.randrange(LANES))  # noqa: S311  # spreads writers
    (end,) = platform.get_all([(ChainItem, keys.tenant(tenant_id), lane)], consistent=True)
    return end or ChainItem(tenant_id, lane, sequence=0, hash="")


def hash_of(raw: dict[str, Any]) -> str:
    """SHA-256 over all that is stored of a row, but its hash: names sorted, no blanks."""
    content = {name: value for name, value in raw.items() if name != _HASH}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


class _Link(NamedTuple):
    """A row as its chain sees it."""

    sequence: int
    previous: str
    hash: str
    at: str


def verify(tenant_id: str, *, progress: Callable[[int], None] = lambda rows: None) -> Verified:
    """Read all rows and all ends and hold them against each other; may run while rows are being added.

    `progress` is told how many rows each page had. Needs memory for number and hashes of each row.
    """
    before = _ends(tenant_id)
    lanes: dict[str, list[_Link]] = {lane: [] for lane in before}
    findings, rows = [], 0
    for raw in _rows(tenant_id, progress):
        rows += 1
        item = AuditItem.from_raw_data(raw)
        link = _Link(int(item.sequence), item.previous, item.hash, item.timestamp_event_id)
        if hash_of(raw) != item.hash:
            findings.append(Finding("altered", item.lane, link.sequence, link.at))
        lanes.setdefault(item.lane, []).append(link)
    after = _ends(tenant_id)
    for lane, links in sorted(lanes.items()):
        findings += _check_lane(lane, links, before.get(lane, (0, "")), after.get(lane))
    whole = json.dumps(sorted((lane, end) for lane, end in after.items()))
    return Verified(rows, hashlib.sha256(whole.encode()).hexdigest()[:32], [*dict.fromkeys(findings)])


def _check_lane(
    lane: str, links: list[_Link], before: tuple[int, str], after: tuple[int, str] | None
) -> Iterator[Finding]:
    """From the end backwards: what an end or a later row names by its hash is what was written.

    Rows up to the end as it stood before the reading must be there; beyond the end of afterwards none may be.
    """
    if after is None:
        if links:
            yield Finding("unknown end", lane, max(link.sequence for link in links), "")
        return
    rows: dict[int, list[_Link]] = {}
    for link in links:
        rows.setdefault(link.sequence, []).append(link)
    expected = ""  # by its hash, of the row that comes next; "" where nobody says
    for sequence in sorted({*rows, *range(1, after[0] + 1)}, reverse=True):
        found = rows.get(sequence, [])
        if not 1 <= sequence <= after[0]:
            yield from (Finding("inserted", lane, sequence, link.at) for link in found)
            continue
        if sequence in (before[0], after[0]):
            expected = after[1] if sequence == after[0] else before[1]
        true = next((link for link in found if link.hash == expected), None) or next(iter(found), None)
        if true is None:
            if sequence <= before[0]:
                yield Finding("missing", lane, sequence, "")
            expected = ""
            continue
        yield from (Finding("inserted", lane, sequence, link.at) for link in found if link is not true)
        if (expected and true.hash != expected) or (sequence == 1 and true.previous):
            yield Finding("altered", lane, sequence, true.at)
        expected = true.previous


def _ends(tenant_id: str) -> dict[str, tuple[int, str]]:
    found = ChainItem.query(keys.tenant(tenant_id), consistent_read=True)
    return {end.lane: (int(end.sequence), end.hash) for end in found}


def _rows(tenant_id: str, progress: Callable[[int], None]) -> Iterator[dict[str, Any]]:
    repository, start = TenantRepository(tenant_id), None
    while True:
        page = repository.query(AUDIT, keys.tenant, start=start, consistent=True)
        progress(len(page.items))
        yield from page.items
        start = page.last_key
        if start is None:
            return
