"""Keep an index in memory and weigh each write as DynamoDB would: by partition, and by the second in which it comes.

Time is made up: `second` is set by whoever simulates, and moved on by writes that keep the pace they are bound to.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from portal.dynamo.meter import item_size
from portal.errors import ConditionFailed, TransactionRefused
from tickets.search import keys
from tickets.search.index.index_store import MissingBlock, Raw, RowWrite
from tickets.search.index.write_pace import WritePace

TENANT: Final = "a" * 32
_HEADERS: Final = keys.header("0")[:-1]


class WeighingStore:
    """Do what `IndexStore` does, for one tenant and one writer."""

    def __init__(self) -> None:
        self.tenant_id = TENANT
        self.second = 0.0
        self.write_units = 0
        self.by_second: Counter[tuple[str, int]] = Counter()  # write units by partition and second
        self.largest_item = 0
        self.largest_header = 0
        self._directory: dict[str, Raw] = {}
        self._blocks: dict[str, dict[int, bytes]] = {}
        self._number = 0
        self._owner = ""
        self._pace = WritePace(now=lambda: self.second, sleep=self._pass)

    def next_number(self) -> int:
        self._number += 1
        self._weigh(keys.directory(TENANT), [1])
        return self._number

    def lock(self, owner: str, *, now: str, until: str) -> bool:
        if self._owner not in ("", owner):
            return False
        self._owner = owner
        self._weigh(keys.directory(TENANT), [1])
        return True

    def renew(self, owner: str, *, until: str) -> bool:
        return self.lock(owner, now="", until=until)

    def unlock(self, owner: str) -> None:
        if self._owner == owner:
            self._owner = ""
            self._weigh(keys.directory(TENANT), [1])

    def rows(self, first: str, last: str) -> Iterator[Raw]:
        for sort_key in sorted(key for key in self._directory if first <= key <= last):
            yield self._directory[sort_key]

    def write(self, *rows: RowWrite) -> None:
        for row in rows:
            stored = self._directory.get(row.sort_key)
            if row.unchanged is not None and (
                stored is None or any(stored.get(name) != value for name, value in row.unchanged.items())
            ):
                raise TransactionRefused([]) if len(rows) > 1 else ConditionFailed()
        self._weigh(keys.directory(TENANT), [self._set(row) for row in rows], each=2 if len(rows) > 1 else 1)

    def delete_rows(self, sort_keys: Iterable[str]) -> None:
        for sort_key in sort_keys:
            self._weigh(keys.directory(TENANT), [self._set(RowWrite(sort_key))])

    def blocks(self, segment: str, numbers: Sequence[int]) -> list[bytes]:
        stored = self._blocks.get(segment, {})
        if any(number not in stored for number in numbers):
            raise MissingBlock("It is not there.")
        return [stored[number] for number in numbers]

    def put_blocks(self, segment: str, blocks: Mapping[int, bytes]) -> None:
        self._pace.wait()
        sizes = [self._block_size(segment, number, data) for number, data in blocks.items()]
        self.largest_item = max([self.largest_item, *sizes])
        self._blocks.setdefault(segment, {}).update(blocks)
        self._weigh(keys.segment(TENANT, segment), sizes)

    def block_numbers(self, segment: str) -> list[int]:
        return sorted(self._blocks.get(segment, {}))

    def delete_blocks(self, segment: str, numbers: Iterable[int]) -> None:
        stored = self._blocks.get(segment, {})
        for number in numbers:
            self._pace.wait()
            data = stored.pop(number, b"")
            self._weigh(keys.segment(TENANT, segment), [self._block_size(segment, number, data)])

    # --- what it weighs ---

    def _set(self, row: RowWrite) -> int:
        """Change the directory; the bytes that count."""
        before = self._directory.pop(row.sort_key, None)
        size = item_size(before) if before else 0
        if row.attributes is None:
            return size
        item = {**row.attributes, "pk": {"S": keys.directory(TENANT)}, "sk": {"S": row.sort_key}}
        self._directory[row.sort_key] = item
        new = item_size(item)
        if row.sort_key.startswith(_HEADERS):
            self.largest_header = max(self.largest_header, new)
        return max(size, new)

    def _block_size(self, segment: str, number: int, data: bytes) -> int:
        row: dict[str, Any] = {"pk": {"S": keys.segment(TENANT, segment)}, "sk": {"S": keys.block(number)}}
        return item_size({**row, "d": {"B": data}})

    def _weigh(self, partition: str, sizes: Sequence[int], *, each: int = 1) -> None:
        units = sum(each * max(1, math.ceil(size / 1024)) for size in sizes)
        self.write_units += units
        self.by_second[partition, int(self.second)] += units
        self._pace.spend(units)

    def _pass(self, seconds: float) -> None:
        self.second += seconds
