"""Read and write many items in one request, and repeat what the engine left unprocessed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from portal.dynamo import client
from portal.dynamo.client import Item
from portal.dynamo.retry import retrying
from portal.errors import PortalError, Throttled

BATCH_GET_LIMIT: Final = 100  # keys of one BatchGetItem; AWS, "Quotas in Amazon DynamoDB"
BATCH_WRITE_LIMIT: Final = 25  # members of one BatchWriteItem
_READS: Final = 5
_WRITES: Final = 9


_T = TypeVar("_T")


def chunked(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    """Yield the items in lists of `size`, the last one shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


class _Unprocessed(Throttled):
    """The engine took a part of the request, and left the rest."""


def _is_unprocessed(error: PortalError) -> bool:
    return isinstance(error, _Unprocessed)


def batch_get_raw(
    connection: client.SharedConnection, request: dict[str, dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """Read the raw items of a BatchGetItem by table, in no order.

    Raises Throttled where the engine leaves keys unprocessed repeatedly.
    """
    stored: dict[str, list[dict[str, Any]]] = {}
    pending = request

    def read() -> None:
        nonlocal pending
        answer = connection.dispatch("BatchGetItem", {"RequestItems": pending})
        for table, items in answer["Responses"].items():
            stored.setdefault(table, []).extend(items)
        pending = answer.get("UnprocessedKeys") or {}
        if pending:
            raise _Unprocessed("The database did not return every item.")

    retrying(read, again=_is_unprocessed, attempts=_READS, first=0.02)
    return stored


def batch_put(connection: client.SharedConnection, items: Iterable[Item]) -> None:
    """Write items in groups of 25 without a transaction: for seeds and imports, which write them again on a rerun."""
    batch_write(connection, [(i.Meta.table_name, {"PutRequest": {"Item": i.serialize()}}) for i in items])


def batch_write(connection: client.SharedConnection, members: Sequence[tuple[str, dict[str, Any]]]) -> None:
    """Send members of BatchWriteItem, each with its table's full name, in groups of 25.

    Raises Throttled where the engine leaves members of a group unprocessed again and again.
    """
    for group in chunked(members, BATCH_WRITE_LIMIT):
        _write_group(connection, group)


def _write_group(connection: client.SharedConnection, group: Sequence[tuple[str, dict[str, Any]]]) -> None:
    pending: dict[str, list[dict[str, Any]]] = {}
    for table, member in group:
        pending.setdefault(table, []).append(member)

    def send() -> None:
        nonlocal pending
        pending = connection.dispatch("BatchWriteItem", {"RequestItems": pending}).get("UnprocessedItems") or {}
        if pending:
            raise _Unprocessed("The database did not take every item.")

    retrying(send, again=_is_unprocessed, attempts=_WRITES, first=0.02)
