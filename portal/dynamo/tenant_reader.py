"""Read all that is stored for one tenant, in whatever table it is: what the holdings are found by.

Tables of the tenants are read by the role that takes up whole tenants, bound by the guard to this one. The tables that
are read before a tenant is known are read as the platform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from portal.dynamo.models import RawItems
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import BATCH_GET_LIMIT, Store, chunked
from portal.schema import keys
from portal.schema.holdings import Reader, StoredItem
from portal.schema.registry import Index, Table


def lifecycle_store(tenant_id: str, placement: Placement) -> Store:
    """Return the store of a tenant, at this placement, in the role that takes up whole tenants."""
    return Store("lifecycle", tenant_id, placement)


class TenantReader:
    """The reader of one tenant, whose content lies at this placement; see `portal.schema.holdings.Reader`.

    `between` is called before each request: what reads for long says so to whoever waits for it.
    """

    def __init__(
        self, tenant_id: str, placement: Placement = POOL, *, between: Callable[[], object] = lambda: None
    ) -> None:
        self._tenant_id, self._placement, self._between = keys.tenant(tenant_id), placement, between

    @property
    def tenant_id(self) -> str:
        return self._tenant_id

    @property
    def places(self) -> tuple[Reader, ...]:
        return (self,) if self._placement == POOL else (self, TenantReader(self._tenant_id, between=self._between))

    def get(self, table: Table, *wanted: tuple[str, str | None]) -> Iterator[StoredItem]:
        """Read those that exist of these items: a consistent BatchGetItem for each hundred of them."""
        for some in chunked(dict.fromkeys(wanted), BATCH_GET_LIMIT):
            self._between()
            found = self._store(table).get_many(RawItems(table), [(key, (), sort) for key, sort in some])
            yield from (self._stored(table, raw) for raw in found if raw)

    def query(
        self, table: Table, hash_key: str, *, index: Index | None = None, begins_with: str | None = None
    ) -> Iterator[StoredItem]:
        """Read one partition: a Query for each megabyte of it, consistent where it is the table's own."""
        pages = self._store(table).query_pages(
            RawItems(table, index), hash_key, begins_with=begins_with, consistent=index is None
        )
        self._between()
        for page in pages:
            yield from (self._stored(table, raw) for raw in page.items)
            self._between()

    def _store(self, table: Table) -> Store:
        return Store("lifecycle" if table.scope == "tenant" else "platform", self._tenant_id, self._placement)

    def _stored(self, table: Table, raw: dict[str, Any]) -> StoredItem:
        return StoredItem(table, raw, str(self._placement if table.placed else POOL))
