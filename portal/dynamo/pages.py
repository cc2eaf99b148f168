"""Read one partition page by page: the request of a Query, and the one loop that follows it to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from portal.schema import tables


@dataclass(frozen=True)
class Page:
    """Raw items of one Query in key order, and where the next one starts (None at the end)."""

    items: list[dict[str, Any]]
    last_key: dict[str, Any] | None


def all_pages(read: Callable[[dict[str, Any] | None], Page]) -> Iterator[Page]:
    """Call `read` with each page's start, None for the first, until the last page; one Query for each, when needed."""
    page = read(None)
    yield page
    while page.last_key is not None:
        page = read(page.last_key)
        yield page


def query_request(
    table: tables.Table,
    partition: str,
    *,
    index: tables.Index | None = None,
    begins_with: str | None = None,
    between: tuple[str, str] | None = None,
    descending: bool = False,
    limit: int | None = None,
    start: dict[str, Any] | None = None,
    consistent: bool = False,
) -> dict[str, Any]:
    """Return the parameters of one Query of one partition; see `TenantRepository.query`."""
    hash_name, range_name = (index.hash, index.range) if index else (table.hash, table.range)
    names = {"#h": hash_name}
    values = {":h": {"S": partition}}
    condition = "#h = :h"
    if begins_with is not None:
        condition += " AND begins_with (#r, :r)"
        names["#r"], values[":r"] = range_name or "", {"S": begins_with}
    elif between is not None:
        condition += " AND #r BETWEEN :lo AND :hi"
        names["#r"] = range_name or ""
        values[":lo"], values[":hi"] = {"S": between[0]}, {"S": between[1]}
    request: dict[str, Any] = {
        "TableName": table.full_name,
        "KeyConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
        "ScanIndexForward": not descending,
    }
    if index:
        request["IndexName"] = index.name
    if limit is not None:
        request["Limit"] = limit
    if start is not None:
        request["ExclusiveStartKey"] = start
    if consistent:
        request["ConsistentRead"] = True
    return request
