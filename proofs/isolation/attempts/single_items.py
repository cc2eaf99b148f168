"""Attempts with a single item: GetItem, PutItem, UpdateItem, DeleteItem."""

from __future__ import annotations

from typing import Any, Final

from portal.schema.tables import Table
from proofs.isolation import keys
from proofs.isolation.attempts.attempt import AttackAttempt, impossible, place_of, typed_key, used
from proofs.isolation.attempts.fuzzers import KEYS, NO_TEXT, Draw, no_table
from tenants.membership.stored import MEMBERS
from tickets.ticket.stored import TICKETS

OPERATIONS: Final = ("GetItem", "PutItem", "UpdateItem", "DeleteItem")
_RETURNS: Final = ("NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW")

# Ways to make the key of an index another tenant's. `:f` is the foreign key, `:o` an own one, `#i` the attribute.
_PLANTING: Final = (
    "SET #i = :f",
    "SET tenant_status = :f",
    "set #i=:f",
    "SET title = :o, #i = :f",
    "SET #i = :o, tenant_status = :f",
    "SET #i = if_not_exists(#i, :f)",
    "SET #i = if_not_exists(nothing, :f)",
    "SET #i = title",
    "SET #i = #t",
    "SET #i = tags[0]",
    "SET #i = changes[0].title",
    "SET #i = list_append(:f, :o)",
    "SET #i = :f + :o",
    "SET #i = (:f)",
    "ADD #i :f",
    "DELETE #i :f",
    "REMOVE title SET #i = :f",
    "ADD number :n SET #i = :f",
    "SET title = tenant_status, #i = title",
    "SET\t#i\n=\r:f",
    "SET #i.x = :o",
    "SET x.tenant_status = :o, #i = :f",
    "SET #k = :f",
)


def attempt(draw: Draw) -> AttackAttempt:
    roll = draw.rng.random()
    if roll < 0.6:
        return _by_key(draw)
    if roll < 0.64:
        table = draw.rng.choice([TICKETS, MEMBERS])
        params = request(draw, "DeleteItem", table, typed_key(table, {"S": draw.own(table)}, draw.sort(table)))
        return AttackAttempt("own, not granted", "DeleteItem", place_of(table), draw, params)
    return (_planted if roll < 0.82 else _shaped)(draw)


def request(draw: Draw, operation: str, table: Table, key: dict[str, Any]) -> dict[str, Any]:
    """Return a whole request with this key. A write cannot take place, and asks for all that it could be told."""
    rng = draw.rng
    params: dict[str, Any] = {"TableName": table.full_name}
    if operation == "GetItem":
        return params | {"Key": key, "ConsistentRead": rng.random() < 0.5}
    params |= impossible(table)
    if rng.random() < 0.5:
        params["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    if rng.random() < 0.3:
        params["ReturnValues"] = rng.choice(_RETURNS)
    if operation == "PutItem":
        return params | {"Item": key | {"title": {"S": "proof"}}}
    params["Key"] = key
    if operation == "UpdateItem":
        params |= {"UpdateExpression": "SET title = :t", "ExpressionAttributeValues": {":t": {"S": "proof"}}}
    return params


def _by_key(draw: Draw) -> AttackAttempt:
    """Return somebody else's key, or what is almost the own one."""
    operation, table = draw.rng.choice(OPERATIONS), draw.place()[0]
    kind = draw.rng.choice([*KEYS])
    fuzzed = KEYS[kind](draw, draw.foreign(table))
    params = request(draw, operation, table, typed_key(table, {"S": fuzzed}, draw.sort(table)))
    return AttackAttempt(kind, operation, place_of(table), draw, params)


def _shaped(draw: Draw) -> AttackAttempt:
    """Send a key that is no text, is missing, misnamed or doubled, a table that is none, or parameters of old."""
    rng = draw.rng
    operation, table = rng.choice(OPERATIONS), draw.place()[0]
    own, foreign, sort = draw.own(table), draw.foreign(table), draw.sort(table)
    params = request(draw, operation, table, typed_key(table, {"S": own}, sort))
    holder: dict[str, Any] = params["Item" if operation == "PutItem" else "Key"]
    kind = rng.choice(["no text", "key in disguise", "missing parts", "table name", "legacy parameters"])
    if kind == "no text":
        holder[table.hash] = rng.choice(NO_TEXT)(own, foreign)
    elif kind == "key in disguise":
        value = holder.pop(table.hash)
        holder[rng.choice([table.hash.upper(), table.hash + " ", "\0" + table.hash, "#k", ""])] = value
        if rng.random() < 0.5:
            holder[table.hash] = {"S": foreign}
    elif kind == "missing parts":
        gone = rng.choice(["TableName", "Key", "Item", table.hash])
        params.pop(gone, None)
        holder.pop(gone if gone in holder else table.hash)
    elif kind == "table name":
        params["TableName"] = no_table(draw, table)
    else:
        params |= rng.choice(_legacy(table, foreign))
    return AttackAttempt(kind, operation, place_of(table), draw, params)


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


def _planted(draw: Draw) -> AttackAttempt:
    """Plant the tenant's own item under a key of an index that is not."""
    rng, table = draw.rng, TICKETS
    index = rng.choice(table.indexes)
    foreign, own = draw.foreign(table, index), draw.own(table, index)
    kind = rng.choice(["planted index key", "planted index key", "fuzzed index key", "index key is no text"])
    if kind == "fuzzed index key":
        fuzzed = rng.choice([*KEYS.values()])(draw, foreign)
    value: Any = {"S": foreign if kind == "planted index key" else own}
    if kind == "fuzzed index key":
        value = {"S": fuzzed}
    elif kind == "index key is no text":
        value = rng.choice(NO_TEXT)(own, foreign)
    key = typed_key(table, {"S": keys.proof(draw.me.id)})
    operation = rng.choice(["PutItem", "UpdateItem"])
    params = request(draw, operation, table, key)
    if operation == "PutItem":
        params["Item"] |= {index.hash: value, index.range: {"S": "2026"}}
    elif rng.random() < 0.2:
        del params["UpdateExpression"], params["ExpressionAttributeValues"]
        params["AttributeUpdates"] = {index.hash: {"Action": "PUT", "Value": value}}
    else:
        text = params["UpdateExpression"] = rng.choice(_PLANTING)
        params["ExpressionAttributeNames"] |= used({"#i": index.hash, "#t": "title"}, text)
        swapped = rng.random() < 0.1
        values = {":f": {"S": own}, ":o": value} if swapped else {":f": value, ":o": {"S": own}}
        params["ExpressionAttributeValues"] = used(values | {":n": {"N": "1"}}, text)
    return AttackAttempt(kind, operation, place_of(table, index), draw, params)
