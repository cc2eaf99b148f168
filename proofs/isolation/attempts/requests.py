"""Make requests to DynamoDB: a tenant's own requests, and the same with one thing changed.

`own` builds a request of any operation on any table or index, with keys that are all the acting tenant's. An honest
attempt is one that the tenant's code is granted; a hostile one is any of them after one change.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from django.conf import settings

from portal.dynamo import client
from portal.isolation import policies
from portal.schema import registry
from portal.schema.registry import Index, Table
from proofs.isolation import keys, oracle
from proofs.isolation.attempts.attempt import KEYS, SCRATCH_SORT, AttackAttempt, Draw, Key, impossible, no_text
from tickets.ticket.stored import STATUS_UPDATED, TICKETS

SINGLE: Final = ("GetItem", "PutItem", "UpdateItem", "DeleteItem")
LARGEST: Final = {"BatchGetItem": 100, "BatchWriteItem": 25, "TransactWriteItems": 100, "TransactGetItems": 100}
KNOWN: Final = (*SINGLE, "Query", *LARGEST)
_MEMBERS: Final = ("Put", "Update", "Delete", "ConditionCheck")


@dataclass
class Made:
    """A request under construction. `held` are the keys and items in it, each with the tenant's partition key."""

    draw: Draw
    operation: str
    table: Table
    index: Index | None
    params: dict[str, Any]
    held: list[Key]

    @property
    def key_name(self) -> str:
        return self.index.hash if self.index else self.table.hash

    @property
    def slot(self) -> str:
        return ":h" if self.operation == "Query" else self.table.hash

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """Return each part that may name a table."""
        members = self.params.get("TransactItems")
        inner = [b for m in members for b in m.values() if isinstance(b, dict)] if isinstance(members, list) else []
        return [self.params, *inner]

    def attempt(self, kind: str, honest: bool = False) -> AttackAttempt:
        place = f"{self.table.name}/{self.index.name}" if self.index else self.table.name
        return AttackAttempt(kind, self.operation, place, self.draw, self.params, honest)


# --- own requests ---


def own(draw: Draw, operation: str, table: Table, index: Index | None = None, count: int = 1) -> Made:
    """Return a request with keys of the acting tenant's. A write cannot take place."""
    if operation == "Query":
        return _query(draw, table, index)
    held = _own_keys(draw, operation, table, count)
    if operation not in LARGEST:
        body = {"TableName": table.full_name} | _body(draw, operation.removesuffix("Item"), table, held[0])
        return Made(draw, operation, table, None, body, [body.get("Item") or body["Key"]])
    members = [_member(draw, operation, table, key) for key in held]
    return Made(draw, operation, table, None, of_many(operation, table, members), [_held(m) for m in members])


def of_many(operation: str, table: Table, members: Any) -> dict[str, Any]:
    if operation == "BatchGetItem":
        return {"RequestItems": {table.full_name: {"Keys": members}}}
    return {"RequestItems": {table.full_name: members}} if operation == "BatchWriteItem" else {"TransactItems": members}


def _own_keys(draw: Draw, operation: str, table: Table, count: int) -> list[Key]:
    """Return different keys. A batch has no conditions, so the tickets that it writes are scratch."""
    found: dict[str, Key] = {}
    for number in range(count):
        key: dict[str, Any] = {table.hash: {"S": draw.own(table)}}
        if table.range:
            key[table.range] = {"S": f"{SCRATCH_SORT}{number}"}
        if table == TICKETS and operation == "BatchWriteItem":
            key[table.hash] = {"S": keys.proof(draw.me.id)}
        elif table == TICKETS and number == 0 and (real := draw.me.keys(table)):
            key = dict(draw.rng.choice(real))
        found[repr(key)] = key
    return [*found.values()]


def _body(draw: Draw, kind: str, table: Table, key: Key) -> dict[str, Any]:
    """Return a request for one key, or a member of a transaction, but for its table."""
    rng = draw.rng
    if kind == "Get":
        return {"Key": key, "ConsistentRead": rng.random() < 0.5}
    body = impossible(table) | {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    indexed = {}
    if (indexes := [i for i in table.indexes if i.leading_keys]) and rng.random() < 0.5:
        index = rng.choice(indexes)
        indexed = {index.range: {"S": "2026"}, index.hash: {"S": draw.own(table, index)}}
        indexed = {name: value for name, value in indexed.items() if name not in table.key_names}
    if kind == "Put":
        return body | {"Item": {"title": {"S": "proof"}} | key | indexed}
    if kind != "Update":
        return body | {"Key": key}
    values = {f":{n}": value for n, value in enumerate([{"S": "proof"}, *indexed.values()])}
    names = zip(["title", *indexed], values, strict=True)
    text = "SET " + ", ".join(f"{name} = {value}" for name, value in names)
    return body | {"Key": key, "UpdateExpression": text, "ExpressionAttributeValues": values}


def _member(draw: Draw, operation: str, table: Table, key: Key, kinds: tuple[str, ...] = _MEMBERS[:2]) -> Any:
    if operation == "BatchGetItem":
        return key
    if operation == "BatchWriteItem":
        put = draw.rng.random() < 0.5
        return {"PutRequest": {"Item": key | {"title": {"S": "proof"}}}} if put else {"DeleteRequest": {"Key": key}}
    if operation == "TransactGetItems":
        return {"Get": {"TableName": table.full_name, "Key": key}}
    kind = draw.rng.choice(kinds)
    return {kind: {"TableName": table.full_name} | _body(draw, kind, table, key)}


def _held(member: Any) -> Key:
    inner = next(iter(member.values()))
    held: Key = inner.get("Item") or inner.get("Key") or member
    return held


def _query(draw: Draw, table: Table, index: Index | None) -> Made:
    values = {":h": {"S": draw.own(table, index)}}
    params: dict[str, Any] = {
        "TableName": table.full_name,
        "KeyConditionExpression": "#h = :h",
        "ExpressionAttributeNames": {"#h": index.hash if index else table.hash},
        "ExpressionAttributeValues": values,
        "Limit": draw.rng.randint(1, 10),
    }
    params |= {"IndexName": index.name} if index else {}
    return Made(draw, "Query", table, index, params, [values])


def honest(draw: Draw) -> AttackAttempt:
    """Return a request that a tenant's own code is granted: layers that refuse it prove nothing."""
    rng = draw.rng
    operation = rng.choice(["GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"])
    table = rng.choice([TICKETS, *(table for table, actions in oracle.ACTIONS.items() if operation in actions)])
    index = rng.choice([None, *(i for i in table.indexes if i.leading_keys)]) if operation == "Query" else None
    if operation == "GetItem" and rng.random() < 0.4:
        operation = "TransactGetItems"
    elif operation in (both := {"PutItem", "UpdateItem"}) and both <= oracle.ACTIONS[table] and rng.random() < 0.4:
        operation = "TransactWriteItems"
    made = own(draw, operation, table, index, rng.choice([1, 2, 4, 30]) if operation in LARGEST else 1)
    if operation == "DeleteItem" and made.held[0][str(table.range)]["S"] in oracle.NOT_DELETED:
        made.held[0][str(table.range)] = {"S": f"{SCRATCH_SORT}0"}  # no ticket is deleted but with its tenant
    return made.attempt("own request", honest=True)


# --- changes ---


def used(placeholders: dict[str, Any], expression: str) -> dict[str, Any]:
    """Return the placeholders that an expression has: engines refuse the others, and then show nothing."""
    return {name: value for name, value in placeholders.items() if name in expression}


Change = Callable[[Draw, Made], str]  # changes the request in place, and returns the kind of attempt
_ABOUT_TABLES: Final = ("TableName", "ResourceArn", "TableArn")
# Besides these, every operation that botocore's model knows is tried.
_UNKNOWN: Final = (
    "GetItems", "getItem", "GETITEM", "get_item", "GetItem ", " GetItem", "GetItem\n", "Get*", "*", "", "Query2",
    "query", "Scan\0", "PartiQLSelect", "ConditionCheckItem", "PutItem2", "GetRecords", "Dynamo.GetItem", "\u0405can",
)  # fmt: skip
_PARTIQL: Final = {
    "ExecuteStatement": "", "BatchExecuteStatement": "Statements", "ExecuteTransaction": "TransactStatements",
}  # fmt: skip
_STATEMENTS: Final = (
    "SELECT * FROM {target}", "SELECT * FROM {target} WHERE {name} = '{own}'", "",
    "SELECT * FROM {target} WHERE {name} = ?", "SELECT * FROM {target} WHERE {name} IN ['{own}', '{foreign}']",
    "SELECT * FROM {target} WHERE {name} = '{own}' OR 1 = 1", "DELETE FROM {target} WHERE {name} = '{foreign}'",
    "UPDATE {target} SET title = 'x' WHERE {name} = '{foreign}'",
    "INSERT INTO {target} VALUE {{'{name}': '{foreign}'}}",
)  # fmt: skip
# Ways to make the key of an index, `#i`, another tenant's, and to ask for another partition: `#h` and `#g` are its key,
# HASH is that by its own name, `#r` is the sort key; `:o` is the own key, `:f` the foreign one, `:x` neither. Tens of
# thousands of other expressions are read in tests/isolation/test_guard_conditions.py.
_PLANTING: Final = (
    "SET #i = :f", "SET tenant_status = :f", "SET #i = :o, tenant_status = :f", "SET #i = if_not_exists(#i, :f)",
    "SET #i = title", "ADD #i :f", "REMOVE title SET #i = :f", "SET #k = :f",
)  # fmt: skip
_CONDITIONS: Final = (
    "#h = :o AND #r = :x", "#r = :x AND #h = :o", "(#h = :o)", "HASH = :o", "#h = :o OR #h = :f", "#h = :o AND #h = :f",
    "#h = :f AND #h = :o", "HASH = :o AND #g = :f", "#r = :o AND #h = :f", "#r BETWEEN :x AND :o AND #h = :f",
    "#h IN (:o, :f)", "begins_with (#h, :f)", "NOT #h = :o", "",
)  # fmt: skip


def _almost(draw: Draw, made: Made) -> str:
    """Ask for somebody else's key, or what is almost the own one, alone or among the own ones."""
    kind = draw.rng.choice([*KEYS])
    scratch = made.table == TICKETS and made.operation == "BatchWriteItem"
    foreign = keys.proof(draw.other.id) if scratch else draw.foreign(made.table, made.index)
    held = draw.rng.choice(made.held)
    held[made.slot] = {"S": KEYS[kind](draw, foreign)}
    if made.table.range and made.table.range in held:
        held[made.table.range] = {"S": draw.sort(made.table)}
    return f"{kind}, {'alone' if len(made.held) == 1 else 'among own'}" if made.operation in LARGEST else kind


def _tampered(draw: Draw, made: Made) -> str:
    """Take a part of the request away, replace, rename or double it, or add a parameter of old: at any depth."""
    rng, foreign = draw.rng, {"S": draw.foreign(made.table, made.index)}
    made.params = copy.deepcopy(made.params)  # parts of it are samples of what there is
    part, name = rng.choice([*_parts(made.params)])
    kind = rng.choice(["part missing", "part of no type", "part in disguise", "part added"])
    nonsense = no_text(draw, draw.own(made.table, made.index), foreign["S"])
    if kind == "part of no type":
        part[name] = nonsense
    elif kind == "part added":
        if isinstance(part, list):
            part.insert(name, nonsense)
        else:
            part.update(rng.choice(_of_old(made.key_name, foreign)))
    else:
        removed = part.pop(name)
        if kind == "part in disguise" and isinstance(part, dict):
            part[rng.choice([str(name).upper(), f"{name} ", f"\0{name}", "#k", ""])] = removed
            part |= {name: foreign} if rng.random() < 0.5 else {}
    return kind


def _parts(inside: Any) -> Iterator[tuple[Any, Any]]:
    """Yield where each part of a request is, but for the conditions that keep its writes from taking place."""
    for name, value in [*(enumerate(inside) if isinstance(inside, list) else inside.items())]:
        if name not in ("ConditionExpression", "ExpressionAttributeNames") or "ConditionExpression" not in inside:
            yield inside, name
            yield from _parts(value) if isinstance(value, dict | list) else ()


def _of_old(name: str, foreign: Key) -> list[dict[str, Any]]:
    """Return parameters of old, or of the future, that name a foreign key."""
    condition = {name: {"ComparisonOperator": "NE", "AttributeValueList": [foreign]}}
    return [
        {"AttributeUpdates": {name: {"Action": "PUT", "Value": foreign}}}, {"Expected": {name: {"Value": foreign}}},
        {"AttributesToGet": [name]}, {"ConditionalOperator": "OR"}, {"KeyConditions": condition},
        {"QueryFilter": condition}, {"ScanFilter": condition}, {"Future": foreign},
    ]  # fmt: skip


def _renamed(draw: Draw, made: Made) -> str:
    """Name, in place of a table, its ARN, a neighbour, nothing at all; or another index."""
    name, real = made.table.full_name, STATUS_UPDATED.name
    if made.operation == "Query" and draw.rng.random() < 0.5:
        wrong = [real + "x", real.upper(), "*", "", policies.table_arn(name, real), [real], 0, real + "\0", "gsi"]
        made.params["IndexName"] = draw.rng.choice([*wrong, *(i.name for i in made.table.indexes)])
        return "index name"
    wrong = [policies.table_arn(name), name + "x", name.lower(), name[:-1], name.replace(".", ".Dev.", 1), "*", "",
             None, [name], {"S": name}, name + "\0", f"{name}/index/{real}", " " + name]  # fmt: skip
    _put_name(made, name, draw.rng.choice(wrong))
    return "table name"


def _put_name(made: Made, name: str, other: Any) -> None:
    """Put another name wherever the request has this one of a table."""
    groups = made.params.get("RequestItems", {})
    if name in groups:
        groups[str(other)] = groups.pop(name)
    for body in made.bodies:
        if body.get("TableName") == name:
            body["TableName"] = other


def _own_table_of_another(draw: Draw, made: Made) -> str:
    """Name the table that another tenant has to itself. The keys are own, so only a look at the name stops it."""
    prefix = draw.rng.choice([settings.DYNAMODB_TABLE_PREFIX, *(site["prefix"] for site in settings.SILOS.values())])
    for table in registry.placed_tables():
        _put_name(made, table.full_name, registry.physical(prefix, draw.other.id, table))
    return "own keys, a table of another's own"


def _stranger(draw: Draw, made: Made) -> str:
    """Add a member for another's item: one of the same operation, of another one, or of another table."""
    rng, operation = draw.rng, made.operation
    if operation not in LARGEST:
        return _tampered(draw, made)
    kind = rng.choice(["odd member", "second table"])
    table = rng.choice(registry.tables()) if kind == "second table" else made.table
    held: Key = {table.hash: {"S": draw.foreign(table)}}
    held |= {table.range: {"S": draw.sort(table)}} if table.range else {}
    stranger = _member(draw, operation, table, held, _MEMBERS)
    if kind == "odd member":
        stolen = {"Key": {"pk": {"S": draw.foreign(TICKETS)}}}
        both = {"Put": {"TableName": table.full_name, "Item": held}, "Delete": stolen}
        others = [_member(draw, other, table, held) for other in LARGEST if other != operation]
        stranger = rng.choice([stranger, both, *others, [stranger], {"Steal": stolen}])
    if table != made.table and "RequestItems" in made.params:
        made.params["RequestItems"] |= of_many(operation, table, rng.choice([[stranger], []]))["RequestItems"]
        return kind
    members = made.params.get("TransactItems") or made.params["RequestItems"][made.table.full_name]
    members = members["Keys"] if isinstance(members, dict) else members
    members.insert(rng.choice([0, len(members)]), stranger)
    return kind


def _planted(draw: Draw, made: Made) -> str:
    """Plant the tenant's own scratch item under a key of an index that is not, alone or among members that are own."""
    rng, index = draw.rng, draw.rng.choice(TICKETS.indexes)
    operation = rng.choice(["PutItem", "UpdateItem", "PutItem", "UpdateItem", "BatchWriteItem", "TransactWriteItems"])
    foreign, mine = draw.foreign(TICKETS, index), draw.own(TICKETS, index)
    kind = rng.choice(["planted index key", "planted index key", "fuzzed index key", "index key is no text"])
    value: Any = {"S": foreign if kind == "planted index key" else rng.choice([*KEYS.values()])(draw, foreign)}
    if kind == "index key is no text":
        value = no_text(draw, mine, foreign)
    single = "Update" if operation == "UpdateItem" or (operation[0] == "T" and rng.random() < 0.5) else "Put"
    key = {"pk": {"S": keys.proof(draw.me.id)}, "sk": {"S": SCRATCH_SORT}}
    body = {"TableName": TICKETS.full_name} | _body(draw, single, TICKETS, key)
    if single == "Put":
        body["Item"] |= {index.hash: value, index.range: {"S": "2026"}}
    else:
        text = body["UpdateExpression"] = rng.choice(_PLANTING)
        body["ExpressionAttributeNames"] |= used({"#i": index.hash}, text)
        body["ExpressionAttributeValues"] = used({":f": value, ":o": {"S": mine}}, text)
    params = body
    if operation in LARGEST:
        members = [_member(draw, operation, TICKETS, key, ("Put",)) for _ in range(rng.randint(0, 4))]
        bad = {"PutRequest": {"Item": body["Item"]}} if operation[0] == "B" else {single: body}
        members.insert(rng.randint(0, len(members)), bad)
        params = of_many(operation, TICKETS, members)
    made.operation, made.table, made.index, made.params = operation, TICKETS, index, params
    return kind


def _condition(draw: Draw, made: Made) -> str:
    """Ask with both keys within reach, in the right places or the wrong ones of a key condition."""
    rng, index, table = draw.rng, made.index, made.table
    kind = rng.choice(["condition", "condition", "swapped values", "swapped names"])
    text = rng.choice(_CONDITIONS).replace("HASH", made.key_name)
    range_name = (index.range if index else table.range) or "none"
    names = {"#h": made.key_name, "#g": made.key_name, "#r": range_name}
    values = {":o": {"S": draw.own(table, index)}, ":f": {"S": draw.foreign(table, index)}, ":x": {"S": "A"}}
    if kind == "swapped values":
        values |= {":o": values[":f"], ":f": values[":o"]}
    elif kind == "swapped names":
        names |= {"#h": range_name, "#r": made.key_name}
    made.params |= {"KeyConditionExpression": text, "ExpressionAttributeNames": used(names, text)}
    made.params["ExpressionAttributeValues"] = used(values, text)
    return kind


def _elsewhere(draw: Draw, made: Made) -> str:
    """Begin a Query in somebody else's partition, filter for it, or ask an index for the table's key."""
    rng, table, index = draw.rng, made.table, made.index
    foreign = draw.foreign(table, index)
    kind = rng.choice(["start key", "start key", "filter", "key of another index"])
    if kind == "start key":
        value = {"S": foreign} if rng.random() < 0.7 else no_text(draw, draw.me.id, foreign)
        start = {table.hash: {"S": draw.foreign(table)}} | ({index.range: {"S": "2026"}} if index else {})
        start |= {table.range: {"S": draw.sort(table)}} if table.range else {}
        made.params["ExclusiveStartKey"] = start | {made.key_name: value}
    elif kind == "filter":
        made.params["FilterExpression"] = rng.choice(["#h = :f", "#h <> :h OR #h = :f", "attribute_exists(title)"])
        made.params["ExpressionAttributeValues"][":f"] = {"S": foreign}
        made.params["Select"] = rng.choice(["ALL_ATTRIBUTES", "COUNT", "ALL_PROJECTED_ATTRIBUTES"])
    else:
        other = rng.choice([None, *table.indexes])
        made.params["ExpressionAttributeNames"] = {"#h": other.hash if other else table.hash}
        made.params["ExpressionAttributeValues"] = {":h": {"S": draw.own(table, other)}}
    return kind


@cache
def other_operations() -> Sequence[str]:
    """Return every other operation that the client knows, in a stable order."""
    known = client.connection("tenant").client.meta.service_model.operation_names
    return sorted({*known} - {*KNOWN})


def _another_operation(draw: Draw, made: Made) -> str:
    """Send parameters that would be right for one operation with another, or with one that does not exist."""
    unknown = draw.rng.random() < 0.4
    made.operation = draw.rng.choice(_UNKNOWN if unknown else other_operations())
    if draw.rng.random() < 0.5:
        arn = policies.table_arn(made.table.full_name)
        made.params = {name: draw.rng.choice([made.table.full_name, arn]) for name in draw.rng.sample(_ABOUT_TABLES, 1)}
    return "unknown operation" if unknown else "another operation"


def _scan(draw: Draw, made: Made) -> str:
    """Read a whole table or index, with what might make it look like the own part."""
    made.operation, own_key = "Scan", {":o": {"S": draw.own(made.table, made.index)}}
    made.params |= draw.rng.choice([{}, {"Segment": 1, "TotalSegments": 4}, {"Select": "COUNT"}, {"Limit": 1}])
    if draw.rng.random() < 0.5:
        made.params |= {"FilterExpression": f"{made.key_name} = :o", "ExpressionAttributeValues": own_key}
    return "whole table"


def _partiql(draw: Draw, made: Made) -> str:
    target = f'"{made.table.full_name}"' + (f'."{made.index.name}"' if made.index else "")
    mine, foreign = draw.own(made.table, made.index), draw.foreign(made.table, made.index)
    texts = (text.format(target=target, name=made.key_name, own=mine, foreign=foreign) for text in _STATEMENTS)
    chosen = [{"Statement": text, "Parameters": [{"S": foreign}] * text.count("?")} for text in texts]
    made.operation = draw.rng.choice([*_PARTIQL])
    wrapper, some = _PARTIQL[made.operation], draw.rng.sample(chosen, draw.rng.randint(1, 3))
    made.params = {wrapper: some} if wrapper else some[0]
    return "PartiQL"


_OF_ANY: Final[dict[Change, int]] = {
    _almost: 34, _tampered: 20, _renamed: 5, _own_table_of_another: 8, _another_operation: 6, _scan: 4, _partiql: 4,
    lambda draw, made: "own, granted or not": 5,
}  # fmt: skip
_OF_QUERIES: Final[dict[Change, int]] = {_condition: 20, _elsewhere: 16}
_OF_WRITES: Final[dict[Change, int]] = {_stranger: 10, _planted: 12}


def hostile(draw: Draw) -> AttackAttempt:
    """Return an own request of any operation, place and size, with one thing changed."""
    rng = draw.rng
    operation = rng.choice([*KNOWN, "Query", "Query", "Query"])
    table, index = draw.place()
    count = rng.choice([1, 2, 3, 5, 10, LARGEST[operation]]) if operation in LARGEST else 1
    made = own(draw, operation, table, index if operation == "Query" else None, count)
    changes = _OF_ANY | (_OF_QUERIES if operation == "Query" else _OF_WRITES)
    (change,) = rng.choices([*changes], [*changes.values()])
    return made.attempt(change(draw, made))
