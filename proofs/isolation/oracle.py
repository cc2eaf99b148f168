"""Judge a request by one sentence: everything that a request touches is named, and each name is the tenant's.

The attack is judged by this module alone. It reads what packages declare of tables and rights, and shares nothing with
the guard, the evaluator or the policies, so that a mistake of theirs is not a mistake of the judge's.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings

from portal.schema import registry
from tenants.audit_trail.stored import audit_actor_key
from tickets.ticket import stored as ticket_keys

# What the repositories of a tenant may do, as the packages declare it; docs/isolation.md shows each change to a reader.
ACTIONS: Final[dict[registry.Table, set[str]]] = defaultdict(set)
for _grant in registry.grants("tenant"):
    ACTIONS[_grant.table].update(_grant.actions)
_MEMBERS: Final = {
    "TransactWriteItems": {
        "Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem",
    },
    "TransactGetItems": {"Get": "GetItem"},
}  # fmt: skip
# The items of Support.Tickets that a tenant may not delete, though its own: a ticket goes with its tenant alone.
NOT_DELETED: Final = {"SUMMARY", "DETAIL"}
_PARAMETERS: Final = {
    "GetItem": {"Key", "ConsistentRead"},
    "PutItem": {"Item", "ConditionExpression", "ReturnValues"},
    "UpdateItem": {"Key", "UpdateExpression", "ConditionExpression", "ReturnValues"},
    "DeleteItem": {"Key", "ConditionExpression", "ReturnValues"},
    "ConditionCheckItem": {"Key", "ConditionExpression"},
    "Query": {
        "IndexName", "KeyConditionExpression", "FilterExpression", "ExclusiveStartKey", "Limit", "ScanIndexForward",
        "ConsistentRead", "Select",
    },
}  # fmt: skip
_ANYWHERE: Final = {
    "TableName", "ExpressionAttributeNames", "ExpressionAttributeValues", "ProjectionExpression",
    "ReturnConsumedCapacity", "ReturnItemCollectionMetrics", "ReturnValuesOnConditionCheckFailure",
}  # fmt: skip
# One clause, or two of which one names the partition. What else the grammar allows is nobody's.
_NAME, _VALUE = r"#?\w+", r":\w+"
_CLAUSE: Final = (
    rf"(?:{_NAME}\s*(?:=|<|<=|>|>=)\s*{_VALUE}|{_NAME} BETWEEN {_VALUE} AND {_VALUE}"
    rf"|begins_with ?\({_NAME}, {_VALUE}\))"
)
_KEY_CONDITION: Final = re.compile(
    rf"\s*(?P<open>\(?)(?P<first>{_CLAUSE})(?: AND (?P<second>{_CLAUSE}))?(?P<close>\)?)\s*", re.ASCII
)
_EQUALITY: Final = re.compile(rf"({_NAME})\s*=\s*({_VALUE})", re.ASCII)
_UPDATE_TOKEN: Final = re.compile(r"[:#]?[A-Za-z0-9_]+|\S")
_CLAUSES: Final = ("set", "remove", "add", "delete")


class Oracle:
    """One tenant's answer to: may this request be sent, and may this answer be seen?"""

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self._prefixes = (
            ticket_keys.counter(tenant_id).removesuffix("COUNTER"),
            audit_actor_key(tenant_id, "x").removesuffix("x"),
        )

    def is_own(self, key: object) -> bool:
        """Tell whether a typed key is the tenant's: its id, or what begins with it between its delimiters."""
        text = key["S"] if isinstance(key, dict) and [*key] == ["S"] else None
        return isinstance(text, str) and (text == self.tenant_id or text.startswith(self._prefixes))

    def allows(self, operation: str, params: Any) -> bool:
        """Tell whether a request is the tenant's; what cannot be read to the end is not."""
        try:
            return self._allows(operation, params)
        except Exception:
            return False

    def _allows(self, operation: str, params: dict[str, Any]) -> bool:
        if operation in _MEMBERS:
            members = params["TransactItems"]
            single = [(_MEMBERS[operation][kind], body) for member in members for kind, body in member.items()]
            known = set(params) <= {"TransactItems", "ClientRequestToken"} | _ANYWHERE
            return known and len(single) == len(members) > 0 and all(self._one(*s) for s in single)
        if operation == "BatchGetItem":
            known = set(params) <= {"RequestItems"} | _ANYWHERE
            groups = params["RequestItems"].items()
            return known and len(groups) > 0 and all(self._wanted(table, group) for table, group in groups)
        return self._one(operation, params)

    def _wanted(self, table: str, group: dict[str, Any]) -> bool:
        single = {name: value for name, value in group.items() if name not in ("Keys", "ConsistentRead")}
        return len(group["Keys"]) > 0 and all(
            self._one("BatchGetItem", {**single, "Key": key, "TableName": table}, wanted="Key") for key in group["Keys"]
        )

    def _one(self, action: str, body: dict[str, Any], wanted: str = "") -> bool:
        """Tell whether a single read or write, alone or as a member of many, is the tenant's."""
        table = self._table(body["TableName"])
        if action not in ACTIONS.get(table, ()):
            return False
        if not set(body) <= _ANYWHERE | (_PARAMETERS.get(action) or {wanted}):
            return False
        if not all(re.fullmatch(r"#\w+", name) for name in body.get("ExpressionAttributeNames") or ()):
            return False
        if action == "Query":
            return self._query(table, body)
        if action == "DeleteItem" and table.name == "Support.Tickets" and body["Key"]["sk"]["S"] in NOT_DELETED:
            return False
        holder = body[wanted or ("Item" if action == "PutItem" else "Key")]
        indexed = [index.hash for index in table.indexes if index.leading_keys]
        own = self.is_own(holder[table.hash]) and all(self.is_own(holder[n]) for n in indexed if n in holder)
        return own and self._plants_nothing([table.hash, *indexed], body)

    def _table(self, name: str) -> registry.Table:
        """Return the table of this name, of all or the tenant's own. Raises StopIteration for every other name."""
        prefixes = [settings.DYNAMODB_TABLE_PREFIX, *(site["prefix"] for site in settings.SILOS.values())]
        own = {f"{prefix}.{self.tenant_id}.{t.name}": t for prefix in prefixes for t in registry.placed_tables()}
        return own.get(name) or next(t for t in registry.tables() if t.full_name == name)

    def _query(self, table: registry.Table, body: dict[str, Any]) -> bool:
        index = body.get("IndexName")
        name = table.hash if index is None else next(i.hash for i in table.indexes if i.name == index)
        values = body["ExpressionAttributeValues"]
        names = body.get("ExpressionAttributeNames") or {}
        found = _KEY_CONDITION.fullmatch(body["KeyConditionExpression"])
        clauses = (
            [found["first"], found["second"] or ""] if found and bool(found["open"]) == bool(found["close"]) else []
        )
        equalities = [match for clause in clauses if (match := _EQUALITY.fullmatch(clause))]
        pins = [(names.get(match[1], match[1]), values[match[2]]) for match in equalities]
        start = body.get("ExclusiveStartKey") or {}
        return any(pin == name and self.is_own(value) for pin, value in pins) and all(
            self.is_own(start[hash_name]) for hash_name in (name, table.hash) if hash_name in start
        )

    def _plants_nothing(self, hashes: list[str], body: dict[str, Any]) -> bool:
        """Tell whether each key of an index becomes a value of the tenant's, in plain sight, and nothing else."""
        names, values = body.get("ExpressionAttributeNames") or {}, body.get("ExpressionAttributeValues") or {}
        tokens = ["", *_UPDATE_TOKEN.findall(body.get("UpdateExpression") or ""), "", "", ""]
        for i, token in enumerate(tokens):
            if names.get(token, token) in hashes:
                around = tokens[i - 1].lower(), tokens[i + 1], tokens[i + 3].lower()
                if around[0] not in (",", "set") or around[1] != "=" or around[2] not in (",", "", *_CLAUSES):
                    return False
                if not self.is_own(values[tokens[i + 2]]):
                    return False
        return True

    def foreign_in(self, answer: object) -> Iterator[str]:
        """Yield the keys in an answer that are not the tenant's: of items, old images, positions to go on from."""
        if isinstance(answer, dict):
            for name, value in answer.items():
                if name in _KEY_NAMES and isinstance(value, dict) and "S" in value:
                    if not self.is_own(value):
                        yield str(value["S"])
                else:
                    yield from self.foreign_in(value)
        elif isinstance(answer, list):
            for value in answer:
                yield from self.foreign_in(value)


_KEY_NAMES: Final = {
    n
    for t in registry.tables()
    if t.scope == "tenant"
    for n in (t.hash, *(i.hash for i in t.indexes if i.leading_keys))
}
