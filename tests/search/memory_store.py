"""An index in memory that counts write units as AWS would: for properties, deaths after each write, and costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from portal.dynamo.meter import item_size
from portal.errors import ConditionFailed, TransactionRefused
from tickets.search import stored
from tickets.search.index.index_store import IndexStore, MissingBlock, Raw, RowWrite, block_overhead

ACME = "a" * 32


class Died(Exception):
    """The worker died here."""


class MemoryStore(IndexStore):
    """As `IndexStore`; with `writes_left` it dies before the next write, or in the midst of several."""

    def __init__(self, tenant_id: str = ACME) -> None:
        super().__init__(tenant_id)
        self.directory: dict[str, Raw] = {}
        self.stored: dict[tuple[str, int], bytes] = {}
        self.writes = 0
        self.writes_left = math.inf

    # --- as a store ---

    def rows(self, first: str, last: str) -> Iterator[Raw]:
        """Row by row as they are when they are come to: a Query is no snapshot."""
        at = min((key for key in self.directory if first <= key <= last), default="")
        while at:
            yield self._row(at)
            at = min((key for key in self.directory if at < key <= last), default="")

    def next_number(self) -> int:
        row = self.directory.get(stored.LOCK, {})
        number = int(row.get("last", {"N": "0"})["N"]) + 1
        self._save({stored.LOCK: {**row, "last": {"N": str(number)}}})
        return number

    def lock(self, owner: str, *, now: str, until: str) -> bool:
        row = self.directory.get(stored.LOCK, {})
        if "owner" in row and row["owner"]["S"] != owner and row["until"]["S"] >= now:
            return False
        self._save({stored.LOCK: {**row, "owner": {"S": owner}, "until": {"S": until}}})
        return True

    def renew(self, owner: str, *, until: str) -> bool:
        row = self.directory.get(stored.LOCK, {})
        if row.get("owner") != {"S": owner}:
            return False
        self._save({stored.LOCK: {**row, "until": {"S": until}}})
        return True

    def unlock(self, owner: str) -> None:
        row = self.directory.get(stored.LOCK, {})
        if row.get("owner") == {"S": owner}:
            self._save({stored.LOCK: {"last": row["last"]} if "last" in row else {}})

    def write(self, *rows: RowWrite) -> None:
        for row in rows:
            known = self.directory.get(row.sort_key)
            wanted = row.unchanged
            if wanted is not None and (known is None or any(known.get(n) != v for n, v in wanted.items())):
                raise TransactionRefused([]) if len(rows) > 1 else ConditionFailed()
        checked = [self._size(row.sort_key) for row in rows if row.is_check]
        self._save({row.sort_key: row.attributes for row in rows if not row.is_check}, *checked)

    def delete_rows(self, sort_keys: Iterable[str]) -> None:
        for sort_key in sort_keys:
            self._save({sort_key: None})

    def blocks(self, segment: str, numbers: Sequence[int]) -> list[bytes]:
        try:
            return [self.stored[segment, number] for number in numbers]
        except KeyError:
            raise MissingBlock("It is not there.") from None

    def put_blocks(self, segment: str, blocks: Mapping[int, bytes]) -> None:
        for number, data in blocks.items():
            self._count(block_overhead() + len(data))
            self.stored[segment, number] = data

    def delete_blocks(self, segment: str, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._count(block_overhead() + len(self.stored.get((segment, number), b"")))
            self.stored.pop((segment, number), None)

    def block_numbers(self, segment: str) -> list[int]:
        return sorted(number for of, number in self.stored if of == segment)

    # --- behind it ---

    def _row(self, sort_key: str) -> Raw:
        return {**self.directory[sort_key], "pk": {"S": stored.directory(self.tenant_id)}, "sk": {"S": sort_key}}

    def _size(self, sort_key: str, attributes: Mapping[str, Any] | None = None) -> int:
        known = self.directory.get(sort_key) if attributes is None else attributes
        return item_size({**(known or {}), "pk": {"S": stored.directory(self.tenant_id)}, "sk": {"S": sort_key}})

    def _save(self, rows: Mapping[str, Mapping[str, Any] | None], *checked: int) -> None:
        """One write of rows, several of them in a transaction, which costs twice."""
        sizes = [max(self._size(key), self._size(key, row) if row is not None else 0) for key, row in rows.items()]
        self._count(*sizes, *checked, each=2 if len(rows) > 1 else 1)
        for sort_key, row in rows.items():
            if row is None:
                self.directory.pop(sort_key, None)
            else:
                self.directory[sort_key] = dict(row)

    def _count(self, *sizes: int, each: int = 1) -> None:
        if self.writes >= self.writes_left:
            raise Died
        self.writes += 1
        self.write_units += sum(each * math.ceil(size / 1024) for size in sizes)
