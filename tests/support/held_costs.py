"""Hold what each request and command of a test asks for against what its route or class declares, both ways.

What was asked for and not declared, or more of it than declared, fails the test that made the request. What is declared
and was never asked for is printed at the end of a run of all tests: what each process has seen is summed up.

A request of which the engine refused a call, which is made again then, is held to its patterns alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import Any

from django.http import HttpRequest

from portal.dynamo import meter
from portal.dynamo.meter import Call, Meter
from portal.management.command import PortalCommand, declared
from portal.schema import access_patterns, registry
from portal.schema.access_patterns import Cost, Pattern
from portal.web import checks, costs

WRITES = dict.fromkeys(("Update", "Delete", "ConditionCheck", "DeleteRequest"), "Key")  # what holds the key
WRITES |= dict.fromkeys(("Put", "PutRequest"), "Item")
_KEY = re.compile(r"<[^>]+>")

# They work in threads, and in processes of their own in most tests: nobody watches all that they ask for.
WORKERS = {"note_bounces", "receive_mail", "run_delivery", "run_dispatch", "run_lifecycle", "run_stream"}
# Any command writes down what it has spent: docs/costs.md.
WRITTEN_AT_THE_END = {("write", "costs of a day"), ("write", "costs of the platform")}
seen: set[tuple[str, str, str]] = set()  # a declaration's name, an operation, the name of keys
faults: list[str] = []  # of the test that runs
_command: ContextVar[list[Call] | None] = ContextVar("calls of a command", default=None)


# --- from a request of DynamoDB to access patterns ---


def patterns_of(operation: str, request: dict[str, Any]) -> Iterator[Pattern]:
    """The access patterns of one request; none for those that are about tables."""
    if operation == "Query":
        yield "query", _queried(request)
    elif operation == "BatchGetItem":
        for table, asked in request["RequestItems"].items():
            for key in asked["Keys"]:
                yield "get", _named(table, key)
    elif operation in ("TransactWriteItems", "TransactGetItems"):
        for member in request["TransactItems"]:
            for kind, one in member.items():
                yield ("get", _named(one["TableName"], one["Key"])) if kind == "Get" else ("write", _written(kind, one))
    elif operation == "BatchWriteItem":
        for table, members in request["RequestItems"].items():
            for member in members:
                for kind, one in member.items():
                    yield "write", _written(kind, {"TableName": table, **one})
    elif operation == "GetItem":
        yield "get", _named(request["TableName"], request["Key"])
    elif operation in ("PutItem", "UpdateItem", "DeleteItem"):
        yield "write", _written(operation.removesuffix("Item"), request)


def _written(kind: str, request: dict[str, Any]) -> str:
    return _named(request["TableName"], request[WRITES[kind]])


def _named(full_name: str, item: dict[str, Any]) -> str:
    table = _table(full_name)
    return shape_of(table.name, "", item[table.hash]["S"], item[table.range]["S"] if table.range else "", True)


def _queried(request: dict[str, Any]) -> str:
    table, condition = _table(request["TableName"]), request["KeyConditionExpression"]
    # PynamoDB writes the partition key's condition first; values are numbered in the order of the text.
    values = [request["ExpressionAttributeValues"][name]["S"] for name in re.findall(r":\w+", condition)]
    label = next((i.label for i in table.indexes if request.get("IndexName") == i.name), "")
    return shape_of(table.name, label, values[0], values[1] if values[1:] else "", False)


def _table(full_name: str) -> Any:
    name = ".".join(full_name.rsplit(".", 2)[-2:])
    return next(table for table in registry.tables() if table.name == name)


@lru_cache(maxsize=50_000)
def shape_of(table: str, label: str, partition: str, sort: str, is_whole: bool) -> str:
    """The name of the shape that a key fits, or the key itself where it fits none. `is_whole` unless `sort` may be the
    beginning of those that are looked for, "" for all."""
    for shape in access_patterns.shapes():
        if (shape.table.name, shape.index.label if shape.index else "") != (table, label):
            continue
        if label or (_fits(shape.partition, partition) and _sort_fits(shape.sort, sort, is_whole)):
            return shape.name
    return f"{table} {partition}, {sort}"


def _fits(shape: str, key: str) -> bool:
    *varies, last = _KEY.split(shape)
    inner = "[^#|]*".join(map(re.escape, varies))
    return bool(re.fullmatch(f"{inner}.*{re.escape(last)}" if varies else re.escape(last), key, re.DOTALL))


def _sort_fits(shape: str, sort: str, is_whole: bool) -> bool:
    if is_whole:
        return _fits(shape, sort)
    literal = shape.partition("<")[0]
    return literal.startswith(sort) or sort.startswith(literal)


# --- what is held ---


def install() -> None:
    """Watch the meter, the end of each request, and commands."""
    bill, note, handle = meter._bill, costs.note, PortalCommand.handle

    def billed(operation: str, request: dict[str, Any], parsed: dict[str, Any], seconds: float) -> Call:
        call, found = bill(operation, request, parsed, seconds), frozenset[Pattern]()
        with suppress(KeyError, RuntimeError):  # a request that a test has made up, of no table of ours
            found = frozenset(patterns_of(operation, request))
        object.__setattr__(call, "patterns", found)  # a call is frozen, and the product needs no keys of it
        of_command = _command.get()
        if of_command is not None and not found & WRITTEN_AT_THE_END:
            of_command.append(call)
        return call

    def noted(request: HttpRequest, route: tuple[str, str], trips: int, reads: float, writes: float) -> None:
        note(request, route, trips, reads, writes)
        paid = meter.current()
        if request.resolver_match is not None and paid is not None:
            method = "GET" if route[0] == "HEAD" else route[0]
            if hasattr(request.resolver_match.func, "costs"):  # else a test's own view
                _hold(f"{method} {route[1]}", costs.bound_of(request, method), paid)

    @wraps(handle)
    def handled(self: PortalCommand, *args: Any, **options: Any) -> Any:
        calls: list[Call] = []
        token = _command.set(calls)
        try:
            return handle(self, *args, **options)
        finally:
            _command.reset(token)
            name = type(self).__module__.rpartition(".")[2]
            bound = getattr(self, "costs", None)
            if bound is not None:
                _compare(f"manage.py {name}", bound, _asked(calls))
                reads, writes = sum(call.read_units for call in calls), sum(call.write_units for call in calls)
                if not bound.has_room_for(0, reads, writes):
                    faults.append(f"manage.py {name} took {reads:g} RCU, {writes:g} WCU of {bound.bound()}.")

    meter._bill, costs.note, PortalCommand.handle = billed, noted, handled  # type: ignore[method-assign]


def _asked(calls: Iterable[Call]) -> set[Pattern]:
    return {pattern for call in calls for pattern in getattr(call, "patterns", ())}


def _hold(name: str, bound: Cost | None, bill: Meter) -> None:
    asked = _asked(bill.calls)
    if bound is None:
        if asked:
            faults.append(f"{name} declares nothing, and asked for {_words(asked)}.")
        return
    _compare(name, bound, asked)
    was_refused = any(call.read_units == call.write_units == 0 for call in bill.calls)
    if not was_refused and not bound.has_room_for(bill.trips, bill.read_units, bill.write_units):
        took = Cost(trips=bill.trips, reads=bill.read_units, writes=bill.write_units)
        faults.append(f"{name} took {took.bound()}, and declares {bound.bound()}.")


def _compare(name: str, declared: Cost, asked: set[Pattern]) -> None:
    seen.update((name, *pattern) for pattern in asked)
    if more := {pattern for pattern in asked if not declared.allows(pattern)}:
        faults.append(f"{name} does not declare: {_words(more)}.")


def _words(patterns: Iterable[Pattern]) -> str:
    return ", ".join(" ".join(pattern) for pattern in sorted(patterns))


def taken_faults() -> list[str]:
    """The faults since the last call, each once."""
    found = list(dict.fromkeys(faults))
    faults.clear()
    return found


# --- what was never seen ---


def never_seen(found: set[tuple[str, str, str]]) -> list[str]:
    """What is declared, and what no test of a whole run has asked for."""
    left: dict[int, tuple[str, set[Pattern]]] = {}  # by declaration: several routes may share one
    for name, what, is_of in _declarations():
        used = {(operation, keys) for route, operation, keys in found if is_of(route)}
        used |= {(operation, access_patterns.ALL) for operation, _ in used}
        told, missing = left.get(id(what), (name, set(what.patterns)))
        left[id(what)] = told, missing - used
    return [f"{name} declares what no test saw: {_words(missing)}." for name, missing in left.values() if missing]


def _declarations() -> Iterator[tuple[str, Cost, Callable[[str], bool]]]:
    for route, method, _, what in checks.declared_costs():
        name = f"{method} {route}".strip()
        yield name, what, (lambda at, n=name, m=method: at == n if m else at.partition(" ")[2] == n)  # type: ignore[misc]
    by_level: dict[str, set[str]] = {}
    for route, view in checks.routes():
        by_level.setdefault(view.access.level, set()).add(route)  # type: ignore[attr-defined]
    for level, what in costs.levels().items():
        paths = by_level.get(level)  # None for what happens now and then on any route
        yield level, what, (lambda at, p=paths: p is None or at.partition(" ")[2] in p)  # type: ignore[misc]
    for name, what in declared().items():
        if what is not None and name not in WORKERS:
            yield f"manage.py {name}", what, (lambda at, n=name: at == f"manage.py {n}")  # type: ignore[misc]
