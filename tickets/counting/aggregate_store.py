"""Read and write aggregates as the stream worker, under its own policy and guard.

A change of an aggregate names the tenant whose changes are being applied; the guard refuses any key of another one.
Errors: those of `portal.errors`, here also Rejected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.isolation import guard
from portal.streams import worker
from tickets.counting import keys
from tickets.ticket.tables import TICKETS


def update(tenant_id: str, sort_key: str, **request: Any) -> tuple[dict[str, Any], float]:
    """One UpdateItem of an aggregate: its attributes as `ReturnValues` asks for them, and the write units consumed.

    Raises ConditionFailed, and Rejected where no repetition can succeed.
    """
    key = {"pk": {"S": keys.aggregate(tenant_id)}, "sk": {"S": sort_key}}
    with guard.acting_for(tenant_id):
        answer = worker.dispatch(
            "UpdateItem",
            {"TableName": TICKETS.full_name, "Key": key, "ReturnConsumedCapacity": "TOTAL", **request},
        )
    return answer.get("Attributes", {}), float(answer.get("ConsumedCapacity", {}).get("CapacityUnits", 0))


def aggregates(tenant_id: str) -> list[dict[str, Any]]:
    """All aggregate items of a tenant, raw, read consistently."""
    found: list[dict[str, Any]] = []
    request: dict[str, Any] = {
        "TableName": TICKETS.full_name,
        "KeyConditionExpression": "#h = :h",
        "ExpressionAttributeNames": {"#h": "pk"},
        "ExpressionAttributeValues": {":h": {"S": keys.aggregate(tenant_id)}},
        "ConsistentRead": True,
    }
    while True:
        with guard.acting_for(tenant_id):
            answer = worker.dispatch("Query", request)
        found += answer["Items"]
        if not answer.get("LastEvaluatedKey"):
            return found
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def delete(
    tenant_id: str, sort_key: str, *, condition: str, names: Mapping[str, str], values: Mapping[str, Any]
) -> None:
    """Remove an aggregate item. Raises ConditionFailed."""
    request = {
        "TableName": TICKETS.full_name,
        "Key": {"pk": {"S": keys.aggregate(tenant_id)}, "sk": {"S": sort_key}},
        "ConditionExpression": condition,
        "ExpressionAttributeNames": dict(names),
        "ExpressionAttributeValues": dict(values),
    }
    with guard.acting_for(tenant_id):
        worker.dispatch("DeleteItem", request)
