"""Attempts with many items at once, and with everything that names no item: one foreign member is one too many."""

from __future__ import annotations

from typing import Any, Final

from portal.schema.tables import Table
from proofs.isolation import keys
from proofs.isolation.attempts.attempt import AttackAttempt, impossible, place_of, typed_key
from proofs.isolation.attempts.fuzzers import KEYS, NO_TEXT, Draw, no_table
from tenants.membership.stored import MEMBERS
from tickets.ticket.stored import TICKETS

OPERATIONS: Final = ("BatchGetItem", "BatchWriteItem", "TransactWriteItems", "TransactGetItems")
_WRITING: Final = "TransactWriteItems"
_KINDS: Final = ("Put", "Update", "Delete", "ConditionCheck")
_SHAPES: Final = (
    "empty request", "empty request", "no text", "odd member", "table name", "second table", "planted index key",
)  # fmt: skip
_LARGEST: Final = {"BatchGetItem": 100, "BatchWriteItem": 25, "TransactWriteItems": 100, "TransactGetItems": 100}


def attempt(draw: Draw) -> AttackAttempt:
    operation = draw.rng.choice(OPERATIONS)
    roll = draw.rng.random()
    if roll < 0.3:
        return (_shaped if roll < 0.22 else _not_granted)(draw, operation)
    table = draw.place()[0]
    count = draw.rng.choice([1, 2, 3, 5, 10, _LARGEST[operation]])
    own = [_member(draw, operation, table, _own(draw, operation, table)) for _ in range(count - 1)]
    kind = draw.rng.choice([*KEYS])
    fuzzed = KEYS[kind](draw, _foreign(draw, operation, table))
    bad = _member(draw, operation, table, {"S": fuzzed})
    own.insert(draw.rng.randint(0, len(own)), bad)
    where = "alone" if count == 1 else "among own"
    return AttackAttempt(f"{kind}, {where}", operation, place_of(table), draw, request(operation, table, own))


def _not_granted(draw: Draw, operation: str) -> AttackAttempt:
    """Ask with members that are all the tenant's own; what it asks for is none of its business."""
    table = draw.rng.choice([TICKETS, MEMBERS])
    operation = draw.rng.choice(["BatchGetItem", "TransactWriteItems"]) if table == MEMBERS else _WRITING
    own = {"S": draw.own(table)}
    members = [_member(draw, operation, table, own, draw.rng.choice(_KINDS[2:])) for _ in range(draw.rng.randint(1, 3))]
    return AttackAttempt("own, not granted", operation, place_of(table), draw, request(operation, table, members))


def request(operation: str, table: Table, members: list[Any]) -> dict[str, Any]:
    if operation == "BatchGetItem":
        return {"RequestItems": {table.full_name: {"Keys": members}}}
    if operation == "BatchWriteItem":
        return {"RequestItems": {table.full_name: members}}
    return {"TransactItems": members}


def _own(draw: Draw, operation: str, table: Table) -> dict[str, str]:
    """Return an own key. A batch has no conditions, so its keys are scratch even where they are honest."""
    scratch = operation == "BatchWriteItem" and table == TICKETS
    return {"S": keys.proof(draw.me.id) if scratch else draw.own(table)}


def _foreign(draw: Draw, operation: str, table: Table) -> str:
    scratch = operation == "BatchWriteItem" and table == TICKETS
    return keys.proof(draw.other.id) if scratch else draw.foreign(table)


def _member(draw: Draw, operation: str, table: Table, hash_value: Any, kind: str = "") -> dict[str, Any]:
    key = typed_key(table, hash_value, f"{draw.sort(table)}{draw.rng.randrange(10**6)}")
    if operation == "BatchGetItem":
        return key
    if operation == "BatchWriteItem":
        put = draw.rng.random() < 0.5
        return {"PutRequest": {"Item": key | {"title": {"S": "proof"}}}} if put else {"DeleteRequest": {"Key": key}}
    if operation == "TransactGetItems":
        return {"Get": {"TableName": table.full_name, "Key": key}}
    kind = kind or draw.rng.choice(_KINDS[:2] if draw.rng.random() < 0.8 else _KINDS)
    body = {"TableName": table.full_name} | impossible(table) | {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if kind == "Put":
        return {kind: body | {"Item": key}}
    if kind == "Update":
        body |= {"UpdateExpression": "SET title = :t", "ExpressionAttributeValues": {":t": {"S": "proof"}}}
    return {kind: body | {"Key": key}}


def _shaped(draw: Draw, operation: str) -> AttackAttempt:
    """Attempt it with nothing in it, too much in it, and members that are none."""
    rng = draw.rng
    table = draw.place()[0]
    own, foreign = draw.own(table), _foreign(draw, operation, table)
    good = _member(draw, operation, table, _own(draw, operation, table))
    kind = rng.choice(_SHAPES)
    members: Any = [good]
    if kind == "empty request":
        members = rng.choice([[], [], {}, None, "", [{}]])
    elif kind == "no text":
        members.insert(rng.randint(0, 1), _member(draw, operation, table, rng.choice(NO_TEXT)(own, foreign)))
    elif kind == "odd member":
        members.insert(rng.randint(0, 1), rng.choice(_odd(draw, operation, table, foreign)))
    elif kind == "planted index key":
        return _planted(draw, rng.choice(["BatchWriteItem", "TransactWriteItems"]))
    params = request(operation, table, members)
    if kind == "table name":
        params = _renamed(draw, operation, table, members)
    elif kind == "second table" and "RequestItems" in params:
        second = draw.table()
        stranger = _member(draw, operation, second, {"S": _foreign(draw, operation, second)})
        params["RequestItems"] |= request(operation, second, rng.choice([[stranger], []]))["RequestItems"]
    elif kind == "second table":
        second = draw.table()
        members.insert(rng.randint(0, 1), _member(draw, operation, second, {"S": draw.foreign(second)}))
    return AttackAttempt(kind, operation, place_of(table), draw, params)


def _odd(draw: Draw, operation: str, table: Table, foreign: str) -> list[Any]:
    bad = _member(draw, operation, table, {"S": foreign})
    stolen = {"Key": {"pk": {"S": foreign}}}
    both = _member(draw, operation, table, _own(draw, operation, table), "Put") | {"Delete": stolen}
    get = _member(draw, "TransactGetItems", table, {"S": foreign})
    write = _member(draw, "TransactWriteItems", table, {"S": foreign})
    batch = _member(draw, "BatchWriteItem", table, {"S": foreign})
    return [bad, both, get, write, batch, {}, None, [bad], foreign, {"Steal": stolen}, {"Put": None}]


def _renamed(draw: Draw, operation: str, table: Table, members: list[Any]) -> dict[str, Any]:
    name = no_table(draw, table)
    if operation.startswith("Batch"):
        return {"RequestItems": {str(name): next(iter(request(operation, table, members)["RequestItems"].values()))}}
    return {"TransactItems": [{k: body | {"TableName": name} for k, body in m.items()} for m in members]}


def _planted(draw: Draw, operation: str) -> AttackAttempt:
    """Attempt it with keys that are all own; among the members, one item carries another tenant's key of an index."""
    table = TICKETS
    index = draw.rng.choice(table.indexes)
    value = {"S": draw.foreign(table, index)}
    scratch = {"S": keys.proof(draw.me.id)}
    members = [_member(draw, operation, table, scratch, "Put") for _ in range(draw.rng.randint(0, 4))]
    item = typed_key(table, scratch) | {index.hash: value, index.range: {"S": "2026"}}
    bad: dict[str, Any] = {"PutRequest": {"Item": item}}
    if operation == "TransactWriteItems":
        bad = {"Put": {"TableName": table.full_name, "Item": item} | impossible(table)}
        if draw.rng.random() < 0.5:
            bad = _member(draw, operation, table, scratch, "Update")
            bad["Update"] |= {"UpdateExpression": f"SET {index.hash} = :t", "ExpressionAttributeValues": {":t": value}}
    members.insert(draw.rng.randint(0, len(members)), bad)
    return AttackAttempt(
        "planted index key", operation, place_of(table, index), draw, request(operation, table, members)
    )
