"""Give one tenant's store its former name, and its readers of raw items; see `portal.dynamo.store`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

from portal.dynamo.models import RawItems, Readable
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import (
    BATCH_GET_LIMIT,
    ITEM_LIMIT,
    TRANSACTION_LIMIT,
    Action,
    Condition,
    Key,
    Page,
    Store,
    TenantKey,
    Transaction,
)
from portal.dynamo.whereabouts import Knowledge
from portal.schema import tables

__all__ = [
    "BATCH_GET_LIMIT",
    "ITEM_LIMIT",
    "TRANSACTION_LIMIT",
    "Action",
    "Condition",
    "Page",
    "TenantKey",
    "TenantRepository",
    "Transaction",
]

_T = TypeVar("_T")
Raw = dict[str, Any]


class TenantRepository(Store):
    """The store of one tenant."""

    def __init__(self, tenant_id: str, where: Placement | Knowledge = POOL) -> None:
        super().__init__("tenant", tenant_id, where)

    def get_raw(self, table: tables.Table, build: TenantKey, args: Iterable[Any], *, sort: str) -> list[Raw]:
        """Read the raw items that exist among those of one kind, in no order."""
        return self.get_stored(table, [(build, (a,), sort) for a in args], consistent=True)

    def get_stored(
        self, table: tables.Table, wanted: Sequence[tuple[TenantKey, tuple[Any, ...], str]], *, consistent: bool = False
    ) -> list[Raw]:
        """Read the raw items that exist among these, each by key builder, its arguments and sort key."""
        return [raw for raw in self.get_many(RawItems(table), wanted, consistent=consistent) if raw]

    @overload
    def query(self, model: tables.Table, build: Key, *args: Any, **how: Any) -> Page[Raw]: ...
    @overload
    def query(self, model: Readable[_T], build: Key, *args: Any, **how: Any) -> Page[_T]: ...
    def query(self, model: Any, build: Key, *args: Any, index: tables.Index | None = None, **how: Any) -> Any:
        """Send one Query; a table gives raw items."""
        return super().query(_readable(model, index), build, *args, **how)

    @overload
    def query_pages(self, model: tables.Table, build: Key, *args: Any, **how: Any) -> Iterator[Page[Raw]]: ...
    @overload
    def query_pages(self, model: Readable[_T], build: Key, *args: Any, **how: Any) -> Iterator[Page[_T]]: ...
    def query_pages(self, model: Any, build: Key, *args: Any, **how: Any) -> Any:
        """Read all pages; a table gives raw items."""
        return super().query_pages(_readable(model), build, *args, **how)

    @overload
    def query_all(self, model: tables.Table, build: Key, *args: Any, **how: Any) -> Iterator[Raw]: ...
    @overload
    def query_all(self, model: Readable[_T], build: Key, *args: Any, **how: Any) -> Iterator[_T]: ...
    def query_all(self, model: Any, build: Key, *args: Any, **how: Any) -> Any:
        """Read all items; a table gives raw items."""
        return super().query_all(_readable(model), build, *args, **how)


def _readable(model: Any, index: tables.Index | None = None) -> Any:
    return RawItems(model, index) if isinstance(model, tables.Table) else model
