"""Read and write aggregates as the stream worker, under its own policy and guard.

Every request names the tenant whose changes are being applied; the guard refuses any key of another one.
Errors: those of `portal.errors`, here also Rejected.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from portal.dynamo.batches import BATCH_GET_LIMIT
from portal.dynamo.client import fan_out
from portal.errors import Throttled, TransactionRefused
from portal.isolation import guard
from portal.streams import worker
from tickets.counting import stored
from tickets.ticket.stored import TICKETS

_TRIES: Final = 6  # for keys that the engine left unprocessed

Raw = dict[str, Any]


@dataclass
class Bill:
    """Counts the updates that were sent and the write units that they took."""

    updates: int = 0
    write_units: float = 0.0


def get(tenant_id: str, sort_key: str) -> Raw:
    """Read one item consistently; return {} where there is none."""
    request = {"TableName": TICKETS.full_name, "Key": _key(tenant_id, sort_key), "ConsistentRead": True}
    item: Raw = _send(tenant_id, "GetItem", request).get("Item", {})
    return item


def get_many(tenant_id: str, sort_keys: Sequence[str]) -> dict[str, Raw]:
    """Read up to 100 items consistently; return those that exist, by sort key."""
    if len(sort_keys) > BATCH_GET_LIMIT:
        raise ValueError(f"at most {BATCH_GET_LIMIT} items are read at once")
    items: dict[str, Raw] = {}
    left: list[Raw] = [_key(tenant_id, sort_key) for sort_key in sort_keys]
    for attempt in range(_TRIES):
        if not left:
            return items
        time.sleep(0 if not attempt else 0.02 * 2**attempt)
        request = {"RequestItems": {TICKETS.full_name: {"Keys": left, "ConsistentRead": True}}}
        answer = _send(tenant_id, "BatchGetItem", request)
        items |= {raw["sk"]["S"]: raw for raw in answer["Responses"].get(TICKETS.full_name, [])}
        left = (answer.get("UnprocessedKeys") or {}).get(TICKETS.full_name, {}).get("Keys", [])
    raise Throttled("The database did not return every aggregate.")


def query(tenant_id: str, begins_with: str = "") -> Iterator[Raw]:
    """Yield all aggregate items of a tenant, or those whose sort keys begin so, read consistently."""
    request: Raw = {
        "TableName": TICKETS.full_name,
        "KeyConditionExpression": "#h = :h" + (" AND begins_with (#r, :r)" if begins_with else ""),
        "ExpressionAttributeNames": {"#h": "pk"} | ({"#r": "sk"} if begins_with else {}),
        "ExpressionAttributeValues": {":h": {"S": stored.aggregate(tenant_id)}}
        | ({":r": {"S": begins_with}} if begins_with else {}),
        "ConsistentRead": True,
    }
    while True:
        answer = _send(tenant_id, "Query", request)
        yield from answer["Items"]
        if not answer.get("LastEvaluatedKey"):
            return
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def update(tenant_id: str, sort_key: str, bill: Bill | None = None, **request: Any) -> Raw:
    """Send one UpdateItem, and return the item's attributes as `ReturnValues` asks for them.

    Raises ConditionFailed, and Rejected where no repetition can succeed.
    """
    request |= {"TableName": TICKETS.full_name, "Key": _key(tenant_id, sort_key), "ReturnConsumedCapacity": "TOTAL"}
    attributes: Raw = _send(tenant_id, "UpdateItem", request, bill).get("Attributes", {})
    return attributes


def transact(tenant_id: str, members: Sequence[Raw], bill: Bill | None = None, *, names: Sequence[str] = ()) -> None:
    """Write all of these or nothing; sent again after a lost answer, they are done once.

    Raises TransactionRefused, by these names of the members, and Rejected where no repetition can succeed.
    """
    request = {
        "TransactItems": list(members),
        "ClientRequestToken": str(uuid.uuid4()),
        "ReturnConsumedCapacity": "TOTAL",
    }
    try:
        _send(tenant_id, "TransactWriteItems", request, bill)
    except TransactionRefused as refused:
        refused.names = (*names,)
        raise


def put_all(tenant_id: str, items: Mapping[str, Mapping[str, Any]], bill: Bill | None = None) -> None:
    """Write whole items by sort key, side by side and without a transaction. No role but the seed writes in batches."""
    puts = [put(tenant_id, sort_key, attributes)["Put"] for sort_key, attributes in items.items()]
    _send_all(tenant_id, "PutItem", puts, bill)


def delete_all(tenant_id: str, sort_keys: Iterable[str], bill: Bill | None = None) -> None:
    """Remove items, side by side and without a transaction. One that is not there is no error."""
    deletions = [{"TableName": TICKETS.full_name, "Key": _key(tenant_id, sort_key)} for sort_key in sort_keys]
    _send_all(tenant_id, "DeleteItem", deletions, bill)


def delete(tenant_id: str, sort_key: str, *, unchanged: Mapping[str, Any]) -> None:
    """Remove an item whose attributes have these values, None for those that it lacks. Raises ConditionFailed."""
    names = {f"#a{i}": name for i, name in enumerate(unchanged)}
    values = {f":a{i}": value for i, value in enumerate(unchanged.values()) if value is not None}
    conditions = [f"{n} = {v}" if (v := f":a{n[2:]}") in values else f"attribute_not_exists({n})" for n in names]
    request: Raw = {
        "TableName": TICKETS.full_name,
        "Key": _key(tenant_id, sort_key),
        "ConditionExpression": " AND ".join(conditions),
        "ExpressionAttributeNames": names,
        **({"ExpressionAttributeValues": values} if values else {}),
    }
    _send(tenant_id, "DeleteItem", request)


def put(tenant_id: str, sort_key: str, attributes: Mapping[str, Any], **condition: Any) -> Raw:
    """Return a member of a transaction that writes a whole item."""
    return {"Put": {"TableName": TICKETS.full_name, "Item": {**attributes, **_key(tenant_id, sort_key)}, **condition}}


def updating(tenant_id: str, sort_key: str, request: Mapping[str, Any]) -> Raw:
    """Return a member of a transaction that updates an item."""
    return {"Update": {"TableName": TICKETS.full_name, "Key": _key(tenant_id, sort_key), **request}}


def _key(tenant_id: str, sort_key: str) -> Raw:
    return {"pk": {"S": stored.aggregate(tenant_id)}, "sk": {"S": sort_key}}


def _send_all(tenant_id: str, operation: str, requests: Sequence[Raw], bill: Bill | None) -> None:
    counted = [{**request, "ReturnConsumedCapacity": "TOTAL"} for request in requests]
    for answer in fan_out([partial(_send, tenant_id, operation, request) for request in counted]):
        _charge(bill, answer)


def _send(tenant_id: str, operation: str, request: Raw, bill: Bill | None = None) -> Raw:
    with guard.acting_for(tenant_id):
        answer = worker.dispatch(operation, request)
    _charge(bill, answer)
    return answer


def _charge(bill: Bill | None, answer: Raw) -> None:
    if bill is not None:
        consumed = answer.get("ConsumedCapacity") or []
        several = consumed if isinstance(consumed, list) else [consumed]
        bill.updates += 1
        bill.write_units += sum(float(one.get("CapacityUnits", 0)) for one in several)
