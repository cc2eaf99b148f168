"""One attempt to get past the layers, and the two things that keep it harmless whatever happens to it."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from portal.schema import registry
from portal.schema.tables import Index, Table
from proofs.isolation import keys
from proofs.isolation.attempts.fuzzers import Draw
from tickets.ticket.stored import TICKETS

# No item is there and not there: a write that carries this changes nothing, whomever it reaches.
IMPOSSIBLE: Final = "attribute_not_exists(#k) AND attribute_exists(#k)"
SCRATCH_SORT: Final = "proof"
_READS: Final = ("GetItem", "Query", "BatchGetItem", "TransactGetItems", "Scan")
_ANY_ID: Final = "0" * 32
_SCRATCH_ENDING: Final = keys.proof(_ANY_ID).partition(_ANY_ID)[2]


@dataclass(frozen=True)
class AttackAttempt:
    """A request to DynamoDB, or a `call` of our own code that may lead to some.

    An honest one must be answered; every other one is judged by the oracle. `kind` is the trick, `place` the table
    or index as the report names it.
    """

    kind: str
    operation: str
    place: str
    draw: Draw
    params: dict[str, Any]
    honest: bool = False
    call: Callable[[], object] | None = None


def place_of(table: Table, index: Index | None = None) -> str:
    return f"{table.name}/{index.name}" if index else table.name


def typed_key(table: Table, hash_value: Any, sort: str | None = None) -> dict[str, Any]:
    """Return a key with the hash as given, whatever it is, and a sort key where the table has one."""
    key = {table.hash: hash_value}
    if table.range:
        key[table.range] = {"S": sort or SCRATCH_SORT}
    return key


def used(placeholders: dict[str, Any], expression: str) -> dict[str, Any]:
    """Return the placeholders that an expression has: engines refuse the others, and then show nothing."""
    return {name: value for name, value in placeholders.items() if name in expression}


def impossible(table: Table, **params: Any) -> dict[str, Any]:
    """Return the parameters of a write that cannot take place."""
    names = {"#k": table.hash, **params.pop("ExpressionAttributeNames", {})}
    return {"ConditionExpression": IMPOSSIBLE, "ExpressionAttributeNames": names, **params}


def is_harmless(operation: str, params: dict[str, Any]) -> bool:
    """Tell whether a request, if the engine got it, would read, fail by its condition, or stay within scratch items."""
    try:
        return _is_harmless(operation, params)
    except (AttributeError, LookupError, TypeError, ValueError):
        return False


def _is_harmless(operation: str, params: dict[str, Any]) -> bool:
    if operation in _READS:
        return True
    if operation in ("PutItem", "UpdateItem", "DeleteItem"):
        return _is_idle(params)
    if operation == "TransactWriteItems":
        return any(_is_idle(body) for member in params["TransactItems"] for body in member.values()) or all(
            _is_scratch(body) for member in params["TransactItems"] for body in member.values()
        )
    if operation == "BatchWriteItem":
        members = [body for group in params["RequestItems"].values() for m in group for body in m.values()]
        return all(_is_scratch(body) for body in members)
    return False


def _is_idle(body: dict[str, Any]) -> bool:
    names = body.get("ExpressionAttributeNames") or {}
    # A table of a tenant's own is called as the one of all, with an id before the last two words.
    named = body["TableName"].rsplit(".", 2)
    table = next(t for t in registry.tables() if t.name == ".".join(named[1:]))
    return (body.get("ConditionExpression") == IMPOSSIBLE and names.get("#k") == table.hash) or _is_scratch(body)


def _is_scratch(body: dict[str, Any]) -> bool:
    pk = (body.get("Item") or body.get("Key") or {}).get(TICKETS.hash) or {}
    return str(pk.get("S", "")).endswith(_SCRATCH_ENDING)


def as_json(value: Any) -> Any:
    """Return the parameters as JSON can hold them; what is no JSON is named by its kind."""
    if isinstance(value, dict):
        return {str(k): as_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(v) for v in value]
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return value if isinstance(value, str | int | float | bool | None) else repr(value)
