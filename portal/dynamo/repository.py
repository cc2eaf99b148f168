"""Read and write for one tenant. There is no scan, and no method takes a key that another tenant could own.

A caller names a key builder of its room and its arguments; the repository puts the tenant in front. A view
or rule therefore cannot ask for another tenant's item, whatever its input says.

Errors: those of `portal.errors` (Unavailable, Throttled, ConditionFailed, TransactionRefused), nothing else.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from portal.dynamo import client
from portal.dynamo.client import Item
from portal.errors import Unavailable
from portal.isolation import guard
from portal.schema import keys, registry, tables

__all__ = [
    "Action",
    "Condition",
    "Page",
    "TenantRepository",
    "Transaction",
    "batch_get",
    "batch_put",
    "query_request",
    "write",
]

_I = TypeVar("_I", bound=Item)

TRANSACTION_LIMIT = 100  # members of one TransactWriteItems; AWS, "Quotas in Amazon DynamoDB"
BATCH_GET_LIMIT = 100  # keys of one BatchGetItem
BATCH_WRITE_LIMIT = 25  # members of one BatchWriteItem
ITEM_LIMIT = 400 * 1024  # bytes of one item, names included

TenantKey = Callable[..., str]  # a key builder whose first argument is the tenant id


@dataclass(frozen=True)
class Page:
    """Raw items of one Query in key order, and where the next one starts (None at the end)."""

    items: list[dict[str, Any]]
    last_key: dict[str, Any] | None


@dataclass
class Transaction:
    """Members of one all-or-nothing write, sent in the order given, so that reasons line up with members.

    PynamoDB's own TransactWrite reorders members by kind; its serialisation is used, its ordering is not.
    """

    members: list[dict[str, Any]] = field(default_factory=list)

    def put(self, item: Item, *, condition: Condition | None = None) -> None:
        self._add("Put", item.get_save_kwargs_from_instance(condition=condition), condition)

    def update(self, item: Item, actions: list[Action], *, condition: Condition | None = None) -> None:
        """Update attributes of the stored item that has this item's key. A refusal carries the stored item."""
        self._add("Update", item.get_update_kwargs_from_instance(actions=actions, condition=condition), condition)

    def delete(self, item: Item, *, condition: Condition | None = None) -> None:
        self._add("Delete", item.get_delete_kwargs_from_instance(condition=condition), condition)

    def check(self, item: Item, condition: Condition) -> None:
        """Refuse all of it unless the stored item that has this item's key meets the condition."""
        self._add("ConditionCheck", item.get_delete_kwargs_from_instance(condition=condition), condition)

    def _add(self, kind: str, member: dict[str, Any], condition: Condition | None) -> None:
        if condition is not None:
            member["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        self.members.append({kind: member})

    def __len__(self) -> int:
        return len(self.members)


def write(connection: client.SharedConnection, transaction: Transaction, *, token: str | None = None) -> None:
    """Send a transaction. `token` (up to 36 characters) makes a repeated send within 10 minutes do nothing.

    Raises TransactionRefused with one reason per member, and ValueError above TRANSACTION_LIMIT.
    """
    if len(transaction) > TRANSACTION_LIMIT:
        raise ValueError(f"a transaction has at most {TRANSACTION_LIMIT} members, not {len(transaction)}")
    connection.dispatch(
        "TransactWriteItems",
        {"TransactItems": transaction.members, "ClientRequestToken": token or str(uuid.uuid4())},
    )


def batch_get(
    connection: client.SharedConnection,
    wanted: Sequence[tuple[type[Item], str, str | None]],
    *,
    consistent: bool = False,
) -> list[Item | None]:
    """Up to 100 items of any tables in one round trip: `(model, partition key, sort key)` to items, None where absent.

    Keys that the engine left unprocessed are asked for again, at most four times, then Unavailable.
    """
    order: list[tuple[type[Item], dict[str, Any]]] = []
    request: dict[str, dict[str, Any]] = {}
    for model, hash_key, range_key in wanted:
        key: dict[str, Any] = {model.table.hash: {"S": hash_key}}
        if model.table.range:
            key[model.table.range] = {"S": range_key}
        order.append((model, key))
        asked = request.setdefault(model.Meta.table_name, {"Keys": [], "ConsistentRead": consistent})["Keys"]
        if key not in asked:
            asked.append(key)
    found = _batch_get_raw(connection, request)
    results: list[Item | None] = []
    for model, key in order:
        rows = found.get(model.Meta.table_name, ())
        raw = next((row for row in rows if all(row.get(k) == v for k, v in key.items())), None)
        results.append(model.from_raw_data(raw) if raw else None)
    return results


def _batch_get_raw(
    connection: client.SharedConnection, request: dict[str, dict[str, Any]]
) -> dict[str, list[dict[str, Any]]]:
    """The raw items of a BatchGetItem by table, in no order."""
    found: dict[str, list[dict[str, Any]]] = {}
    for attempt in range(4):
        answer = connection.dispatch("BatchGetItem", {"RequestItems": request})
        for name, items in answer["Responses"].items():
            found.setdefault(name, []).extend(items)
        request = answer.get("UnprocessedKeys") or {}
        if not request:
            break
        time.sleep(0.02 * 2**attempt)
    else:
        raise Unavailable("The database did not return every item.")
    return found


def batch_put(connection: client.SharedConnection, items: Iterable[Item]) -> None:
    """Write items in groups of 25 without a transaction: for seeds and imports, which write them again on a rerun."""
    pending = [(i.Meta.table_name, {"PutRequest": {"Item": i.serialize()}}) for i in items]
    attempt = 0
    while pending:
        group, pending = pending[:BATCH_WRITE_LIMIT], pending[BATCH_WRITE_LIMIT:]
        request: dict[str, list[dict[str, Any]]] = {}
        for name, member in group:
            request.setdefault(name, []).append(member)
        answer = connection.dispatch("BatchWriteItem", {"RequestItems": request})
        left = [(name, m) for name, ms in (answer.get("UnprocessedItems") or {}).items() for m in ms]
        if left:
            attempt += 1
            if attempt > 8:
                raise Unavailable("The database did not take every item.")
            time.sleep(0.02 * 2**attempt)
            pending = left + pending


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
    """The parameters of one Query of one partition; see `TenantRepository.query`."""
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


class TenantRepository:
    """All that one tenant's code may do with the database."""

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = keys.tenant(tenant_id)

    def __repr__(self) -> str:
        return f"TenantRepository({self.tenant_id})"

    def _send(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Every call of a tenant goes out here, in its tenant's name: guard and credentials ask for it."""
        with guard.acting_for(self.tenant_id):
            answer: dict[str, Any] = client.connection("tenant").dispatch(operation, request)
        return answer

    def key(self, build: TenantKey, *args: Any) -> str:
        """A key of this tenant: `repository.key(keys.ticket, 7)`."""
        return build(self.tenant_id, *args)

    def get(
        self, model: type[_I], build: TenantKey, *args: Any, sort: str | None = None, consistent: bool = False
    ) -> _I | None:
        """One item or None: one GetItem."""
        key: dict[str, Any] = {model.table.hash: {"S": self.key(build, *args)}}
        if model.table.range:
            key[model.table.range] = {"S": sort}
        answer = self._send("GetItem", {"TableName": model.Meta.table_name, "Key": key, "ConsistentRead": consistent})
        raw = answer.get("Item")
        return model.from_raw_data(raw) if raw else None

    def get_many(
        self, model: type[_I], wanted: Sequence[tuple[TenantKey, tuple[Any, ...], str | None]]
    ) -> list[_I | None]:
        """Up to 100 items, each by key builder, its arguments and sort key: one consistent BatchGetItem."""
        asked = [(model, self.key(build, *args), sort) for build, args, sort in wanted]
        with guard.acting_for(self.tenant_id):
            return batch_get(client.connection("tenant"), asked, consistent=True)  # type: ignore[return-value]

    def get_raw(self, table: tables.Table, build: TenantKey, args: Iterable[Any], *, sort: str) -> list[dict[str, Any]]:
        """The raw items that exist among up to 100 of one kind, in no order: one consistent BatchGetItem."""
        wanted = [{table.hash: {"S": self.key(build, a)}, table.range or "": {"S": sort}} for a in args]
        with guard.acting_for(self.tenant_id):
            found = _batch_get_raw(
                client.connection("tenant"), {table.full_name: {"Keys": wanted, "ConsistentRead": True}}
            )
        return found.get(table.full_name, [])

    def query(
        self,
        table: tables.Table,
        build: TenantKey,
        *args: Any,
        index: tables.Index | None = None,
        begins_with: str | None = None,
        between: tuple[str, str] | None = None,
        descending: bool = False,
        limit: int | None = None,
        start: dict[str, Any] | None = None,
        consistent: bool = False,
    ) -> Page:
        """One Query of one partition, at most 1 MB. `begins_with` or `between` (inclusive) narrow the sort key.

        `start` is an exclusive start key: a former page's `last_key`.
        """
        request = query_request(
            table,
            self.key(build, *args),
            index=index,
            begins_with=begins_with,
            between=between,
            descending=descending,
            limit=limit,
            start=start,
            consistent=consistent,
        )
        answer = self._send("Query", request)
        return Page(answer["Items"], answer.get("LastEvaluatedKey"))

    def increment(self, model: type[_I], build: TenantKey, *args: Any, sort: str, by: int = 1) -> _I:
        """Add to the attribute `last` of a counter and return its item: one UpdateItem.

        A lost answer skips numbers, never repeats one.
        """
        table = model.table
        answer = self._send(
            "UpdateItem",
            {
                "TableName": table.full_name,
                "Key": {table.hash: {"S": self.key(build, *args)}, str(table.range): {"S": sort}},
                "UpdateExpression": "ADD #n :by",
                "ExpressionAttributeNames": {"#n": "last"},
                "ExpressionAttributeValues": {":by": {"N": str(by)}},
                "ReturnValues": "ALL_NEW",
            },
        )
        return model.from_raw_data(answer["Attributes"])

    def update(self, item: Item, actions: list[Action], *, condition: Condition | None = None) -> dict[str, Any]:
        """Update the stored item that has this item's key, made where it is missing, and return it, raw.

        Raises ConditionFailed with the stored item. A lost answer is sent again, and may be refused the second time.
        """
        self._refuse_foreign_key(str(getattr(item, item.table.hash)))
        request = item.get_update_kwargs_from_instance(actions=actions, condition=condition)
        if condition is not None:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        stored: dict[str, Any] = self._send("UpdateItem", {**request, "ReturnValues": "ALL_NEW"})["Attributes"]
        return stored

    def transact(self, transaction: Transaction, *, token: str | None = None) -> None:
        """All of the transaction's writes or none. Raises TransactionRefused."""
        self._refuse_foreign(transaction.members)
        with guard.acting_for(self.tenant_id):
            write(client.connection("tenant"), transaction, token=token)

    def put_all(self, items: Sequence[Item]) -> None:
        """Write many items without a transaction; see `batch_put`."""
        for item in items:
            self._refuse_foreign_key(str(getattr(item, item.table.hash)))
        with guard.acting_for(self.tenant_id):
            batch_put(client.connection("tenant"), items)

    def _refuse_foreign(self, members: list[dict[str, Any]]) -> None:
        hashes = {t.full_name: t.hash for t in registry.tables()}
        for member in members:
            ((kind, body),) = member.items()
            key = (body["Item"] if kind == "Put" else body["Key"])[hashes[body["TableName"]]]["S"]
            self._refuse_foreign_key(key)

    def _refuse_foreign_key(self, key: str) -> None:
        if not keys.belongs_to(self.tenant_id, key):
            raise ValueError("a tenant's repository was handed an item of another tenant")
