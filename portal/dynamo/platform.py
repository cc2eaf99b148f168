"""The stated exception: reads and writes that are not one tenant's.

Signing in, resolving who is calling, and what operators do happen before or beside any tenant. They go through
the platform connection, under a policy of its own, and through this module alone. A test names the few modules
that may import it, or a model of a platform table; another one that tries is a failing build.

Source: Spotlight, "Cross-tenant exception: Platform.Memberships": treat new code that reads it as authentication.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from portal.dynamo import client
from portal.dynamo.batches import batch_get
from portal.dynamo.client import Item
from portal.dynamo.pages import Page, all_pages, query_request
from portal.dynamo.transaction import Transaction, write
from portal.schema import tables

_I = TypeVar("_I", bound=Item)


def connection() -> client.SharedConnection:
    return client.connection("platform")


def transact(transaction: Transaction) -> None:
    """Write all of it or nothing. Raises TransactionRefused."""
    write(connection(), transaction)


def get(model: type[_I], hash_key: str, range_key: str) -> _I | None:
    """Read one item of any table that the platform may read, or None: one GetItem, eventually consistent."""
    table = model.table
    key = {table.hash: {"S": hash_key}, str(table.range): {"S": range_key}}
    raw = connection().dispatch("GetItem", {"TableName": table.full_name, "Key": key}).get("Item")
    return model.from_raw_data(raw) if raw else None


def query(
    table: tables.Table,
    partition: str,
    *,
    index: tables.Index | None = None,
    begins_with: str | None = None,
    descending: bool = False,
    limit: int | None = None,
    start: dict[str, Any] | None = None,
    consistent: bool = False,
) -> Page:
    """Send one Query of one partition of a platform table, at most 1 MB; see `repository.TenantRepository.query`."""
    request = query_request(
        table,
        partition,
        index=index,
        begins_with=begins_with,
        descending=descending,
        limit=limit,
        start=start,
        consistent=consistent,
    )
    answer = connection().dispatch("Query", request)
    return Page(answer["Items"], answer.get("LastEvaluatedKey"))


def query_all(table: tables.Table, partition: str, **how: Any) -> Iterator[dict[str, Any]]:
    """Read all raw items of one partition, page by page as they are taken; `how` is as in `query`."""
    pages = all_pages(lambda start: query(table, partition, start=start, **how))
    return (raw for page in pages for raw in page.items)


def get_all(wanted: Sequence[tuple[type[Item], str, str | None]], *, consistent: bool = False) -> list[Any]:
    """Read items of any tables in one round trip; see `batches.batch_get`."""
    return list(batch_get(connection(), wanted, consistent=consistent))
