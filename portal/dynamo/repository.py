"""Read and write for one tenant. There is no scan, and no method takes a key that another tenant could own.

A caller names a key builder of its room and its arguments; the repository puts the tenant in front. A view
or rule therefore cannot ask for another tenant's item, whatever its input says.

Errors: those of `portal.errors` (Unavailable, Throttled, ConditionFailed, TransactionRefused), nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from portal.dynamo import client, fencing
from portal.dynamo.batches import BATCH_GET_LIMIT, batch_get, batch_get_raw, batch_put
from portal.dynamo.client import Item
from portal.dynamo.pages import Page, all_pages, query_request
from portal.dynamo.placement import POOL, Placement, at
from portal.dynamo.retry import retrying
from portal.dynamo.transaction import TRANSACTION_LIMIT, Transaction, write
from portal.dynamo.whereabouts import Knowledge, Patience, Stated, Whereabouts
from portal.errors import TRANSACTION_CONFLICT, ConditionFailed, Conflict, PortalError, Throttled, TransactionRefused
from portal.isolation import guard
from portal.schema import keys, registry, tables
from portal.schema.row_forms import ITEM_LIMIT

# The words in which rules speak of reads and writes; they import them from here.
__all__ = [
    "BATCH_GET_LIMIT",
    "ITEM_LIMIT",
    "TRANSACTION_LIMIT",
    "Action",
    "Condition",
    "Page",
    "TenantRepository",
    "Transaction",
]

_I = TypeVar("_I", bound=Item)

_TRIES_AT_FENCES: Final = 8
_UPDATED: Final = "the item"

TenantKey = Callable[..., str]  # a key builder whose first argument is the tenant id


class TenantRepository:
    """All that one tenant's code may do with the database. `where` is where the content of its desk lies, or what
    knows where that is while it moves."""

    def __init__(self, tenant_id: str, where: Placement | Knowledge = POOL) -> None:
        self.tenant_id = keys.tenant(tenant_id)
        self._knowledge = Stated(Whereabouts(where)) if isinstance(where, Placement) else where

    def __repr__(self) -> str:
        return f"TenantRepository({self.tenant_id})"

    @property
    def placement(self) -> Placement:
        return self._knowledge.current().placement

    @property
    def members_beside(self) -> int:
        """Count the members that each transaction on tickets gets beside its own, while the tenant is being moved."""
        return fencing.MEMBERS if self._knowledge.current().move else 0

    def _known_for_writing(self) -> Whereabouts:
        """Return where it lies. Raises Conflict where the tenant is being purged: by the time that its purge has waited
        for, whoever was let in before knows of it."""
        where = self._knowledge.current()
        where.refuse_purged()
        return where

    @contextmanager
    def here(self) -> Iterator[None]:
        """Act for this tenant where it lies, inside: for what reaches its content beside this repository."""
        with guard.acting_for(self.tenant_id), at(self.placement):
            yield

    @contextmanager
    def _connection(self, placement: Placement | None = None) -> Iterator[client.SharedConnection]:
        """Return the tenants' connection, acting for this tenant where it lies: guard and credentials ask who that
        is."""
        with guard.acting_for(self.tenant_id), at(placement or self.placement):
            yield client.connection("tenant")

    def _send(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        with self._connection() as connection:
            answer: dict[str, Any] = connection.dispatch(operation, request)
        return answer

    def key(self, build: TenantKey, *args: Any) -> str:
        """Return a key of this tenant: `repository.key(keys.ticket, 7)`."""
        return build(self.tenant_id, *args)

    def get(
        self, model: type[_I], build: TenantKey, *args: Any, sort: str | None = None, consistent: bool = False
    ) -> _I | None:
        """Read one item or None: one GetItem."""
        key: dict[str, Any] = {model.table.hash: {"S": self.key(build, *args)}}
        if model.table.range:
            key[model.table.range] = {"S": sort}
        answer = self._send("GetItem", {"TableName": model.Meta.table_name, "Key": key, "ConsistentRead": consistent})
        raw = answer.get("Item")
        return model.from_raw_data(raw) if raw else None

    def get_many(
        self, model: type[_I], wanted: Sequence[tuple[TenantKey, tuple[Any, ...], str | None]]
    ) -> list[_I | None]:
        """Read up to 100 items, each by key builder, its arguments and sort key: one consistent BatchGetItem."""
        addressed = [(model, self.key(build, *args), sort) for build, args, sort in wanted]
        with self._connection() as connection:
            return batch_get(connection, addressed, consistent=True)  # type: ignore[return-value]

    def get_raw(self, table: tables.Table, build: TenantKey, args: Iterable[Any], *, sort: str) -> list[dict[str, Any]]:
        """Read the raw items that exist among up to 100 of one kind, in no order: one consistent BatchGetItem."""
        wanted = [{table.hash: {"S": self.key(build, a)}, table.range or "": {"S": sort}} for a in args]
        with self._connection() as connection:
            stored = batch_get_raw(connection, {table.full_name: {"Keys": wanted, "ConsistentRead": True}})
        return stored.get(table.full_name, [])

    def get_stored(
        self, table: tables.Table, wanted: Sequence[tuple[TenantKey, tuple[Any, ...], str]], *, consistent: bool = False
    ) -> list[dict[str, Any]]:
        """Read the raw items that exist among up to 100, each by key builder, its arguments and sort key, in no order:
        one BatchGetItem."""
        named = [
            {table.hash: {"S": self.key(build, *args)}, str(table.range): {"S": sort}} for build, args, sort in wanted
        ]
        with self._connection() as connection:
            stored = batch_get_raw(connection, {table.full_name: {"Keys": named, "ConsistentRead": consistent}})
        return stored.get(table.full_name, [])

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
        """Send one Query of one partition, at most 1 MB. `begins_with` or `between` (inclusive) narrow the sort key.

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

    def query_pages(self, table: tables.Table, build: TenantKey, *args: Any, **how: Any) -> Iterator[Page]:
        """Read all pages of one partition as they are taken; `how` is as in `query`, `limit` that of each page."""
        return all_pages(lambda start: self.query(table, build, *args, start=start, **how))

    def query_all(self, table: tables.Table, build: TenantKey, *args: Any, **how: Any) -> Iterator[dict[str, Any]]:
        """Read all raw items of one partition, page by page as they are taken; `how` is as in `query`."""
        return (raw for page in self.query_pages(table, build, *args, **how) for raw in page.items)

    def increment(self, model: type[_I], build: TenantKey, *args: Any, sort: str, by: int = 1) -> _I:
        """Add to the attribute `last` of a counter and return its item: one UpdateItem.

        A lost answer skips numbers, never repeats one. While numbers are held, it waits for the new place.
        """
        table = model.table
        request = {
            "TableName": table.full_name,
            "Key": {table.hash: {"S": self.key(build, *args)}, str(table.range): {"S": sort}},
            "UpdateExpression": "ADD #n :by",
            "ExpressionAttributeNames": {"#n": "last"},
            "ExpressionAttributeValues": {":by": {"N": str(by)}},
            "ReturnValues": "ALL_NEW",
        }
        patience = Patience(self._knowledge)
        while True:
            where = self._known_for_writing()
            try:
                with self._connection(where.placement) as connection:
                    answer = connection.dispatch("UpdateItem", fencing.open_counter(request, where.move))
                return model.from_raw_data(answer["Attributes"])
            except ConditionFailed:
                patience.wait(where)

    def update(self, item: Item, actions: list[Action], *, condition: Condition | None = None) -> dict[str, Any]:
        """Update the stored item that has this item's key, made where it is missing, and return it, raw.

        Raises ConditionFailed with the stored item. A lost answer is sent again, and may be refused the second time.
        """
        partition = str(getattr(item, item.table.hash))
        self._refuse_foreign_key(partition)
        if self._known_for_writing().move and fencing.is_copied(item.table, partition):
            return self._update_fenced(item, actions, condition)
        request = item.get_update_kwargs_from_instance(actions=actions, condition=condition)
        if condition is not None:
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        stored: dict[str, Any] = self._send("UpdateItem", {**request, "ReturnValues": "ALL_NEW"})["Attributes"]
        return stored

    def _update_fenced(self, item: Item, actions: list[Action], condition: Condition | None) -> dict[str, Any]:
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
        stored: dict[str, Any] = self._send("GetItem", request).get("Item", {})
        return stored

    def transact(self, transaction: Transaction, *, token: str | None = None) -> None:
        """Write all of the transaction or nothing; while writes are held, when that has ended, at the new place.

        Raises TransactionRefused, and BeingMoved where they are held for too long.
        """
        self._refuse_foreign(transaction.members)
        patience = Patience(self._knowledge)
        while True:
            where = self._known_for_writing()
            try:
                self._write(transaction, where, token)
                return
            except TransactionRefused as refused:
                if not fencing.is_held(refused):
                    raise fencing.unfenced(refused) from refused
            patience.wait(where)

    def _write(self, transaction: Transaction, where: Whereabouts, token: str | None) -> None:
        def send() -> None:
            with self._connection(where.placement) as connection:
                write(connection, fencing.fenced(self.tenant_id, transaction, where.move), token=token)

        def again(error: PortalError) -> bool:
            return isinstance(error, TransactionRefused) and fencing.is_crowded(error)

        retrying(send, again=again, attempts=_TRIES_AT_FENCES)

    def put_all(self, items: Sequence[Item]) -> None:
        """Write many items without a transaction, as the role of the commands that may; see `batch_put`."""
        if self._known_for_writing().move is not None:
            raise Conflict("This desk is being moved to another place. Write in bulk when that has ended.")
        for item in items:
            self._refuse_foreign_key(str(getattr(item, item.table.hash)))
        with self.here():
            batch_put(client.connection("seed"), items)

    def _refuse_foreign(self, members: list[dict[str, Any]]) -> None:
        hashes = {t.full_name: t.hash for t in registry.tables()}
        for member in members:
            ((kind, body),) = member.items()
            key = (body["Item"] if kind == "Put" else body["Key"])[hashes[body["TableName"]]]["S"]
            self._refuse_foreign_key(key)

    def _refuse_foreign_key(self, key: str) -> None:
        if not keys.belongs_to(self.tenant_id, key):
            raise ValueError("a tenant's repository was handed an item of another tenant")
