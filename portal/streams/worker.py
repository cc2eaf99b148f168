"""Read and write what the followers of a stream store, under a policy and guard of their own.

Errors: those of `portal.errors`, here also Rejected.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from botocore.exceptions import ClientError
from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from portal.dynamo import client
from portal.dynamo.client import Item
from portal.dynamo.transaction import Transaction, write
from portal.errors import Rejected
from portal.schema.tables import Index


def connection() -> client.SharedConnection:
    return client.connection("worker")


def commit(transaction: Transaction) -> None:
    """Write all of the transaction or nothing. Raises TransactionRefused."""
    write(connection(), transaction)


def put(item: Item) -> None:
    """Write an item, whatever is there."""
    dispatch("PutItem", {"TableName": item.table.full_name, "Item": item.serialize()})


def change(item: Item, actions: list[Action], *, condition: Condition | None = None) -> dict[str, Any]:
    """Update the stored item that has this item's key and return it, raw. Raises ConditionFailed with the stored."""
    request = item.get_update_kwargs_from_instance(actions=actions, condition=condition)
    if condition is not None:
        request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    attributes: dict[str, Any] = dispatch("UpdateItem", {**request, "ReturnValues": "ALL_NEW"})["Attributes"]
    return attributes


def remove(item: Item, *, condition: Condition | None = None) -> None:
    """Delete an item of no tenant, if it is there. Raises ConditionFailed."""
    dispatch("DeleteItem", item.get_delete_kwargs_from_instance(condition=condition))


def items(model: type[Item], partition: str, *, index: Index | None = None, consistent: bool = False) -> Iterator[Any]:
    """Yield all items of one partition of a worker's table, or of an index, in key order, page by page."""
    request: dict[str, Any] = {
        "TableName": model.table.full_name,
        "KeyConditionExpression": "#h = :h",
        "ExpressionAttributeNames": {"#h": index.hash if index else model.table.hash},
        "ExpressionAttributeValues": {":h": {"S": partition}},
        "ConsistentRead": consistent,
        **({"IndexName": index.name} if index else {}),
    }
    while True:
        answer = dispatch("Query", request)
        for raw in answer["Items"]:
            yield model.from_raw_data(raw)
        if not answer.get("LastEvaluatedKey"):
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def dispatch(operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """Send a request of the worker. Raises Rejected where no repetition can succeed."""
    try:
        answer: dict[str, Any] = connection().dispatch(operation, request)
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "ValidationException":
            raise Rejected(error.response["Error"].get("Message", "The database refused it.")) from error
        raise
    return answer
