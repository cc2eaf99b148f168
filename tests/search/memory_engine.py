"""What the search asks of DynamoDB, in memory: for properties, deaths after each write, and costs of thousands.

It answers the requests that the product makes, conditions and updates as PynamoDB writes them, and bills as AWS does.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

from portal.dynamo import meter
from portal.dynamo.meter import item_size
from portal.errors import ConditionFailed, TransactionRefused
from portal.schema import registry
from portal.schema.registry import Table

Raw = dict[str, Any]
_TOKEN = re.compile(r"[#:]\w+|\w+|[<>]?=")
_HASH = re.compile(r"#\w+ = (:\w+)")
_IN_PYTHON = {"=": "==", "AND": "and", "OR": "or", "NOT": "not"}
_FUNCTIONS: dict[str, Callable[..., bool]] = {
    "attribute_exists": lambda value: value is not None,
    "attribute_not_exists": lambda value: value is None,
    "begins_with": lambda value, beginning: str(value).startswith(beginning),
}


class Died(Exception):
    """The worker died here."""


class MemoryEngine:
    """Tables in memory. With `writes_left` it dies before the next write. A Query reads `page` items a time."""

    def __init__(self) -> None:
        self.partitions: dict[tuple[str, str], dict[str, Raw]] = defaultdict(dict)  # by table and partition key
        self.writes = 0
        self.writes_left = math.inf
        self.page = 1_000_000
        self.before_write: Callable[[str, Raw], None] = lambda operation, request: None
        self.after_query_page: Callable[[], None] = lambda: None

    @contextmanager
    def connected(self) -> Iterator[MemoryEngine]:
        yield self

    def dispatch(self, operation: str, request: Raw) -> Raw:
        if operation in ("GetItem", "Query", "BatchGetItem"):
            answer: Raw = getattr(self, f"_{operation}")(request)
            if (bill := meter.current()) is not None:
                bill.add(meter._bill(operation, request, answer, 0))
            return answer
        self.before_write(operation, request)
        if self.writes >= self.writes_left:
            raise Died
        many = operation == "TransactWriteItems"
        members = request["TransactItems"] if many else [{operation.removesuffix("Item"): request}]
        if not all(self._holds(body) for member in members for body in member.values()):
            raise TransactionRefused([]) if many else ConditionFailed()
        self.writes += 1
        written = [self._written(kind, body) for member in members for kind, body in member.items()]
        units = sum((1 + many) * math.ceil(size / 1024) for size, _ in written)
        return {"ConsumedCapacity": {"CapacityUnits": units}, "Attributes": written[0][1]}

    def of(self, table: Table, partition: str) -> dict[str, Raw]:
        """All items of a partition by sort key, in order."""
        return dict(sorted(self.partitions[table.full_name, partition].items()))

    # --- reads ---

    def _GetItem(self, request: Raw) -> Raw:
        found = self._stored(request["TableName"], request["Key"])
        return {"Item": found} if found else {}

    def _BatchGetItem(self, request: Raw) -> Raw:
        answers = {}
        for table, wanted in request["RequestItems"].items():
            assert len(wanted["Keys"]) <= 100
            answers[table] = [item for key in wanted["Keys"] if (item := self._stored(table, key))]
        return {"Responses": answers}

    def _Query(self, request: Raw) -> Raw:
        table = _table(request["TableName"])
        index = next((one for one in table.indexes if one.name == request.get("IndexName")), None)
        hash_name, range_name = (index.hash, index.range) if index else table.key_names
        names, values = request["ExpressionAttributeNames"], request["ExpressionAttributeValues"]
        expression = request["KeyConditionExpression"]
        wanted = _evaluated(expression, names, values)
        if index:
            rows = [r for (name, _), of in self.partitions.items() if name == table.full_name for r in of.values()]
        else:
            rows = [*self.partitions[table.full_name, values[_HASH.search(expression)[1]]["S"]].values()]  # type: ignore[index]
        rows = sorted((row for row in rows if range_name in row and wanted(row)), key=lambda row: row[range_name]["S"])
        backwards = not request.get("ScanIndexForward", True)
        rows = rows[::-1] if backwards else rows
        if start := request.get("ExclusiveStartKey"):
            at = start[range_name]["S"]
            rows = [r for r in rows if (r[range_name]["S"] < at if backwards else r[range_name]["S"] > at)]
        page = rows[: min(self.page, request.get("Limit", self.page))]
        last = {n: page[-1][n] for n in {hash_name, range_name, *table.key_names}} if len(page) < len(rows) else None
        self.after_query_page()
        return {"Items": page, "LastEvaluatedKey": last}

    def _place(self, full_name: str, key: Raw) -> tuple[dict[str, Raw], str]:
        table = _table(full_name)
        return self.partitions[full_name, key[table.hash]["S"]], key[table.range]["S"] if table.range else ""

    def _stored(self, full_name: str, key: Raw) -> Raw | None:
        partition, sort = self._place(full_name, key)
        return partition.get(sort)

    # --- writes ---

    def _holds(self, body: Raw) -> bool:
        stored = self._stored(body["TableName"], body.get("Key") or body["Item"]) or {}
        names, values = body.get("ExpressionAttributeNames", {}), body.get("ExpressionAttributeValues", {})
        return "ConditionExpression" not in body or _evaluated(body["ConditionExpression"], names, values)(stored)

    def _written(self, kind: str, body: Raw) -> tuple[int, Raw]:
        """Write, and return the larger size of the item before and after, and the item."""
        partition, sort = self._place(body["TableName"], body.get("Key") or body["Item"])
        before = partition.get(sort, {})
        after: Raw = {"Put": body.get("Item"), "Delete": {}, "ConditionCheck": before}.get(kind) or {}
        if kind == "Update":
            after = {**before, **body["Key"]}
            names, values = body["ExpressionAttributeNames"], body.get("ExpressionAttributeValues", {})
            for clause, name, value in _updates(body["UpdateExpression"], names, values):
                if clause == "REMOVE":
                    after.pop(name, None)
                elif clause == "ADD":
                    after[name] = {"N": str(int(after.get(name, {"N": 0})["N"]) + int(value["N"]))}
                else:
                    after[name] = value
        if after:
            partition[sort] = after
        else:
            partition.pop(sort, None)
        key = body.get("Key") or {}
        return max(item_size(before or key), item_size(after or key)), after


@cache
def _table(full_name: str) -> Table:
    (table,) = (one for one in registry.tables() if one.full_name == full_name)
    return table


def _updates(expression: str, names: Mapping[str, str], values: Raw) -> Iterator[tuple[str, str, Raw]]:
    clause = name = ""
    for token in _TOKEN.findall(expression):
        if token in ("SET", "REMOVE", "ADD"):
            clause = token
        elif token.startswith("#"):
            name = names[token]
            if clause == "REMOVE":
                yield clause, name, {}
        elif token.startswith(":"):
            yield clause, name, values[token]


def _evaluated(expression: str, names: Mapping[str, str], values: Raw) -> Callable[[Raw], bool]:
    """Return a function that tells whether a condition holds for a stored item: the condition in words of Python."""

    def spelt(match: re.Match[str]) -> str:
        token = match[0]
        if token.startswith("#"):
            return f"stored({names[token]!r})"
        return f"values[{token!r}]" if token.startswith(":") else _IN_PYTHON.get(token, token)

    expression = re.sub(r"(#\w+) BETWEEN (:\w+) AND (:\w+)", r"(\2 <= \1 <= \3)", expression)
    known = {name: next(iter(typed.values())) for name, typed in values.items()}
    compiled = compile(_TOKEN.sub(spelt, expression), "condition", "eval")

    def holds(item: Raw) -> bool:
        def stored(name: str) -> Any:
            return next(iter(item[name].values())) if name in item else None

        return bool(eval(compiled, {**_FUNCTIONS, "stored": stored, "values": known}))  # noqa: S307  # of PynamoDB's

    return holds
