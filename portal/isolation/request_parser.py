"""Take a request to DynamoDB apart: what AWS would authorise for it, and which keys it would write.

It reads what our own code sends, and a little more. Whatever it does not understand is refused: a parameter, a name, a
shape. A key that is read wrongly would be authorised wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from portal.isolation import expressions, iam, policies
from portal.isolation.expressions import NotUnderstood
from portal.schema import keys, placed_names, registry, tables

__all__ = ["NotUnderstood", "refuse_destruction", "refuse_planted", "requests_of", "tables_of"]

_READS: Final = {"Get": "GetItem"}
_WRITES: Final = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
_CHANGES: Final = {*_WRITES.values(), "PutRequest", "DeleteRequest"} - {"ConditionCheckItem"}
_DELETIONS: Final = {"DeleteItem", "DeleteRequest"}
# Anything else is refused: the parameters of the time before expressions, and those still to come.
_COMMON: Final = (
    "TableName ExpressionAttributeNames ExpressionAttributeValues ProjectionExpression ReturnConsumedCapacity "
    "ReturnItemCollectionMetrics ReturnValuesOnConditionCheckFailure ClientRequestToken "
)
_PARAMETERS: Final = {
    operation: frozenset((_COMMON + more).split())
    for operation, more in {
        "GetItem": "Key ConsistentRead",
        "PutItem": "Item ConditionExpression ReturnValues",
        "UpdateItem": "Key UpdateExpression ConditionExpression ReturnValues",
        "DeleteItem": "Key ConditionExpression ReturnValues",
        "ConditionCheckItem": "Key ConditionExpression",
        "Query": "IndexName KeyConditionExpression FilterExpression ExclusiveStartKey Limit ScanIndexForward "
        "ConsistentRead Select",
        "BatchGetItem": "RequestItems",
        "KeysAndAttributes": "Keys ConsistentRead",
        "BatchWriteItem": "RequestItems",
        "TransactGetItems": "TransactItems",
        "TransactWriteItems": "TransactItems",
        "PutRequest": "Item",
        "DeleteRequest": "Key",
    }.items()
}


def requests_of(operation: str, params: dict[str, Any], tenant: str | None) -> list[iam.Request]:
    """Return what AWS would authorise for this call: one request per table, or per member of a transaction.

    Raises NotUnderstood, and whatever Python raises for a malformed request. An unknown operation has no keys.
    """
    return list(_requests(operation, params, tenant))


def _requests(operation: str, params: dict[str, Any], tenant: str | None) -> Iterator[iam.Request]:
    if operation in ("GetItem", "UpdateItem", "DeleteItem"):
        yield _request(operation, params["TableName"], [params["Key"]], tenant)
    elif operation == "PutItem":
        yield _request(operation, params["TableName"], [params["Item"]], tenant)
    elif operation == "Query":
        yield _query(params, tenant)
    elif operation == "BatchGetItem":
        for table, wanted in params["RequestItems"].items():
            yield _request(operation, table, wanted["Keys"], tenant)
    elif operation == "BatchWriteItem":
        for table, members in params["RequestItems"].items():
            yield _request(operation, table, [_written(m) for m in members], tenant)
    elif operation in ("TransactWriteItems", "TransactGetItems"):
        kinds = _READS if operation == "TransactGetItems" else _WRITES
        for member in params["TransactItems"]:
            ((kind, body),) = member.items()
            holder = body["Item"] if kind == "Put" else body["Key"]
            yield _request(kinds[kind], body["TableName"], [holder], tenant)
    else:
        yield iam.Request(f"dynamodb:{operation}", policies.table_arn(str(params.get("TableName", "*"))), (), tenant)


def _request(operation: str, table: str, holders: list[dict[str, Any]], tenant: str | None) -> iam.Request:
    name = _declared(table).hash
    leading = tuple(_text(holder[name]) for holder in holders)
    return iam.Request(f"dynamodb:{operation}", policies.table_arn(table), leading, tenant)


def _written(member: dict[str, Any]) -> dict[str, Any]:
    ((kind, body),) = member.items()
    holder: dict[str, Any] = body[{"PutRequest": "Item", "DeleteRequest": "Key"}[kind]]
    return holder


def _query(params: dict[str, Any], tenant: str | None) -> iam.Request:
    table, index = params["TableName"], params.get("IndexName")
    declared = _declared(table)
    name = declared.hash
    if index is not None:
        name = next((i.hash for i in declared.indexes if i.name == index), "")
        if not name:
            raise NotUnderstood("unknown index")
    values = params.get("ExpressionAttributeValues") or {}
    equal = []
    for attribute, operator, placeholder in expressions.key_conditions(params["KeyConditionExpression"]):
        if _real(attribute, params) == name:
            if operator != "=":
                raise NotUnderstood("the partition key needs equality")
            equal.append(_text(values[placeholder]))
    if len(equal) != 1:
        raise NotUnderstood("not exactly one equality on the partition key")
    start = params.get("ExclusiveStartKey") or {}
    if name in start and _text(start[name]) != equal[0]:
        raise NotUnderstood("starts in another partition")
    # A start in an index names an item of the table as well.
    if tenant is not None and not all(keys.belongs_to(tenant, _text(start[n])) for n in _hashes(table) if n in start):
        raise NotUnderstood("starts at an item that is not the tenant's")
    return iam.Request("dynamodb:Query", policies.table_arn(table, index), tuple(equal), tenant)


def _bodies(operation: str, params: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield table and parameters of each single request in this one. Raises NotUnderstood for an unknown parameter."""
    for action, table, body in _single_requests(operation, params):
        if action in _PARAMETERS and not body.keys() <= _PARAMETERS[action]:
            raise NotUnderstood("a parameter that is not understood")
        if not all(name.startswith("#") for name in body.get("ExpressionAttributeNames") or ()):
            raise NotUnderstood("a name that stands for another")
        yield table, body


def _single_requests(operation: str, params: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return the request itself and those that it is made of: action, table and parameters of each."""
    bodies = [(operation, params.get("TableName", ""), params)]
    if operation in ("TransactWriteItems", "TransactGetItems"):
        kinds = _READS | _WRITES
        bodies += [(kinds[kind], b["TableName"], b) for m in params["TransactItems"] for kind, b in m.items()]
    elif operation == "BatchGetItem":
        bodies += [("KeysAndAttributes", table, wanted) for table, wanted in params["RequestItems"].items()]
    elif operation == "BatchWriteItem":
        members = [(table, member) for table, group in params["RequestItems"].items() for member in group]
        bodies += [(kind, table, body) for table, member in members for kind, body in member.items()]
    return bodies


def tables_of(operation: str, params: dict[str, Any]) -> set[str]:
    """Return the tables that a request names, as it names them. Raises whatever Python raises for a malformed one."""
    return {str(table) for _, table, _ in _single_requests(operation, params)}


def refuse_destruction(operation: str, params: dict[str, Any], *, deletes: bool = False, purges: bool = False) -> None:
    """Raise NotUnderstood for a deletion in a batch, and for a write that could replace, change or delete a row of an
    append-only table. With `deletes` the first may pass, with `purges` the deletion of such a row.

    IAM can say neither: it authorises a batch as a whole, and it knows no conditions of writes.
    """
    for action, table, body in _single_requests(operation, params):
        if action == "DeleteRequest" and not deletes:
            raise NotUnderstood("a deletion in a batch")
        declared = _find(table)
        if declared is None or not declared.append_only or action not in _CHANGES:
            continue
        if purges and action in _DELETIONS:
            continue
        absent = expressions.demanded_absent(body.get("ConditionExpression") or "")
        if action != "PutItem" or not absent or _real(absent, body) not in (declared.hash, declared.range):
            raise NotUnderstood("a row that is there could be lost")


def refuse_planted(operation: str, params: dict[str, Any], tenant: str) -> None:
    """Raise NotUnderstood where a row would get into another tenant's index.

    IAM does not see that: its leading keys are those of the table that is written.
    """
    for table, body in _bodies(operation, params):
        if not all(keys.belongs_to(tenant, _text(value)) for value in _planted(table, body)):
            raise NotUnderstood("a key of an index that is not the tenant's")


def _planted(table: str, body: dict[str, Any]) -> Iterator[Any]:
    """Return what a write makes of the attributes that are keys of the table or of its indexes."""
    item, update = body.get("Item"), body.get("UpdateExpression")
    if item is None and update is None:
        return
    hashes = _hashes(table)
    if item is not None:
        yield from (item[name] for name in hashes if name in item)
    for attribute, placeholder in expressions.mentions(update) if update is not None else ():
        if _real(attribute, body) in hashes:
            if not placeholder:
                raise NotUnderstood("a key that is not set to one value")
            yield body["ExpressionAttributeValues"][placeholder]


@lru_cache(maxsize=512)
def _hashes(table: str) -> frozenset[str]:
    """Return the names of the keys that are a tenant's. Those of an index that no tenant reads are nobody's."""
    return frozenset((_declared(table).hash, *(i.hash for i in _declared(table).indexes if i.leading_keys)))


def _real(attribute: str, params: dict[str, Any]) -> str:
    """Return what a name in an expression stands for. Only what begins with the sign of a placeholder is one."""
    if not attribute.startswith("#"):
        return attribute
    name: str = params["ExpressionAttributeNames"][attribute]
    return name


def _declared(table: str) -> tables.Table:
    found = _find(table)
    if found is None:
        # An ARN in place of the name gets here too; nothing of ours sends one.
        raise NotUnderstood("unknown table")
    return found


def _find(name: str) -> tables.Table | None:
    """Return the table of this name: of all, or of a tenant's own."""
    own = placed_names.owner(name)
    return own[1] if own else _by_name().get(name)


@lru_cache(maxsize=1)
def _by_name() -> dict[str, tables.Table]:
    return {t.full_name: t for t in registry.tables()}


def _text(value: dict[str, Any]) -> str:
    ((kind, content),) = value.items()
    if kind != "S" or not isinstance(content, str):
        raise NotUnderstood("a leading key is not text")
    return content
