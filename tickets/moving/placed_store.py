"""Read and write what one tenant has at one placement, in the role of the commands that take up a whole tenant."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from portal.dynamo import client, fencing
from portal.dynamo.models import RawItems
from portal.dynamo.placement import Placement, at
from portal.dynamo.store import Store
from portal.dynamo.transaction import Transaction, write
from portal.isolation import guard
from portal.schema import keys
from portal.schema.tables import Table
from tickets.ticket.stored import TICKETS

Raw = dict[str, Any]


@dataclass(frozen=True)
class PlacedStore:
    """The tables of one tenant at one placement that a move copies; where none is named, that of the tickets."""

    tenant_id: str
    placement: Placement

    def collection(self, partition: str, *, begins_with: str | None = None, limit: int | None = None) -> list[Raw]:
        """Return the raw items of a partition, consistently; with a limit, of its first page alone."""
        raw_items = RawItems(_table_of(partition))
        if limit is not None:
            return self._store.query(raw_items, partition, begins_with=begins_with, limit=limit, consistent=True).items
        return [*self._store.query_all(raw_items, partition, begins_with=begins_with, consistent=True)]

    @property
    def _store(self) -> Store:
        return Store("lifecycle", self.tenant_id, self.placement)

    def get(self, partition: str, sort: str) -> Raw | None:
        """Return a raw item or None: one consistent read."""
        request = {"TableName": TICKETS.full_name, "Key": _key(partition, sort), "ConsistentRead": True}
        found: Raw | None = self.send("GetItem", request).get("Item")
        return found

    def update(
        self, partition: str, sort: str, expression: str, *, values: dict[str, Raw] | None = None, condition: str = ""
    ) -> None:
        """Update an item by an expression that names attributes as `#name`, and `values` as `:name`.

        Raises ConditionFailed.
        """
        names = {word.strip("(),") for word in f"{expression} {condition}".replace("(", " ").split()}
        request: Raw = {
            "TableName": TICKETS.full_name,
            "Key": _key(partition, sort),
            "UpdateExpression": expression,
            "ExpressionAttributeNames": {name: name[1:] for name in names if name.startswith("#")},
            **({"ConditionExpression": condition} if condition else {}),
            **({"ExpressionAttributeValues": {f":{name}": v for name, v in values.items()}} if values else {}),
        }
        self.send("UpdateItem", request)

    def write(self, transaction: Transaction) -> None:
        """Write all of it or nothing. Raises TransactionRefused."""
        with self.connection() as connection:
            write(connection, transaction)

    def delete(self, partition: str, sort: str) -> None:
        """Delete an item, if it is there."""
        self.send("DeleteItem", {"TableName": TICKETS.full_name, "Key": _key(partition, sort)})

    def send(self, operation: str, request: Raw) -> Raw:
        """Send a request for this tenant to this placement."""
        return self._store.send(operation, request)

    @contextmanager
    def connection(self) -> Iterator[client.SharedConnection]:
        """Return the connection, acting for this tenant at this placement while it is used."""
        with guard.acting_for(keys.tenant(self.tenant_id)), at(self.placement):
            yield client.connection("lifecycle")


def member(raw: Raw) -> Raw:
    """Return the key of a raw item as a member of a transaction names it."""
    table = _table_of(raw[TICKETS.hash]["S"])
    return {"TableName": table.full_name, "Key": {name: raw[name] for name in table.key_names}}


def _table_of(partition: str) -> Table:
    return fencing.table_of(partition) or TICKETS


def _key(partition: str, sort: str) -> Raw:
    return {TICKETS.hash: {"S": partition}, str(TICKETS.range): {"S": sort}}
