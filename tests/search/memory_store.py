"""An index in memory that counts write units as AWS would: for properties, deaths after each write, and costs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from portal.schema.registry import Table
from tests.search.memory_engine import MemoryEngine
from tickets.search import stored
from tickets.search.index.index_store import IndexStore
from tickets.search.stored import SEARCH, NewItem

ACME = "a" * 32


class MemoryStore(IndexStore):
    """As `IndexStore`, on an engine of its own."""

    def __init__(self, tenant_id: str = ACME, engine: MemoryEngine | None = None) -> None:
        super().__init__(tenant_id)
        self.engine = engine or MemoryEngine()

    def _connection(self, *_: object) -> AbstractContextManager[Any]:
        return self.engine.connected()

    @property
    def directory(self) -> dict[str, Any]:
        """The rows of the directory by sort key."""
        return self.engine.partitions[SEARCH.full_name, self.key(stored.directory)]

    @property
    def stored_blocks(self) -> dict[tuple[str, int], bytes]:
        """All blocks, by segment and number."""
        partitions = {pk.partition("SEGMENT#")[2]: of for (_, pk), of in self.engine.partitions.items()}
        return {(s, int(sk)): raw["d"]["B"] for s, of in partitions.items() if s for sk, raw in of.items()}

    def new(self) -> list[NewItem]:
        return [row for row in self.rows(stored.STATE) if isinstance(row, NewItem)]

    def put_raw(self, sort_key: str, attributes: dict[str, Any], table: Table = SEARCH) -> None:
        """Write a row that no code of ours would."""
        keys = {"pk": {"S": self.key(stored.directory)}, "sk": {"S": sort_key}}
        self.send("PutItem", {"TableName": table.full_name, "Item": {**attributes, **keys}})
