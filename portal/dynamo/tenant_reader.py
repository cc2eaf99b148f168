"""Read all that is stored for one tenant, in whatever table it is: what the holdings are found by.

Tables of the tenants are read by the role that takes up whole tenants, bound by the guard to this one. The tables that
are read before a tenant is known are read as the platform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from portal.dynamo import client
from portal.dynamo.batches import BATCH_GET_LIMIT, batch_get_raw
from portal.dynamo.paging import Page, all_pages, query_request
from portal.dynamo.placement import POOL, Placement, at
from portal.isolation import guard
from portal.schema import keys
from portal.schema.holdings import Reader, StoredItem
from portal.schema.tables import Index, Table


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
        addressed = [_key(table, hash_key, range_key) for hash_key, range_key in dict.fromkeys(wanted)]
        for start in range(0, len(addressed), BATCH_GET_LIMIT):
            self._between()
            request = {"Keys": addressed[start : start + BATCH_GET_LIMIT], "ConsistentRead": True}
            with guard.acting_for(self._tenant_id), at(self._placement):
                found = batch_get_raw(_of(table), {table.full_name: request})
            yield from (self._stored(table, raw) for raw in found.get(table.full_name, ()))

    def query(
        self, table: Table, hash_key: str, *, index: Index | None = None, begins_with: str | None = None
    ) -> Iterator[StoredItem]:
        """Read one partition: a Query for each megabyte of it, consistent where it is the table's own."""

        def read(start: dict[str, Any] | None) -> Page[dict[str, Any]]:
            self._between()
            request = query_request(
                table, hash_key, index=index, begins_with=begins_with, start=start, consistent=index is None
            )
            with guard.acting_for(self._tenant_id), at(self._placement):
                answer = _of(table).dispatch("Query", request)
            return Page(answer["Items"], answer.get("LastEvaluatedKey"))

        return (self._stored(table, raw) for page in all_pages(read) for raw in page.items)

    def _stored(self, table: Table, raw: dict[str, Any]) -> StoredItem:
        return StoredItem(table, raw, str(self._placement if table.placed else POOL))


def _of(table: Table) -> client.SharedConnection:
    return client.connection("lifecycle" if table.scope == "tenant" else "platform")


def _key(table: Table, hash_key: str, range_key: str | None) -> dict[str, Any]:
    key: dict[str, Any] = {table.hash: {"S": hash_key}}
    if table.range:
        key[table.range] = {"S": range_key}
    return key
