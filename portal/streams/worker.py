"""Read and write what the followers of a stream store, under a policy and guard of their own.

Errors: those of `portal.errors`, here also Rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeVar

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from portal.dynamo import client
from portal.dynamo.client import Item
from portal.dynamo.models import ByIndex
from portal.dynamo.store import Store
from portal.dynamo.transaction import Transaction
from portal.schema.tables import Index

_I = TypeVar("_I", bound=Item)

WORKER: Final = Store("worker")


def connection() -> client.SharedConnection:
    return client.connection("worker")


def commit(transaction: Transaction) -> None:
    """Write all of the transaction or nothing. Raises TransactionRefused."""
    WORKER.transact(transaction)


def put(item: Item) -> None:
    """Write an item, whatever is there."""
    WORKER.put(item)


def change(item: _I, actions: list[Action], *, condition: Condition | None = None) -> _I:
    """Update the stored item that has this item's key; see `Store.update`."""
    return WORKER.update(item, actions, condition=condition)


def remove(item: Item, *, condition: Condition | None = None) -> None:
    """Delete an item of no tenant, if it is there. Raises ConditionFailed."""
    WORKER.delete(item, condition=condition)


def items(model: type[_I], partition: str, *, index: Index | None = None, **how: Any) -> Iterator[_I]:
    """Yield all items of one partition of a worker's table, or of an index, page by page; see `Store.query_all`."""
    readable: Any = ByIndex(model, index) if index else model
    return WORKER.query_all(readable, partition, **how)


def dispatch(operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Send a request of the worker. Raises Rejected where no repetition can succeed."""
    return WORKER.send(operation, request)
