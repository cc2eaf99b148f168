"""Attempts with everything else that DynamoDB can do, and with names of things that it cannot do."""

from __future__ import annotations

from typing import Any, Final

from portal.isolation import policies
from proofs.isolation.attempts.attempt import AttackAttempt, Draw, impossible, place_of, typed_key

PARTIQL: Final = ("ExecuteStatement", "BatchExecuteStatement", "ExecuteTransaction")
# Besides these, every operation that botocore's model knows is tried; see `attempt`.
UNKNOWN: Final = (
    "GetItems", "getItem", "GETITEM", "get_item", "GetItem ", " GetItem", "GetItem\n", "Get*", "*", "", "Query2",
    "query", "Scan\0", "PartiQLSelect", "ConditionCheckItem", "PutItem2", "GetRecords", "Dynamo.GetItem", "\u0405can",
)  # fmt: skip
_STATEMENTS: Final = (
    "SELECT * FROM TARGET",
    "SELECT * FROM TARGET WHERE NAME = 'OWN'",
    "SELECT * FROM TARGET WHERE NAME = ?",
    "SELECT * FROM TARGET WHERE NAME IN ['OWN', 'FOREIGN']",
    "SELECT * FROM TARGET WHERE NAME = 'OWN' OR 1 = 1",
    "DELETE FROM TARGET WHERE NAME = 'FOREIGN'",
    "UPDATE TARGET SET title = 'x' WHERE NAME = 'FOREIGN'",
    "INSERT INTO TARGET VALUE {'NAME': 'FOREIGN'}",
    "",
)
SCAN: Final = "Scan"
_HANDLED: Final = {
    "GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchGetItem", "BatchWriteItem", "TransactWriteItems",
    "TransactGetItems",
}  # fmt: skip


def attempt(draw: Draw, operations: list[str]) -> AttackAttempt:
    """Try any of `operations`, which are all that the client knows."""
    roll = draw.rng.random()
    if roll < 0.25:
        return _scan(draw)
    if roll < 0.5:
        return _partiql(draw)
    if roll < 0.7:
        return _unknown(draw)
    return _about_tables(draw, draw.rng.choice([o for o in operations if o not in _HANDLED and o not in PARTIQL]))


def _scan(draw: Draw) -> AttackAttempt:
    rng = draw.rng
    table, index = draw.place()
    name = index.hash if index else table.hash
    params: dict[str, Any] = {"TableName": table.full_name}
    more: list[dict[str, Any]] = [
        {},
        {"FilterExpression": f"{name} = :o", "ExpressionAttributeValues": {":o": {"S": draw.own(table, index)}}},
        {"Segment": rng.randrange(4), "TotalSegments": 4},
        {"Limit": 1, "ExclusiveStartKey": typed_key(table, {"S": draw.own(table)})},
        {"Key": typed_key(table, {"S": draw.own(table)})},
        {"KeyConditionExpression": f"{name} = :o", "ExpressionAttributeValues": {":o": {"S": draw.own(table, index)}}},
        {"Select": "COUNT"},
        {"ScanFilter": {name: {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": draw.foreign(table, index)}]}}},
    ]
    params |= rng.choice(more) | ({"IndexName": index.name} if index else {})
    return AttackAttempt("whole table", SCAN, place_of(table, index), draw, params)


def _partiql(draw: Draw) -> AttackAttempt:
    rng = draw.rng
    table, index = draw.place()
    own, foreign = draw.own(table, index), draw.foreign(table, index)
    words = {
        "TARGET": f'"{table.full_name}"' + (f'."{index.name}"' if index else ""),
        "NAME": index.hash if index else table.hash,
        "OWN": own,
        "FOREIGN": foreign,
    }
    chosen = []
    for _ in range(rng.randint(1, 3)):
        text = rng.choice(_STATEMENTS)
        statement: dict[str, Any] = {"Parameters": [{"S": foreign}]} if "?" in text else {}
        for word, value in words.items():
            text = text.replace(word, value)
        chosen.append(statement | {"Statement": text})
    operation = rng.choice(PARTIQL)
    params: dict[str, Any] = chosen[0] if operation == "ExecuteStatement" else {"Statements": chosen}
    if operation == "ExecuteTransaction":
        params = {"TransactStatements": chosen}
    if rng.random() < 0.3:
        params["TableName"] = table.full_name
    return AttackAttempt("PartiQL", operation, place_of(table, index), draw, params)


def _unknown(draw: Draw) -> AttackAttempt:
    """Return an operation that does not exist, with parameters that would be right for one that does."""
    table = draw.place()[0]
    holder = typed_key(table, {"S": draw.rng.choice([draw.own, draw.foreign])(table)}, draw.sort(table))
    params = {"TableName": table.full_name} | draw.rng.choice([{"Key": holder}, {"Item": holder}, {}])
    return AttackAttempt("unknown operation", draw.rng.choice(UNKNOWN), place_of(table), draw, params)


def _about_tables(draw: Draw, operation: str) -> AttackAttempt:
    rng = draw.rng
    table = draw.table()
    arn = policies.table_arn(table.full_name)
    own = typed_key(table, {"S": draw.own(table)}, draw.sort(table))
    params: dict[str, Any] = rng.choice(
        [
            {"TableName": table.full_name},
            {"TableName": arn},
            {"ResourceArn": arn},
            {"TableArn": arn},
            {},
            {"TableName": table.full_name, "Key": own} | impossible(table),
        ]
    )
    return AttackAttempt("another operation", operation, place_of(table), draw, params)
