"""Hold what each request and command of a test asks for against what its route or class declares, in both directions.

What was asked for and not declared, or more of it than declared, fails the test that made the request. What is declared
and not true fails a run with `--costs`: keys that no request asked for, and bounds far above all that was seen, of the
routes that the chosen tests requested. A run of all tests prints the same of all routes and commands.

A request of which the engine refused a call, which is made again then, is held to its patterns alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import Any, Final

from django.http import HttpRequest

from portal.dynamo import meter
from portal.dynamo.meter import Call
from portal.management.command import PortalCommand, declared
from portal.schema import access_patterns, registry
from portal.schema.access_patterns import Bill, Cost, Pattern, in_words, words
from portal.web import access, checks

WRITES = dict.fromkeys(("Update", "Delete", "ConditionCheck", "DeleteRequest"), "Key")  # what holds the key
WRITES |= dict.fromkeys(("Put", "PutRequest"), "Item")
_KEY = re.compile(r"<[^>]+>")

# They work in threads, and in processes of their own in most tests: nobody watches all that they ask for.
WORKERS: Final = {
    "note_bounces", "prepare_demo", "receive_mail", "restore_drill", "run_delivery", "run_dispatch", "run_lifecycle",
    "run_stream",
}  # fmt: skip
# Any command writes down what it has spent: docs/costs.md.
WRITTEN_AT_THE_END: Final = {("write", "costs of a day"), ("write", "costs of the platform")}
# What a process remembers, or does once in a while by the clock: which of the routes that declare it asks for it
# depends on what was asked before.
REMEMBERED: Final[set[Pattern]] = {
    ("get", "watermark"),  # how far counts are
    ("get", "placed stream"),  # the same, of a desk with tables of its own
    ("query", "placed tenant"),  # which desks have tables of their own
    ("get", "search segment"),  # headers of the search index
    ("write", "costs of a day"),  # the size of a desk's tickets, counted once a week
}
# A bound may be this far above the most that was seen: trips, read units, write units.
FACTORS: Final = (2, 3, 3)
ROOM: Final = (2, 10, 10)


@dataclass
class Seen:
    """What requests of one method and route, or runs of one command, took. `is_near` for each figure of a bill: some
    request came near its bound. The bills are without what levels take."""

    patterns: set[Pattern] = field(default_factory=set)
    most: Bill = (0, 0, 0)
    is_near: tuple[bool, ...] = (False, False, False)

    def add(self, other: Seen) -> None:
        self.patterns |= {(operation, keys) for operation, keys in other.patterns}
        self.most = tuple(map(max, self.most, other.most))  # type: ignore[assignment]
        self.is_near = tuple(one or two for one, two in zip(self.is_near, other.is_near, strict=True))


seen: dict[str, Seen] = {}  # by method and route, or name of a command
faults: list[str] = []  # of the test that runs
is_counted = True  # what the test that runs requests
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
    bill, note, handle = meter._bill, access.note_cost, PortalCommand.handle

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
        paid, match = meter.current(), request.resolver_match
        if match is not None and paid is not None and not match.func.__module__.startswith("tests."):
            method = "GET" if route[0] == "HEAD" else route[0]
            was_refused = any(_is_refused(call) for call in paid.calls)
            took = None if was_refused else (trips, reads, writes)
            own, more = access.parts_of_cost(request, method)
            if own is None and hasattr(match.func, "costs"):
                own = Cost()  # the view refuses this method
            _hold(f"{method} {route[1]}", own, more, _asked(paid.calls), took)

    @wraps(handle)
    def handled(self: PortalCommand, *args: Any, **options: Any) -> Any:
        calls: list[Call] = []
        token = _command.set(calls)
        try:
            # Without a meter nothing is billed; a test that measures the command has one of its own.
            with meter.measure() if meter.current() is None else nullcontext():
                return handle(self, *args, **options)
        finally:
            _command.reset(token)
            name = type(self).__module__.rpartition(".")[2]
            bound = getattr(self, "costs", None)
            if bound is not None:
                took = (0, sum(call.read_units for call in calls), sum(call.write_units for call in calls))
                is_held = bound.each or not bound.per
                _hold(
                    f"manage.py {name}",
                    bound.of(max(self.counted, 1)),
                    Cost(),
                    _asked(calls),
                    took if is_held else None,
                )

    meter._bill, access.note_cost, PortalCommand.handle = billed, noted, handled  # type: ignore[method-assign]


def _is_refused(call: Call) -> bool:
    """Whether the engine refused a call about items, or gave no answer."""
    is_of_items = bool(getattr(call, "patterns", ())) or call.operation == "(no answer)"
    return is_of_items and call.read_units == call.write_units == 0


def _asked(calls: Iterable[Call]) -> set[Pattern]:
    return {pattern for call in calls for pattern in getattr(call, "patterns", ())}


def _hold(name: str, own: Cost | None, more: Cost, asked: set[Pattern], took: Bill | None) -> None:
    """Hold a bill, None where it counts for nothing, against the bound of a view and what it takes beside that."""
    if own is None:
        unknown = words(pattern for pattern in asked if not more.allows(pattern))
        faults.append(f"{name} declares nothing, and asked for {unknown or 'nothing of its own'}.")
        return
    of_this = Seen({pattern for pattern in asked if pattern in own.patterns or not more.allows(pattern)})
    beyond = words(pattern for pattern in asked if not own.allows(pattern) and not more.allows(pattern))
    if beyond:
        faults.append(f"{name} does not declare: {beyond}.")
    if took is not None:
        of_this.most = tuple(max(0, one - of_level) for one, of_level in zip(took, more.bill, strict=True))  # type: ignore[assignment]
        of_this.is_near = tuple(
            most <= factor * one + room
            for most, one, factor, room in zip(own.bill, of_this.most, FACTORS, ROOM, strict=True)
        )
        if not (own + more).has_room_for(took):
            beside = f", beside {in_words(more.bill)} before the view" if any(more.bill) else ""
            faults.append(f"{name} took {in_words(took)}, and declares {own.bound()}{beside}.")
    if is_counted:
        seen.setdefault(name, Seen()).add(of_this)


def taken_faults() -> list[str]:
    """The faults since the last call, each once."""
    found = list(dict.fromkeys(faults))
    faults.clear()
    return found


# --- what is declared and not true ---


def untrue(found: dict[str, Seen], *, of_all: bool) -> list[str]:
    """What is declared, and no request or command that was seen bears out: of all routes and commands, or of those that
    were seen. A declaration that several routes have is true where it is of one of them."""
    left: dict[int, tuple[str, Cost, Seen]] = {}
    for name, names, what in _declarations():
        used = [found[one] for one in names if one in found]
        if used or of_all:
            _, _, seen_of = left.setdefault(id(what), (name, what, Seen()))
            for one in used:
                seen_of.add(one)
    return [fault for name, what, seen_of in left.values() for fault in _untrue_of(name, what, seen_of)]


def _untrue_of(name: str, what: Cost, seen_of: Seen) -> Iterator[str]:
    if seen_of == Seen():
        if what.patterns:
            yield f"{name} declares its cost, and nothing called it."
        return
    everything = {(operation, access_patterns.ALL) for operation, _ in seen_of.patterns}
    if missing := what.patterns - seen_of.patterns - everything - REMEMBERED:
        yield f"{name} declares what nothing asked for: {words(missing)}."
    if not all(seen_of.is_near) and not what.room and (what.each or not what.per):
        took = in_words(seen_of.most) or "nothing"
        yield f"{name} declares {what.bound()}, and took {took} at most: lower it, or say why as `room`."


def _declarations() -> Iterator[tuple[str, list[str], Cost]]:
    """Each declaration with its name, and the names under which its requests are seen."""
    for one in checks.declared_routes():
        methods = [one.method] if one.method else [*{"GET", "POST", "PUT", "PATCH", "DELETE"}]
        yield one.title, [f"{method} {one.path}" for method in methods], one.cost
    for name, what in declared().items():
        if what is not None and name not in WORKERS:
            yield f"manage.py {name}", [f"manage.py {name}"], what
