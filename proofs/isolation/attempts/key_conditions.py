"""Attempts with Query: every way to write a key condition that might be read in two ways."""

from __future__ import annotations

from typing import Any, Final

from portal.schema.tables import Index, Table
from proofs.isolation.attempts.attempt import (
    KEYS,
    NO_TEXT,
    AttackAttempt,
    Draw,
    no_index,
    no_table,
    place_of,
    typed_key,
    used,
)
from tickets.ticket.stored import TICKETS

# `#h` and `#g` are the partition key, `#r` is the sort key; `:o` is the own key, `:f` the foreign one, `:x` neither.
# HASH is the partition key by its own name. What the grammar of `_random_condition` makes is not here.
_TWISTED: Final = (
    "#h = :o OR #h = :f", "(#h = :o) OR (#h = :f)", "#h = :o AND #r = :x OR #h = :f", "NOT NOT #h = :f",
    "#h = :o AND #h = :f", "#h = :f AND #h = :o", "#g = :f AND #h = :o", "HASH = :o AND #h = :f",
    "#h BETWEEN :o AND :f", "#r BETWEEN :x AND :o AND #h = :f", "#h IN (:o, :f)", "contains(#h, :f)",
    "attribute_exists(#h)", "size(#h) > :x", "begins_with (#h, :f)", ":o = #h", ":f = #h", ":o = :o AND #h = :f",
    "#h = #h", "#h = #r", ":f = :f", "((#h = :f))", "(#h = :o AND begins_with (#g, :f)",
    "(begins_with (#h, :f) AND #r = :x)", "#h = :o)", "(#h = :o", "#h = :o AND", "AND #h = :f", "#h = :o, #h = :f",
    "#h = :o; #h = :f", "#h = :o -- #h = :f", "#h = :o /* AND */ OR #h = :f", "\t#h\n=\r:f",
    "#h\u00a0=\u00a0:f", "#h \uff1d :f", "#h == :f", "#h.#r = :o", "#h[0] = :o", "#H = :o", "#h = :O",
    "BETWEEN = :o AND #h = :f", "and = :o", "#h = :o AND (#r = :x OR #h = :f)", "", " ",
)  # fmt: skip
# Partitions that are the tenant's, in more words than it needs.
_ODD: Final = ("#h = :o AND #r = :x", "#r = :x AND #h = :o", "HASH = :o", "(#h = :o)", ":o = #h", "#h=:o")
_PARTS: Final = ("TableName", "KeyConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues")
_JOINS: Final = (" AND ", " OR ", " and ", " AND NOT ")
_OPERATORS: Final = ("=", "=", "=", "<>", "<", "<=", ">", ">=")


def attempt(draw: Draw) -> AttackAttempt:
    roll = draw.rng.random()
    if roll < 0.35:
        return _by_key(draw)
    if roll < 0.6:
        return _condition(draw, draw.rng.choice(_TWISTED), "twisted condition")
    return (_random_condition if roll < 0.75 else _shaped)(draw)


def request(draw: Draw, table: Table, index: Index | None, key: Any) -> dict[str, Any]:
    """Return a plain Query of one partition."""
    name = index.hash if index else table.hash
    params: dict[str, Any] = {
        "TableName": table.full_name,
        "KeyConditionExpression": "#h = :h",
        "ExpressionAttributeNames": {"#h": name},
        "ExpressionAttributeValues": {":h": key},
        "Limit": draw.rng.randint(1, 10),
    }
    return params | ({"IndexName": index.name} if index else {})


def _by_key(draw: Draw) -> AttackAttempt:
    table, index = draw.place()
    kind = draw.rng.choice([*KEYS])
    params = request(draw, table, index, {"S": KEYS[kind](draw, draw.foreign(table, index))})
    return AttackAttempt(kind, "Query", place_of(table, index), draw, params)


def _condition(draw: Draw, expression: str, kind: str) -> AttackAttempt:
    """Return the expression with both keys within reach, in the right places or the wrong ones."""
    rng = draw.rng
    table, index = draw.place()
    hash_name, range_name = (index.hash, index.range) if index else (table.hash, table.range or "none")
    names = {"#h": hash_name, "#g": hash_name, "#r": range_name}
    values = {":o": {"S": draw.own(table, index)}, ":f": {"S": draw.foreign(table, index)}, ":x": {"S": "A"}}
    if rng.random() < 0.15:
        kind, values = "swapped values", values | {":o": values[":f"], ":f": values[":o"]}
    elif rng.random() < 0.15:
        kind, names = "swapped names", names | {"#h": range_name, "#r": hash_name}
    text = expression.replace("HASH", hash_name)
    if rng.random() < 0.8:
        names, values = used(names, text), used(values, text)
    params = request(draw, table, index, {}) | {
        "KeyConditionExpression": text,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    return AttackAttempt(kind, "Query", place_of(table, index), draw, params)


def _random_condition(draw: Draw) -> AttackAttempt:
    """Return any combination of clauses that the grammar can build, and some that it cannot."""
    rng = draw.rng

    def clause(depth: int) -> str:
        name, value = rng.choice(["#h", "#h", "#g", "#r", "HASH"]), rng.choice([":o", ":f", ":x"])
        match rng.randrange(8 if depth < 3 else 5):
            case 0:
                return f"{name} BETWEEN {value} AND {rng.choice([':o', ':f'])}"
            case 1:
                return f"begins_with({name}, {value})"
            case 5:
                return f"({clause(depth + 1)})"
            case 6:
                return f"NOT {clause(depth + 1)}"
            case 7:
                return f"{clause(depth + 1)}{rng.choice(_JOINS)}{clause(depth + 1)}"
        return f"{name}{rng.choice(['', ' '])}{rng.choice(_OPERATORS)} {value}"

    count = rng.choice([1, 2, 2, 2, 3])
    return _condition(draw, rng.choice(_JOINS).join(clause(0) for _ in range(count)), "random condition")


def _shaped(draw: Draw) -> AttackAttempt:
    rng = draw.rng
    table, index = draw.place()
    own, foreign = draw.own(table, index), draw.foreign(table, index)
    params = request(draw, table, index, {"S": own})
    kind = rng.choice(
        ["no text", "start key", "start key", "index name", "index name", "table name", "legacy parameters",
         "missing parts", "filter", "odd but own"]
    )  # fmt: skip
    if kind == "no text":
        params["ExpressionAttributeValues"] = {":h": rng.choice(NO_TEXT)(own, foreign)}
    elif kind == "start key":
        params["ExclusiveStartKey"] = _start(draw, table, index, foreign)
    elif kind == "index name":
        _other_index(draw, params)
    elif kind == "table name":
        params["TableName"] = no_table(draw, table)
    elif kind == "legacy parameters":
        old = {"ComparisonOperator": rng.choice(["EQ", "NE", "GT", "NOT_NULL"]), "AttributeValueList": [{"S": foreign}]}
        params[rng.choice(["KeyConditions", "QueryFilter"])] = {index.hash if index else table.hash: old}
        if rng.random() < 0.5:
            del params["KeyConditionExpression"]
    elif kind == "missing parts":
        params[rng.choice(_PARTS)] = rng.choice([None, {}, [], "", 7])
    elif kind == "filter":
        params["FilterExpression"] = rng.choice(["#h = :f", "#h <> :h OR #h = :f", "attribute_exists(title)"])
        params["ExpressionAttributeValues"][":f"] = {"S": foreign}
        params["Select"] = rng.choice(["ALL_ATTRIBUTES", "COUNT", "ALL_PROJECTED_ATTRIBUTES"])
    else:
        return _condition(draw, rng.choice(_ODD), kind)
    return AttackAttempt(kind, "Query", place_of(table, index), draw, params)


def _start(draw: Draw, table: Table, index: Index | None, foreign: str) -> dict[str, Any]:
    """Begin in somebody else's partition, or somewhere that is no place."""
    name = index.hash if index else table.hash
    value = {"S": foreign} if draw.rng.random() < 0.7 else draw.rng.choice(NO_TEXT)(draw.me.id, foreign)
    start = typed_key(table, {"S": draw.foreign(table)}, draw.sort(table))
    if index:
        start |= {index.range: {"S": "2026"}}
    return start | {name: value}


def _other_index(draw: Draw, params: dict[str, Any]) -> None:
    """Return an index that is none; the table's key asked of an index, and an index's of the table."""
    rng = draw.rng
    index = rng.choice(TICKETS.indexes)
    params["TableName"] = TICKETS.full_name
    match rng.randrange(3):
        case 0:
            params["IndexName"] = no_index(draw, TICKETS)
        case 1:
            params |= {"IndexName": index.name, "ExpressionAttributeNames": {"#h": TICKETS.hash}}
            params["ExpressionAttributeValues"] = {":h": {"S": draw.own(TICKETS)}}
        case _:
            params.pop("IndexName", None)
            params |= {"ExpressionAttributeNames": {"#h": index.hash}}
            params["ExpressionAttributeValues"] = {":h": {"S": draw.own(TICKETS, index)}}
