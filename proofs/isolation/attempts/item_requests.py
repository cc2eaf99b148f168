"""Attempts with items by their keys, one or many at once: one foreign member is one too many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from portal.schema.tables import Table
from proofs.isolation import keys
from proofs.isolation.attempts.attempt import (
    KEYS,
    NO_TEXT,
    AttackAttempt,
    Draw,
    impossible,
    no_table,
    place_of,
    typed_key,
    used,
)
from tenants.membership.stored import MEMBERS
from tickets.ticket.stored import TICKETS

SINGLE: Final = ("GetItem", "PutItem", "UpdateItem", "DeleteItem")
LARGEST: Final = {"BatchGetItem": 100, "BatchWriteItem": 25, "TransactWriteItems": 100, "TransactGetItems": 100}
_RETURNS: Final = ("NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")
_MEMBERS: Final = ("Put", "Update", "Delete", "ConditionCheck")
_SHAPES: Final = ("no text", "key in disguise", "missing parts", "table name", "legacy parameters")
_SHAPES_OF_MANY: Final = ("empty request", "empty request", "no text", "odd member", "table name", "second table")
# Ways to make the key of an index another tenant's. `:f` is the foreign key, `:o` an own one, `#i` the attribute.
_PLANTING: Final = (
    "SET #i = :f", "SET tenant_status = :f", "set #i=:f", "SET title = :o, #i = :f", "SET #i = :o, tenant_status = :f",
    "SET #i = if_not_exists(#i, :f)", "SET #i = if_not_exists(nothing, :f)", "SET #i = title", "SET #i = #t",
    "SET #i = tags[0]", "SET #i = changes[0].title", "SET #i = list_append(:f, :o)", "SET #i = :f + :o",
    "SET #i = (:f)", "ADD #i :f", "DELETE #i :f", "REMOVE title SET #i = :f", "ADD number :n SET #i = :f",
    "SET title = tenant_status, #i = title", "SET\t#i\n=\r:f", "SET #i.x = :o", "SET x.tenant_status = :o, #i = :f",
    "SET #k = :f",
)  # fmt: skip


def attempt(draw: Draw) -> AttackAttempt:
    roll = draw.rng.random()
    if roll < 0.6:
        return _by_key(draw)
    if roll < 0.66:
        return _not_granted(draw)
    return (_planted if roll < 0.8 else _shaped)(draw)


# --- requests ---


def request(draw: Draw, operation: str, table: Table, keys_of: list[dict[str, Any]], kind: str = "") -> dict[str, Any]:
    """Return a whole request with these keys. A write cannot take place, and asks for all that it could be told."""
    if operation in LARGEST:
        return of_many(operation, table, [_member(draw, operation, table, key, kind) for key in keys_of])
    (key,), rng = keys_of, draw.rng
    params: dict[str, Any] = {"TableName": table.full_name}
    if operation == "GetItem":
        return params | {"Key": key, "ConsistentRead": rng.random() < 0.5}
    params |= impossible(table) | _written(operation.removesuffix("Item"), key)
    if rng.random() < 0.5:
        params["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if rng.random() < 0.3:
        params["ReturnValues"] = rng.choice(_RETURNS)
    return params


def of_many(operation: str, table: Table, members: Any) -> dict[str, Any]:
    """Return the request with these members, whatever they are."""
    if operation == "BatchGetItem":
        return {"RequestItems": {table.full_name: {"Keys": members}}}
    return {"RequestItems": {table.full_name: members}} if operation == "BatchWriteItem" else {"TransactItems": members}


def _written(kind: str, key: dict[str, Any]) -> dict[str, Any]:
    if kind == "Put":
        return {"Item": key | {"title": {"S": "proof"}}}
    update = {"UpdateExpression": "SET title = :t", "ExpressionAttributeValues": {":t": {"S": "proof"}}}
    return {"Key": key} | (update if kind == "Update" else {})


def _member(draw: Draw, operation: str, table: Table, key: dict[str, Any], kind: str = "") -> dict[str, Any]:
    if operation == "BatchGetItem":
        return key
    if operation == "BatchWriteItem":
        put = draw.rng.random() < 0.5
        return {"PutRequest": {"Item": key | {"title": {"S": "proof"}}}} if put else {"DeleteRequest": {"Key": key}}
    if operation == "TransactGetItems":
        return {"Get": {"TableName": table.full_name, "Key": key}}
    kind = kind or draw.rng.choice(_MEMBERS[:2] if draw.rng.random() < 0.8 else _MEMBERS)
    told = {"TableName": table.full_name, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    return {kind: told | impossible(table) | _written(kind, key)}


def _key(draw: Draw, operation: str, table: Table, hash_value: Any) -> dict[str, Any]:
    """Return a key with a sort key that the other tenant has, so that a hole would show something; among many another
    one each time."""
    distinct = str(draw.rng.randrange(10**6)) if operation in LARGEST else ""
    return typed_key(table, hash_value, f"{draw.sort(table)}{distinct}")


def _text(draw: Draw, operation: str, table: Table, *, own: bool) -> str:
    """Return a partition key. A batch has no conditions, so its keys are scratch even where they are honest."""
    if operation == "BatchWriteItem" and table == TICKETS:
        return keys.proof(draw.me.id if own else draw.other.id)
    return draw.own(table) if own else draw.foreign(table)


# --- attempts ---


def _by_key(draw: Draw) -> AttackAttempt:
    """Ask for somebody else's key, or what is almost the own one, alone or among the own ones."""
    operation = draw.rng.choice([*SINGLE, *LARGEST])
    table, kind = draw.place()[0], draw.rng.choice([*KEYS])
    count = draw.rng.choice([1, 2, 3, 5, 10, LARGEST[operation]]) if operation in LARGEST else 1
    texts = [_text(draw, operation, table, own=True) for _ in range(count - 1)]
    texts.insert(draw.rng.randint(0, len(texts)), KEYS[kind](draw, _text(draw, operation, table, own=False)))
    params = request(draw, operation, table, [_key(draw, operation, table, {"S": text}) for text in texts])
    kind = f"{kind}, {'alone' if count == 1 else 'among own'}" if operation in LARGEST else kind
    return AttackAttempt(kind, operation, place_of(table), draw, params)


def _not_granted(draw: Draw) -> AttackAttempt:
    """Ask with keys that are all the tenant's own; what it asks for is none of its business."""
    table = draw.rng.choice([TICKETS, MEMBERS])
    operation = draw.rng.choice(["DeleteItem", "TransactWriteItems", *(["BatchGetItem"] if table == MEMBERS else [])])
    count = draw.rng.randint(1, 3) if operation in LARGEST else 1
    own = [_key(draw, operation, table, {"S": draw.own(table)}) for _ in range(count)]
    params = request(draw, operation, table, own, draw.rng.choice(_MEMBERS[2:]))
    return AttackAttempt("own, not granted", operation, place_of(table), draw, params)


def _shaped(draw: Draw) -> AttackAttempt:
    """Send a key that is no text, is missing, misnamed or doubled, a table that is none, members that are none, or
    parameters of old."""
    rng, operation = draw.rng, draw.rng.choice([*SINGLE, *LARGEST])
    table, many = draw.place()[0], operation in LARGEST
    own, foreign = _text(draw, operation, table, own=True), _text(draw, operation, table, own=False)
    kind = rng.choice(_SHAPES_OF_MANY if many else _SHAPES)
    good = _key(draw, operation, table, {"S": own})
    if kind == "no text":
        bad = _key(draw, operation, table, rng.choice(NO_TEXT)(own, foreign))
        params = request(draw, operation, table, [good, bad][:: rng.choice([1, -1])] if many else [bad])
    elif many:
        params = _many_shaped(draw, operation, table, kind, good, foreign)
    else:
        params = request(draw, operation, table, [good])
        _single_shaped(draw, table, kind, params, foreign)
    return AttackAttempt(kind, operation, place_of(table), draw, params)


def _single_shaped(draw: Draw, table: Table, kind: str, params: dict[str, Any], foreign: str) -> None:
    rng, holder = draw.rng, params["Item" if "Item" in params else "Key"]
    if kind == "key in disguise":
        value = holder.pop(table.hash)
        holder[rng.choice([table.hash.upper(), table.hash + " ", "\0" + table.hash, "#k", ""])] = value
        holder |= {table.hash: {"S": foreign}} if rng.random() < 0.5 else {}
    elif kind == "missing parts":
        gone = rng.choice(["TableName", "Key", "Item", table.hash])
        params.pop(gone, None)
        holder.pop(gone if gone in holder else table.hash)
    elif kind == "table name":
        params["TableName"] = no_table(draw, table)
    else:
        params |= rng.choice(_legacy(table, foreign))


def _legacy(table: Table, foreign: str) -> list[dict[str, Any]]:
    return [
        {"AttributeUpdates": {table.hash: {"Action": "PUT", "Value": {"S": foreign}}}},
        {"Expected": {table.hash: {"Value": {"S": foreign}}}},
        {"AttributesToGet": [table.hash]},
        {"ConditionalOperator": "OR"},
        {"KeyConditions": {table.hash: {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": foreign}]}}},
        {"RequestItems": {table.full_name: {"Keys": [{table.hash: {"S": foreign}}]}}},
        {"ExpressionAttributeNames": {"#k": table.hash, table.hash: table.range or "x"}},
        {"Future": {"S": foreign}},
    ]


def _many_shaped(
    draw: Draw, operation: str, table: Table, kind: str, good: dict[str, Any], foreign: str
) -> dict[str, Any]:
    rng = draw.rng
    members: Any = [_member(draw, operation, table, good)]
    if kind == "empty request":
        members = rng.choice([[], [], {}, None, "", [{}]])
    elif kind == "odd member":
        members.insert(rng.randint(0, 1), rng.choice(_odd(draw, operation, table, good, foreign)))
    elif kind == "table name":
        name = no_table(draw, table)
        if operation.startswith("Batch"):
            return {"RequestItems": {str(name): of_many(operation, table, members)["RequestItems"][table.full_name]}}
        return {"TransactItems": [{k: body | {"TableName": name} for k, body in m.items()} for m in members]}
    params = of_many(operation, table, members)
    if kind == "second table":
        second = draw.table()
        stranger = _member(
            draw, operation, second, _key(draw, operation, second, {"S": _text(draw, operation, second, own=False)})
        )
        if "RequestItems" in params:
            params["RequestItems"] |= of_many(operation, second, rng.choice([[stranger], []]))["RequestItems"]
        else:
            members.insert(rng.randint(0, 1), stranger)
    return params


def _odd(draw: Draw, operation: str, table: Table, good: dict[str, Any], foreign: str) -> list[Any]:
    stolen, bad_key = {"Key": {"pk": {"S": foreign}}}, _key(draw, operation, table, {"S": foreign})
    bad, *others = (_member(draw, one, table, bad_key) for one in (operation, *LARGEST))
    both = _member(draw, operation, table, good, "Put") | {"Delete": stolen}
    return [bad, both, *others[1:], {}, None, [bad], foreign, {"Steal": stolen}, {"Put": None}]


def _planted(draw: Draw) -> AttackAttempt:
    """Plant the tenant's own item under a key of an index that is not, alone or among members that are all own."""
    rng, table = draw.rng, TICKETS
    index = rng.choice(table.indexes)
    foreign, own = draw.foreign(table, index), draw.own(table, index)
    values: dict[str, Callable[[], Any]] = {
        "planted index key": lambda: {"S": foreign},
        "fuzzed index key": lambda: {"S": rng.choice([*KEYS.values()])(draw, foreign)},
        "index key is no text": lambda: rng.choice(NO_TEXT)(own, foreign),
    }
    kind = rng.choice([*values, "planted index key"])
    value, scratch = values[kind](), typed_key(table, {"S": keys.proof(draw.me.id)})
    operation = rng.choice(["PutItem", "UpdateItem", "PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems"])
    single = "UpdateItem" if operation == "UpdateItem" or (operation[0] == "T" and rng.random() < 0.5) else "PutItem"
    params = request(draw, single, table, [scratch])
    if single == "PutItem":
        params["Item"] |= {index.hash: value, index.range: {"S": "2026"}}
    elif rng.random() < 0.2:
        del params["UpdateExpression"], params["ExpressionAttributeValues"]
        params["AttributeUpdates"] = {index.hash: {"Action": "PUT", "Value": value}}
    else:
        text = params["UpdateExpression"] = rng.choice(_PLANTING)
        params["ExpressionAttributeNames"] |= used({"#i": index.hash, "#t": "title"}, text)
        swapped = rng.random() < 0.1
        planted = {":f": {"S": own}, ":o": value} if swapped else {":f": value, ":o": {"S": own}}
        params["ExpressionAttributeValues"] = used(planted | {":n": {"N": "1"}}, text)
    if operation in LARGEST:
        params.pop("ReturnValues", None)
        bad = {"PutRequest": {"Item": params["Item"]}} if operation[0] == "B" else {single.removesuffix("Item"): params}
        members = [_member(draw, operation, table, scratch, "Put") for _ in range(rng.randint(0, 4))]
        members.insert(rng.randint(0, len(members)), bad)
        params = of_many(operation, table, members)
    return AttackAttempt(kind, operation, place_of(table, index), draw, params)
