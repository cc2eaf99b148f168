"""Chain the rows of a tenant's audit trail by their hashes, and verify the chain.

The chain of a tenant has PARTITIONS partitions. A row stores the number of its chain partition, its own number in that
partition, the hash of the row before it, and a hash of its own over everything else that is stored of it. The end of
each partition is an item of its own in Audit.Chains; it moves in the transaction that adds the rows.
docs/adr/0010-audit-chain.md says why there are several partitions, and what a chain cannot detect.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final, NamedTuple, Self

from portal import clock
from portal.dynamo.models import RawItems
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store
from portal.schema import keys
from tenants.audit_trail.stored import AUDIT, AuditItem, ChainItem

PARTITIONS: Final = 8
_HASH: Final = "hash"

Ends = dict[str, tuple[int, str]]  # by partition, the number of its rows and the hash of the last one


@dataclass(frozen=True)
class Finding:
    """One fault of the chain. `kind` is "altered", "missing", "inserted", "unknown end" or "not of the head".

    `where` is the sort key of the row, "" where there is no row to point at.
    """

    kind: str
    partition: str
    sequence: int
    where: str


@dataclass(frozen=True)
class Verified:
    """The result of reading one trail.

    `fingerprint` is a hash over the ends of all chain partitions. Note it down elsewhere: as long as it stays the same,
    no row was added, changed or removed.
    """

    rows: int
    fingerprint: str
    findings: list[Finding]


def end_of(tenant_id: str) -> ChainItem:
    """Return the end of one chain partition of the tenant, chosen at random, with an empty hash if it has no rows.

    Costs one consistent read. The choice is random so that simultaneous writers rarely meet at the same end.
    """
    partition = str(random.randrange(PARTITIONS))  # noqa: S311  # spreads writers
    (end,) = PLATFORM.get_all([(ChainItem, keys.tenant(tenant_id), partition)], consistent=True)
    return end or ChainItem(tenant_id, partition, sequence=0, hash="")


def hash_of(raw: dict[str, Any]) -> str:
    """Return the SHA-256 of a stored row without its own hash, as JSON with sorted names and no blanks."""
    content = {name: value for name, value in raw.items() if name != _HASH}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


class Link(NamedTuple):
    """The part of a row that the chain is made of. `at` is the row's sort key, `is_sound` whether its hash fits it."""

    partition: str
    sequence: int
    previous: str
    hash: str
    at: str
    is_sound: bool


def link_of(raw: dict[str, Any]) -> Link:
    """Return what the chain is made of in a stored row."""
    item = AuditItem.from_raw_data(raw)
    sound = hash_of(raw) == item.hash
    return Link(item.partition, int(item.sequence), item.previous, item.hash, item.timestamp_event_id, sound)


def verify(
    tenant_id: str, *, head: Head | None = None, progress: Callable[[int], None] = lambda rows: None
) -> Verified:
    """Read all rows and the ends of all chain partitions, and compare them. Rows may be added meanwhile.

    With a `head`, which somebody has kept, also tell whether the rows up to it are those of then. `progress` is called
    with the number of rows of each page. Memory grows by some 300 bytes per row.
    """
    before = ends_of(tenant_id)
    links = [link_of(raw) for raw in rows(tenant_id, progress)]
    after = ends_of(tenant_id)
    findings = faults(links, after, before=before)
    if head is not None:
        if not _leads_to(links, head):
            findings.append(Finding("not of the head", "of all", sum(head.sequences), head.text))
        later = (link for link in links if head.lacks(link))
        findings += [Finding("not of the head", link.partition, link.sequence, link.at) for link in later]
    return Verified(len(links), fingerprint(after), findings)


def faults(links: list[Link], ends: Ends, *, before: Ends | None = None) -> list[Finding]:
    """Compare rows with the ends as they are afterwards, and as they were `before` where that was another moment."""
    before = ends if before is None else before
    findings = [Finding("altered", link.partition, link.sequence, link.at) for link in links if not link.is_sound]
    partitions: dict[str, list[Link]] = {partition: [] for partition in before}
    for link in links:
        partitions.setdefault(link.partition, []).append(link)
    for partition, own in sorted(partitions.items()):
        findings += _check_partition(partition, own, before.get(partition, (0, "")), ends.get(partition))
    return [*dict.fromkeys(findings)]


def fingerprint(ends: Ends) -> str:
    """Return a hash over the ends of all chain partitions."""
    whole = json.dumps(sorted((partition, end) for partition, end in ends.items()))
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def _check_partition(
    partition: str, links: list[Link], before: tuple[int, str], after: tuple[int, str] | None
) -> Iterator[Finding]:
    """Follow one chain partition from its end to its first row, and yield its faults.

    The end, or the next row, names the true row by its hash. Rows up to the end as it was before the reading must be
    there; beyond the end as it is afterwards there may be none.
    """
    if after is None:
        if links:
            yield Finding("unknown end", partition, max(link.sequence for link in links), "")
        return
    rows: dict[int, list[Link]] = {}
    for link in links:
        rows.setdefault(link.sequence, []).append(link)
    expected = ""  # the hash that the row of this sequence must have; "" if the row that would name it is missing
    for sequence in sorted({*rows, *range(1, after[0] + 1)}, reverse=True):
        candidates = rows.get(sequence, [])
        if not 1 <= sequence <= after[0]:
            yield from (Finding("inserted", partition, sequence, link.at) for link in candidates)
            continue
        if sequence in (before[0], after[0]):
            expected = after[1] if sequence == after[0] else before[1]
        true = next((link for link in candidates if link.hash == expected), None) or next(iter(candidates), None)
        if true is None:
            if sequence <= before[0]:
                yield Finding("missing", partition, sequence, "")
            expected = ""
            continue
        yield from (Finding("inserted", partition, sequence, link.at) for link in candidates if link is not true)
        if (expected and true.hash != expected) or (sequence == 1 and true.previous):
            yield Finding("altered", partition, sequence, true.at)
        expected = true.previous


def ends_of(tenant_id: str) -> Ends:
    """Return the number and the hash of the last row by chain partition: one consistent Query."""
    ends = PLATFORM.query_all(ChainItem, keys.tenant(tenant_id), consistent=True)
    return {end.partition: (int(end.sequence), end.hash) for end in ends}


# --- the head of a trail at a moment, which somebody keeps elsewhere ---

_HEAD_PAGE: Final = 50  # rows: with any number of them, 99 of 100 times a row of each partition is among the newest
_UNDER_WAY: Final = timedelta(minutes=10)  # of a row between its moment and its place in the chain, with other clocks
MOST_LOOKED_AT: Final = 400  # rows, for a head whose rows are not there
_HEAD: Final = re.compile(r"(\d{8}T\d{6}Z)\.(\d{1,12}(?:-\d{1,12})*)\.([0-9a-f]{32})", re.ASCII)
_MOMENT: Final = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True)
class Head:
    """The newest row of each chain partition before a moment in UTC: their numbers, and a hash over their hashes.

    Each row names the one before it by its hash, so a head stands for all rows before that moment: whoever keeps it can
    tell later whether one of them was altered, removed or put in between, even by somebody who has calculated the whole
    chain anew. It says nothing of what is recorded.
    """

    before: datetime
    sequences: tuple[int, ...]
    fingerprint: str

    @property
    def rows(self) -> int:
        """Return how many rows there were."""
        return sum(self.sequences)

    @property
    def text(self) -> str:
        """Return it in a form to keep: the moment, the number of rows by partition, the hash."""
        return f"{self.before:{_MOMENT}}.{'-'.join(map(str, self.sequences))}.{self.fingerprint}"

    def lacks(self, link: Link) -> bool:
        """Tell whether a row that says that it is older than the head is none of its rows: it was put in later."""
        numbers = {str(partition): number for partition, number in enumerate(self.sequences)}
        is_later = link.sequence > numbers.get(link.partition, 0)
        return is_later and link.at < clock.stamp(self.before - _UNDER_WAY)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `text` gave. Raises ValueError."""
        found = _HEAD.fullmatch(text.strip())
        if found is None:
            raise ValueError("a head has a moment, numbers and a hash, with dots in between")
        before = datetime.strptime(found[1], _MOMENT).replace(tzinfo=UTC)
        return cls(before, tuple(map(int, found[2].split("-"))), found[3])


class HeadState(StrEnum):
    """The result of looking for a head: `HERE`, or why not."""

    HERE = "here"
    ALTERED = "altered"  # a row of these numbers is there, with another content, or one was put in later
    MISSING = "missing"  # a row is not there, or another trail is meant


def head_of(repository: Store, before: datetime) -> Head:
    """Return the head of a tenant's trail at a moment that has passed, in whole seconds.

    It follows from the rows alone, so that it is the same whenever it is asked for. Costs a Query of 50 rows, seldom
    two, with trails of any length.
    """
    ends: Ends = {}
    for page in _backwards(repository, before):
        # All of a page: rows of the same moment, or of processes with other clocks, are not in the order of the chain.
        for link in map(link_of, page):
            ends[link.partition] = max(ends.get(link.partition, (0, "")), (link.sequence, link.hash))
        if len(ends) == PARTITIONS:
            break
    sequences = tuple(ends.get(str(number), (0, ""))[0] for number in range(PARTITIONS))
    return Head(before, sequences, fingerprint(ends))


def find_head(repository: Store, head: Head) -> HeadState:
    """Tell whether the rows of a head are in a tenant's trail as they were. Costs what `head_of` does; for a head that
    is not of this trail, MOST_LOOKED_AT rows.

    `verify` tells, at a higher price, whether each row before them is intact.
    """
    wanted = {str(partition): number for partition, number in enumerate(head.sequences) if number}
    found: Ends = {}
    looked_at = 0
    for page in _backwards(repository, head.before):
        links = [link_of(raw) for raw in page]
        here = [link for link in links if wanted.get(link.partition) == link.sequence]
        if any(map(head.lacks, links)) or not all(link.is_sound for link in here):
            return HeadState.ALTERED
        found |= {link.partition: (link.sequence, link.hash) for link in here}
        looked_at += len(links)
        if len(found) == len(wanted) or looked_at >= MOST_LOOKED_AT:
            break
    if found.keys() != wanted.keys() or (not wanted and looked_at):
        return HeadState.MISSING
    return HeadState.HERE if fingerprint(found) == head.fingerprint else HeadState.ALTERED


def _backwards(repository: Store, before: datetime) -> Iterator[list[dict[str, Any]]]:
    # A key with a stamp goes on behind it, so that those of this very moment and later ones sort behind the bare stamp.
    ends = ("0", clock.stamp(before))
    pages = repository.query_pages(RawItems(AUDIT), keys.tenant, between=ends, descending=True, limit=_HEAD_PAGE)
    return (page.items for page in pages)


def _leads_to(links: list[Link], head: Head) -> bool:
    """Tell whether the rows of a head are among these. Others have the same numbers where rows were inserted."""
    wanted = {(str(partition), number) for partition, number in enumerate(head.sequences) if number}
    ends = {one.partition: (one.sequence, one.hash) for one in links if (one.partition, one.sequence) in wanted}
    return len(ends) == len(wanted) and fingerprint(ends) == head.fingerprint


def rows(tenant_id: str, progress: Callable[[int], None] = lambda rows: None) -> Iterator[dict[str, Any]]:
    """Yield all rows of a trail as they are stored, by time, each page as it is taken."""
    for page in Store("tenant", tenant_id).query_pages(RawItems(AUDIT), keys.tenant, consistent=True):
        progress(len(page.items))
        yield from page.items
