"""Read and write items as models, in the name of a role: the one way from the product to the tables.

A store of a tenant forms its keys itself: a caller names a key builder of its package and its arguments, and the store
puts the tenant in front. A view or rule therefore cannot ask for another tenant's item, whatever its input says. A
partition key that is given as a text has to be the tenant's own. There is no scan.

Errors: those of `portal.errors` (Unavailable, Throttled, ConditionFailed, TransactionRefused; Rejected for workers).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Generic, TypeVar

from botocore.exceptions import ClientError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.operand import Path
from pynamodb.expressions.update import Action

from portal.dynamo import client, fencing
from portal.dynamo.client import Item
from portal.dynamo.models import IndexModel, Kinds, RawItems, Readable
from portal.dynamo.placement import POOL, Location, LocationSource, Placement, StatedLocation, at
from portal.dynamo.retry import retrying
from portal.dynamo.transaction import TRANSACTION_LIMIT, Transaction, write
from portal.errors import (
    TRANSACTION_CONFLICT,
    ConditionFailed,
    Conflict,
    PortalError,
    Rejected,
    Throttled,
    TransactionRefused,
)
from portal.isolation import guard
from portal.schema import keys, registry
from portal.schema.registry import Role, Table
from portal.schema.row_forms import ITEM_LIMIT

# The words in which rules speak of reads and writes; they import them from here.
__all__ = [
    "BATCH_GET_LIMIT",
    "ITEM_LIMIT",
    "TRANSACTION_LIMIT",
    "Action",
    "Condition",
    "IndexModel",
    "Item",
    "Kinds",
    "Page",
    "RawItems",
    "Store",
    "Transaction",
]

_T = TypeVar("_T")
_I = TypeVar("_I", bound=Item)

BATCH_GET_LIMIT: Final = 100  # keys of one BatchGetItem; AWS, "Quotas in Amazon DynamoDB"
BATCH_WRITE_LIMIT: Final = 25  # members of one BatchWriteItem
_BATCH_READS: Final = 5
_BATCH_WRITES: Final = 9
_TRIES_AT_FENCES: Final = 8
_UPDATED: Final = "the item"
_PUT: Final = "the new item"

TenantKey = Callable[..., str]  # a key builder whose first argument is the tenant id
Key = TenantKey | str
Wanted = tuple[type[Item], str, str | None]  # a model, a partition key and a sort key


class ForeignKey(ValueError):
    """A store of one tenant was handed a key of another one, and has sent nothing."""


class Store:
    """Everything that a role may do with the database, for one tenant or for none.

    `where` is the placement of the tenant's content, or what knows it while the tenant is moved. A store of no tenant
    sends its requests to the placement at hand.
    """

    def __init__(self, role: Role, tenant_id: str | None = None, where: Placement | LocationSource = POOL) -> None:
        self.role = role
        self._tenant_id = keys.tenant(tenant_id) if tenant_id is not None else None
        self._location = StatedLocation(Location(where)) if isinstance(where, Placement) else where

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.role}, {self._tenant_id})"

    @property
    def tenant_id(self) -> str:
        """Return the tenant of this store. Raises ValueError where it has none."""
        if self._tenant_id is None:
            raise ValueError(f"a store of the role {self.role} has no tenant")
        return self._tenant_id

    @property
    def placement(self) -> Placement:
        return self._location.current().placement

    @property
    def extra_members(self) -> int:
        """Count the members that a move under way adds to each transaction on what it copies."""
        return fencing.MEMBERS if self._location.current().move else 0

    def as_role(self, role: Role) -> Store:
        """Return a store of another role for the same tenant."""
        return Store(role, self._tenant_id, self._location)

    # --- keys and connections ---

    def key(self, build: Key, *args: Any) -> str:
        """Return a partition key: `store.key(keys.ticket, 7)`. Raises ValueError for another tenant's."""
        if callable(build):
            return build(self.tenant_id, *args)
        return build

    def wanted(self, model: type[Item], build: Key, *args: Any, sort: str | None = None) -> Wanted:
        """Name an item for `get_all`."""
        return model, self._partition(model.table, build, args), sort

    def _partition(self, table: Table, build: Key, args: tuple[Any, ...]) -> str:
        key = self.key(build, *args)
        if self._tenant_id is not None and table.scope == "tenant" and not callable(build):
            self._refuse_foreign_key(key)
        return key

    @contextmanager
    def here(self) -> Iterator[None]:
        """Act for the tenant where its content is, inside: for what reaches it beside this store."""
        with guard.acting_for(self.tenant_id), at(self.placement):
            yield

    @contextmanager
    def _connection(self, placement: Placement | None = None) -> Iterator[client.SharedConnection]:
        """Return the role's connection, acting for the tenant at its placement: guard and credentials ask for both.

        Raises Rejected where a worker's request can never succeed.
        """
        try:
            if self._tenant_id is None:
                yield client.connection(self.role)
                return
            with guard.acting_for(self._tenant_id), at(placement or self.placement):
                yield client.connection(self.role)
        except ClientError as error:
            if self.role == "worker" and error.response.get("Error", {}).get("Code") == "ValidationException":
                raise Rejected(error.response["Error"].get("Message", "The database refused it.")) from error
            raise

    def send(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request as DynamoDB takes it. Raises Rejected where a worker's can never succeed."""
        with self._connection() as connection:
            answer: dict[str, Any] = connection.dispatch(operation, request)
        return answer

    # --- reading ---

    def get(
        self, model: type[_I], build: Key, *args: Any, sort: str | None = None, consistent: bool = False
    ) -> _I | None:
        """Read one item or None: one GetItem."""
        key = _key(model.table, self._partition(model.table, build, args), sort)
        request = {"TableName": model.table.full_name, "Key": key, "ConsistentRead": consistent}
        raw = self.send("GetItem", request).get("Item")
        return model.from_raw_data(raw) if raw else None

    def get_many(
        self,
        model: Readable[_T],
        wanted: Sequence[tuple[Key, tuple[Any, ...], str | None]],
        *,
        consistent: bool = True,
    ) -> list[_T | None]:
        """Read items of one table, each by key builder, its arguments and sort key; None where one is absent.

        One BatchGetItem for each hundred of them.
        """
        named = [_key(model.table, self._partition(model.table, build, args), sort) for build, args, sort in wanted]
        return self._batch([(model, key) for key in named], consistent)

    def get_all(self, wanted: Sequence[Wanted], *, consistent: bool = False) -> list[Any]:
        """Read items of any tables, each as `wanted` names it; None where one is absent.

        One BatchGetItem for each hundred of them.
        """
        named = [(m, _key(m.table, self._partition(m.table, partition, ()), sort)) for m, partition, sort in wanted]
        return self._batch(named, consistent)

    def _batch(self, wanted: Sequence[tuple[Any, dict[str, Any]]], consistent: bool) -> list[Any]:
        stored: dict[tuple[str, ...], dict[str, Any]] = {}
        places = [(model.table.full_name, *_texts(key)) for model, key in wanted]
        named = {place: (model.table, key) for place, (model, key) in zip(places, wanted, strict=True)}
        for some in chunked(named.items(), BATCH_GET_LIMIT):
            request: dict[str, dict[str, Any]] = {}
            for (name, *_), (_, key) in some:
                request.setdefault(name, {"Keys": [], "ConsistentRead": consistent})["Keys"].append(key)
            with self._connection() as connection:
                found = batch_get_raw(connection, request)
            for name, key_names in {name: table.key_names for (name, *_), (table, _) in some}.items():
                for raw in found.get(name, ()):
                    stored[(name, *(raw[part]["S"] for part in key_names))] = raw
        items = map(stored.get, places)
        return [model.from_raw_data(raw) if raw else None for (model, _), raw in zip(wanted, items, strict=True)]

    def query(
        self,
        model: Readable[_T],
        build: Key,
        *args: Any,
        begins_with: str | None = None,
        between: tuple[str, str] | None = None,
        descending: bool = False,
        limit: int | None = None,
        start: dict[str, Any] | None = None,
        consistent: bool = False,
        containing: Sequence[tuple[str, str]] = (),
    ) -> Page[_T]:
        """Send one Query of one partition, at most 1 MB. `begins_with` or `between` (inclusive) narrow the sort key.

        `containing` are names of attributes and texts: only items of which one attribute contains its text come back.
        The Query costs, and `limit` counts, what was read.

        The model of an index's rows queries the index. `start` is an exclusive start key: a former page's `last_key`.
        """
        hash_name, range_name = (model.gsi or model.table).hash, (model.gsi or model.table).range or ""
        condition, names = "#h = :h", {"#h": hash_name}
        values = {":h": {"S": self._partition(model.table, build, args)}}
        if begins_with is not None:
            condition += " AND begins_with (#r, :r)"
            names["#r"], values[":r"] = range_name, {"S": begins_with}
        elif between is not None:
            condition += " AND #r BETWEEN :lo AND :hi"
            names["#r"], values[":lo"], values[":hi"] = range_name, {"S": between[0]}, {"S": between[1]}
        for n, (name, text) in enumerate(containing):
            names[f"#f{n}"], values[f":f{n}"] = name, {"S": text}
        request: dict[str, Any] = {
            "TableName": model.table.full_name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not descending,
        }
        stated = {
            "IndexName": model.gsi.name if model.gsi else None,
            "Limit": limit,
            "ExclusiveStartKey": start,
            "ConsistentRead": consistent or None,
            "FilterExpression": " OR ".join(f"contains (#f{n}, :f{n})" for n in range(len(containing))) or None,
        }
        request |= {name: value for name, value in stated.items() if value is not None}
        answer = self.send("Query", request)
        return Page([*map(model.from_raw_data, answer["Items"])], answer.get("LastEvaluatedKey"))

    def query_pages(self, model: Readable[_T], build: Key, *args: Any, **how: Any) -> Iterator[Page[_T]]:
        """Read all pages of one partition as they are taken; `how` is as in `query`, `limit` that of each page."""
        return all_pages(lambda start: self.query(model, build, *args, start=start, **how))

    def query_all(self, model: Readable[_T], build: Key, *args: Any, **how: Any) -> Iterator[_T]:
        """Read all items of one partition, page by page as they are taken; `how` is as in `query`."""
        return (item for page in self.query_pages(model, build, *args, **how) for item in page.items)

    # --- writing ---

    def put(self, item: Item, *, condition: Condition | None = None) -> None:
        """Write an item in place of the stored one. Raises ConditionFailed with the stored one."""
        self._write_one("PutItem", item, item.get_save_kwargs_from_instance(condition=condition))

    def put_new(self, item: Item) -> None:
        """Write an item unless there is one with its key, for what writes it again after a kill: one PutItem, and a
        transaction while the tenant is moved."""
        is_new = Path(item.table.hash).does_not_exist()
        if self._known_for_writing().move is None:
            with suppress(ConditionFailed):
                self.put(item, condition=is_new)
            return
        transaction = Transaction()
        transaction.put(item, name=_PUT, condition=is_new)
        try:
            self.transact(transaction)
        except TransactionRefused as refused:
            reason = refused.reason(_PUT)
            if reason is None or reason.code == TRANSACTION_CONFLICT:
                raise Throttled("The database is busy.") from refused

    def delete(self, item: Item, *, condition: Condition | None = None) -> None:
        """Delete the stored item that has this item's key, if there is one. Raises ConditionFailed with it."""
        self._write_one("DeleteItem", item, item.get_delete_kwargs_from_instance(condition=condition))

    def _write_one(self, operation: str, item: Item, request: dict[str, Any]) -> dict[str, Any]:
        """Send a write that no move has to know of."""
        partition = self._own_partition(item)
        if self._known_for_writing().move and fencing.is_copied(item.table, partition):
            raise Conflict("This desk is being moved to another place. Write this in a transaction meanwhile.")
        if "ConditionExpression" in request:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        return self.send(operation, request)

    def update(self, item: _I, actions: list[Action], *, condition: Condition | None = None) -> _I:
        """Update the stored item that has this item's key, made where it is missing, and return it as stored then.

        Raises ConditionFailed with the stored item. A lost answer is sent again, and may be refused the second time.
        """
        partition = self._own_partition(item)
        if self._known_for_writing().move and fencing.is_copied(item.table, partition):
            return self._update_fenced(item, actions, condition)
        request = item.get_update_kwargs_from_instance(actions=actions, condition=condition)
        stored = self._write_one("UpdateItem", item, {**request, "ReturnValues": "ALL_NEW"})
        return type(item).from_raw_data(stored["Attributes"])

    def updating(
        self, model: type[Item], sort: str, actions: list[Action], *, condition: Condition
    ) -> Callable[[str], None]:
        """Return what makes one and the same update of the item with this sort key in any partition of the tenant's.

        For many of them: the request is built once, and no item comes back. Raises as `update` does, without the item.
        """
        request = model("", sort).get_update_kwargs_from_instance(actions=actions, condition=condition)

        def update(partition: str) -> None:
            self._refuse_foreign_key(partition)
            if self._known_for_writing().move and fencing.is_copied(model.table, partition):
                self._update_fenced(model(partition, sort), actions, condition)
            else:
                self.send("UpdateItem", {**request, "Key": _key(model.table, partition, sort)})

        return update

    def _update_fenced(self, item: _I, actions: list[Action], condition: Condition | None) -> _I:
        """Do the same as a transaction, which the move that is under way knows of."""
        transaction = Transaction()
        transaction.update(item, actions, name=_UPDATED, condition=condition)
        try:
            self.transact(transaction)
        except TransactionRefused as refused:
            reason = refused.reason(_UPDATED)
            if reason is None or reason.code == TRANSACTION_CONFLICT:
                raise Throttled("The database is busy.") from refused
            raise ConditionFailed("The condition of the write did not hold.", item=reason.item) from refused
        key = item.get_update_kwargs_from_instance(actions=actions)["Key"]
        request = {"TableName": item.table.full_name, "Key": key, "ConsistentRead": True}
        return type(item).from_raw_data(self.send("GetItem", request).get("Item", {}))

    def increment(self, model: type[_I], build: Key, *args: Any, sort: str, by: int = 1) -> _I:
        """Add to the attribute `last` of a counter and return its item: one UpdateItem.

        A lost answer skips numbers, never repeats one. While numbers are held, it waits for the new place.
        """
        table = model.table
        request = {
            "TableName": table.full_name,
            "Key": _key(table, self._partition(table, build, args), sort),
            "UpdateExpression": "ADD #n :by",
            "ExpressionAttributeNames": {"#n": "last"},
            "ExpressionAttributeValues": {":by": {"N": str(by)}},
            "ReturnValues": "ALL_NEW",
        }
        began = time.monotonic()
        while True:
            where = self._known_for_writing()
            try:
                with self._connection(where.placement) as connection:
                    answer = connection.dispatch("UpdateItem", fencing.open_counter(request, where.move))
                return model.from_raw_data(answer["Attributes"])
            except ConditionFailed:
                fencing.wait_while_held(self._location, where, since=began)

    def transact(self, transaction: Transaction, *, token: str | None = None) -> None:
        """Write all of the transaction or nothing; while writes are held, when that has ended, at the new place.

        Raises TransactionRefused, and BeingMoved where they are held for too long.
        """
        if self._tenant_id is None:
            with self._connection() as connection:
                write(connection, transaction, token=token)
            return
        self._refuse_foreign(transaction.members)
        began = time.monotonic()
        while True:
            where = self._known_for_writing()
            try:
                self._write(transaction, where, token)
                return
            except TransactionRefused as refused:
                if not where.move:
                    raise
                if not fencing.is_held(refused):
                    raise fencing.unfenced(refused) from refused
            fencing.wait_while_held(self._location, where, since=began)

    def _write(self, transaction: Transaction, where: Location, token: str | None) -> None:
        def send() -> None:
            sent = fencing.fenced(self.tenant_id, transaction, where.move) if where.move else transaction
            with self._connection(where.placement) as connection:
                write(connection, sent, token=token)

        def again(error: PortalError) -> bool:
            return isinstance(error, TransactionRefused) and fencing.is_crowded(error)

        if where.move:
            retrying(send, again=again, attempts=_TRIES_AT_FENCES)
        else:
            send()

    def put_all(self, items: Sequence[Item]) -> None:
        """Write many items without a transaction, 25 to a BatchWriteItem: for what writes them again on a rerun.

        A tenant's are written in the role of the commands that may write in bulk. Raises Conflict during a move.
        """
        if self._known_for_writing().move is not None:
            raise Conflict("This desk is being moved to another place. Write in bulk when that has ended.")
        for item in items:
            self._own_partition(item)
        store = self.as_role("seed") if self.role == "tenant" else self
        with store._connection() as connection:
            batch_put(connection, items)

    def write_raw(self, members: Sequence[tuple[Table, dict[str, Any]]]) -> None:
        """Send members of BatchWriteItem, 25 at a time: for what copies or deletes items of any kind."""
        with self._connection() as connection:
            batch_write(connection, [(table.full_name, member) for table, member in members])

    def delete_raw(self, table: Table, found: Iterable[Mapping[str, Any]]) -> None:
        """Delete raw items, 25 at a time."""
        keys_of = ({name: raw[name] for name in table.key_names} for raw in found)
        self.write_raw([(table, {"DeleteRequest": {"Key": key}}) for key in keys_of])

    # --- what may be written ---

    def _known_for_writing(self) -> Location:
        """Return where the content is. Raises Conflict where the tenant is being purged: by the time that its purge has
        waited for, whoever was let in before knows of it."""
        where = self._location.current()
        where.refuse_purged()
        return where

    def _own_partition(self, item: Item) -> str:
        partition = str(getattr(item, item.table.hash))
        self._refuse_foreign_key(partition)
        return partition

    def _refuse_foreign(self, members: list[dict[str, Any]]) -> None:
        hashes = {t.full_name: t.hash for t in registry.tables()}
        for member in members:
            ((kind, body),) = member.items()
            key = (body["Item"] if kind == "Put" else body["Key"])[hashes[body["TableName"]]]["S"]
            self._refuse_foreign_key(key)

    def _refuse_foreign_key(self, key: str) -> None:
        if self._tenant_id is not None and not keys.belongs_to(self._tenant_id, key):
            raise ForeignKey("a tenant's store was handed an item of another tenant, or a key that is none of a tenant")


def _key(table: Table, partition: str, sort: str | None) -> dict[str, Any]:
    if table.range and sort is None:
        raise ValueError(f"{table.name} has a sort key: name the item by sort=... as well")
    key: dict[str, Any] = {table.hash: {"S": partition}}
    if table.range:
        key[table.range] = {"S": sort}
    return key


def _texts(key: dict[str, Any]) -> tuple[str, ...]:
    return tuple(value["S"] for value in key.values())


# --- pages ---


@dataclass(frozen=True)
class Page(Generic[_T]):
    """The items of one Query in key order, and where the next one starts (None at the end)."""

    items: list[_T]
    last_key: dict[str, Any] | None


def all_pages(read: Callable[[dict[str, Any] | None], Page[_T]]) -> Iterator[Page[_T]]:
    """Call `read` with each page's start, None for the first, until the last page; one Query for each, when needed."""
    page = read(None)
    yield page
    while page.last_key is not None:
        page = read(page.last_key)
        yield page


# --- batches: what the engine left unprocessed is sent again ---


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

    retrying(read, again=_is_unprocessed, attempts=_BATCH_READS, first=0.02)
    return stored


def batch_put(connection: client.SharedConnection, items: Iterable[Item]) -> None:
    """Write items in groups of 25 without a transaction: for seeds and imports, which write them again on a rerun."""
    batch_write(connection, [(i.table.full_name, {"PutRequest": {"Item": i.serialize()}}) for i in items])


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

    retrying(send, again=_is_unprocessed, attempts=_BATCH_WRITES, first=0.02)
