"""What a stream worker may do with the database, under its own policy and guard: aggregates, leases, dead letters.

A change of an aggregate names the tenant whose changes are being applied; the guard refuses any key of another one.
Errors: those of `portal.errors`, here also Rejected.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from portal.dynamo import client, repository
from portal.dynamo.client import Item
from portal.dynamo.repository import Transaction
from portal.errors import Rejected
from portal.isolation import guard
from portal.schema import keys, tables


def connection() -> client.SharedConnection:
    return client.connection("worker")


def update(tenant_id: str, sort_key: str, **request: Any) -> tuple[dict[str, Any], float]:
    """One UpdateItem of an aggregate: its attributes as `ReturnValues` asks for them, and the write units consumed.

    Raises ConditionFailed, and Rejected where no repetition can succeed.
    """
    key = {"pk": {"S": keys.aggregate(tenant_id)}, "sk": {"S": sort_key}}
    with guard.acting_for(tenant_id):
        answer = _dispatch(
            "UpdateItem",
            {"TableName": tables.TICKETS.full_name, "Key": key, "ReturnConsumedCapacity": "TOTAL", **request},
        )
    return answer.get("Attributes", {}), float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0))


def aggregates(tenant_id: str) -> list[dict[str, Any]]:
    """All aggregate items of a tenant, raw, read consistently."""
    found: list[dict[str, Any]] = []
    request: dict[str, Any] = {
        "TableName": tables.TICKETS.full_name,
        "KeyConditionExpression": "#h = :h",
        "ExpressionAttributeNames": {"#h": "pk"},
        "ExpressionAttributeValues": {":h": {"S": keys.aggregate(tenant_id)}},
        "ConsistentRead": True,
    }
    while True:
        with guard.acting_for(tenant_id):
            answer = _dispatch("Query", request)
        found += answer["Items"]
        if not answer.get("LastEvaluatedKey"):
            return found
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def delete(
    tenant_id: str, sort_key: str, *, condition: str, names: Mapping[str, str], values: Mapping[str, Any]
) -> None:
    """Remove an aggregate item. Raises ConditionFailed."""
    request = {
        "TableName": tables.TICKETS.full_name,
        "Key": {"pk": {"S": keys.aggregate(tenant_id)}, "sk": {"S": sort_key}},
        "ConditionExpression": condition,
        "ExpressionAttributeNames": dict(names),
        "ExpressionAttributeValues": dict(values),
    }
    with guard.acting_for(tenant_id):
        _dispatch("DeleteItem", request)


# --- leases and dead letters: items of no tenant ---


def commit(transaction: Transaction) -> None:
    """All of the transaction's writes or none. Raises TransactionRefused."""
    repository.write(connection(), transaction)


def put(item: Item) -> None:
    """Write an item, whatever is there."""
    _dispatch("PutItem", {"TableName": item.table.full_name, "Item": item.serialize()})


def change(item: Item, actions: list[Action], *, condition: Condition | None = None) -> dict[str, Any]:
    """Update the stored item that has this item's key and return it, raw. Raises ConditionFailed with the stored."""
    request = item.get_update_kwargs_from_instance(actions=actions, condition=condition)
    if condition is not None:
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    attributes: dict[str, Any] = _dispatch("UpdateItem", {**request, "ReturnValues": "ALL_NEW"})["Attributes"]
    return attributes


def remove(item: Item) -> None:
    """Delete an item of no tenant, if it is there."""
    _dispatch("DeleteItem", item.get_delete_kwargs_from_instance())


def items(model: type[Item], partition: str, *, consistent: bool = False) -> Iterator[Any]:
    """All items of one partition of a worker's table, in key order, page by page."""
    request: dict[str, Any] = {
        "TableName": model.table.full_name,
        "KeyConditionExpression": "#h = :h",
        "ExpressionAttributeNames": {"#h": model.table.hash},
        "ExpressionAttributeValues": {":h": {"S": partition}},
        "ConsistentRead": consistent,
    }
    while True:
        answer = _dispatch("Query", request)
        for raw in answer["Items"]:
            yield model.from_raw_data(raw)
        if not answer.get("LastEvaluatedKey"):
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _dispatch(operation: str, request: dict[str, Any]) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = connection().dispatch(operation, request)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "ValidationException":
            raise Rejected(error.response["Error"].get("Message", "The database refused it.")) from error
        raise
    return answer
