"""Count what a request costs: round trips, items, bytes and capacity units.

Read capacity is computed from the sizes of what came back, by AWS's published rules, because local engines
report made-up numbers for reads. Write capacity is what the engine reports (measured right on ministack and
DynamoDB Local), since only the engine knows an updated item's size before and after and its index moves.

Writes are asked for by index, so that what an index costs stands apart. That costs no units, and some 60 bytes of an
answer for each index that is written.

Rules: Amazon DynamoDB Developer Guide, "DynamoDB item sizes and formats" and "Read and write operations".
An eventually consistent read costs 0.5 units per 4 KB begun, a consistent one 1, a transactional one 2.
GetItem, and each item of a batch, is rounded up on its own; a Query is rounded up once over all that it read.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NamedTuple, Protocol

_current: ContextVar[Meter | None] = ContextVar("meter", default=None)
_group: ContextVar[object | None] = ContextVar("meter_group", default=None)


_THROTTLES: Final = {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"}


class Listener(Protocol):
    """Hear what each request of this process costs, beside the meters."""

    def charged(self, call: Call) -> None:
        """Take note of a request that was answered, and of its capacity units."""

    def throttled(self) -> None:
        """Take note of a request that was refused because there were too many; it may be sent again."""


listener: Listener | None = None  # of this process


READ, WRITE, INDEX_WRITE = "r", "w", "i"  # the kinds of units: of the table or an index, of the table, of its indexes


class CapacityPart(NamedTuple):
    """The units of one kind that a request used of one table, named as it is declared: `Support.Tickets`."""

    table: str
    kind: str
    units: float


@dataclass(frozen=True)
class Call:
    """One request to the engine. Capacity in units, `size` in bytes of the items that came back.

    `parts` add up to `read_units` and `write_units`.
    """

    operation: str
    table: str
    index: str | None
    items: int
    size: int
    read_units: float
    write_units: float
    seconds: float
    parts: tuple[CapacityPart, ...] = ()


@dataclass
class Meter:
    """The bill of one request or command."""

    calls: list[Call] = field(default_factory=list)
    trips: int = 0  # sequential: calls sent together by `client.fan_out` count once
    _groups: set[object] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, call: Call) -> None:
        group = _group.get()
        with self._lock:
            self.calls.append(call)
            if group is None or group not in self._groups:
                self.trips += 1
            if group is not None:
                self._groups.add(group)

    @property
    def read_units(self) -> float:
        return sum(c.read_units for c in self.calls)

    @property
    def write_units(self) -> float:
        return sum(c.write_units for c in self.calls)

    @property
    def items(self) -> int:
        return sum(c.items for c in self.calls)

    @property
    def size(self) -> int:
        return sum(c.size for c in self.calls)

    def server_timing(self) -> str:
        """Return the bill as a Server-Timing header value: durations in milliseconds, counts in descriptions."""
        waited = sum(c.seconds for c in self.calls) * 1000
        bill = (
            f"{self.trips} trips, {len(self.calls)} calls, {self.items} items, {self.size} B, "
            f"{self.read_units:g} RCU, {self.write_units:g} WCU"
        )
        return f'dynamodb;dur={waited:.1f};desc="{bill}"'


@contextmanager
def measure() -> Iterator[Meter]:
    """Count all calls made in this context, in fan-out threads too. A nested meter takes over from the outer one."""
    meter = Meter()
    token = _current.set(meter)
    try:
        yield meter
    finally:
        _current.reset(token)


def current() -> Meter | None:
    """Return the meter that counts now, for a page that says what it has cost so far."""
    return _current.get()


@contextmanager
def together() -> Iterator[None]:
    """Count the calls made inside as one sequential round trip, in which a nested group joins the outer one."""
    if _group.get() is not None:
        yield
        return
    token = _group.set(object())
    try:
        yield
    finally:
        _group.reset(token)


@contextmanager
def meanwhile() -> Iterator[None]:
    """Count the calls made inside as no round trip: they are made while other calls of the same bill are under way."""
    group, meter = object(), _current.get()
    if meter is not None:
        meter._groups.add(group)
    token = _group.set(group)
    try:
        yield
    finally:
        _group.reset(token)


# --- sizes and units ---


def attribute_size(value: dict[str, Any]) -> int:
    """Return the bytes that AWS counts for one typed attribute value such as {"S": "x"}."""
    ((kind, content),) = value.items()
    match kind:
        case "S":
            return len(str(content).encode())
        case "N":
            return _number_size(str(content))
        case "B":
            return len(bytes(content))
        case "BOOL" | "NULL":
            return 1
        case "SS":
            return sum(len(s.encode()) for s in content)
        case "NS":
            return sum(attribute_size({"N": n}) for n in content)
        case "BS":
            return sum(len(b) for b in content)
        case "L":
            return 3 + sum(1 + attribute_size(v) for v in content)
        case "M":
            return 3 + sum(1 + len(k.encode()) + attribute_size(v) for k, v in content.items())
    raise ValueError(f"unknown attribute type {kind}")


@lru_cache(maxsize=4096)
def _number_size(number: str) -> int:
    digits = number.lstrip("-").replace(".", "").strip("0")
    return math.ceil(len(digits) / 2) + 1 + number.startswith("-")


def item_size(item: dict[str, dict[str, Any]]) -> int:
    """Return the bytes that AWS counts for an item: names and values."""
    names = "".join(item)
    size = len(names) if names.isascii() else len(names.encode())
    for value in item.values():
        # Most attributes are short texts and numbers, and every page counts all that it read.
        if (text := value.get("S")) is not None and text.isascii():
            size += len(text)
        else:
            size += _number_size(number) if (number := value.get("N")) is not None else attribute_size(value)
    return size


def read_units(size: int, *, per_4k: float = 0.5) -> float:
    """Return the units for reading `size` bytes in one go; reading nothing costs as much as reading one byte."""
    return max(1, math.ceil(size / 4096)) * per_4k


def attach(client: Any) -> None:
    """Meter every call of this botocore client."""
    # The bare name: botocore adds a transaction's token under the service-specific one.
    client.meta.events.register_last("before-parameter-build", _before)
    client.meta.events.register_last("after-call.dynamodb", _after)
    client.meta.events.register_last("after-call-error.dynamodb", _failed)
    client.meta.events.register_first("needs-retry.dynamodb", _answered)


def _before(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    if _current.get() is not None or listener is not None:
        context["meter_request"] = params
        context["meter_started"] = time.perf_counter()


def _answered(response: tuple[Any, dict[str, Any]] | None, **_: Any) -> None:
    """Hear of each attempt: what was throttled once and then went through is a throttle, too."""
    hearing = listener
    if hearing is not None and response and response[1].get("Error", {}).get("Code", "") in _THROTTLES:
        hearing.throttled()


def _failed(context: dict[str, Any], **_: Any) -> None:
    meter = _current.get()
    if meter is not None:
        started = context.get("meter_started", time.perf_counter())
        meter.add(Call("(no answer)", "", None, 0, 0, 0, 0, time.perf_counter() - started))


def _after(model: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    meter, hearing = _current.get(), listener
    if meter is None and hearing is None:
        return
    request = context.get("meter_request") or {}
    seconds = time.perf_counter() - context.get("meter_started", time.perf_counter())
    call = _bill(model.name, request, parsed, seconds)
    if meter is not None:
        meter.add(call)
    if hearing is not None:
        hearing.charged(call)


@lru_cache(maxsize=1024)
def declared_name(table: str) -> str:
    """Return the name of a table without its prefix, and without the id of a tenant that has it to itself."""
    return ".".join(table.rsplit(".", 2)[-2:])


def _bill(operation: str, request: dict[str, Any], parsed: dict[str, Any], seconds: float) -> Call:
    table, index = request.get("TableName", ""), request.get("IndexName")
    if "Error" in parsed:  # refused; what a failed condition costs is not in the answer
        return Call(operation, table, index, 0, 0, 0, 0, seconds)
    per_4k = 1.0 if request.get("ConsistentRead") else 0.5
    sizes: list[int] = []
    reads = writes = 0.0
    parts: list[CapacityPart] = []
    if operation == "GetItem":
        sizes = [item_size(parsed["Item"])] if parsed.get("Item") else []
        reads = read_units(sum(sizes), per_4k=per_4k)
        parts = [CapacityPart(declared_name(table), READ, reads)]
    elif operation == "Query":
        sizes = [item_size(i) for i in parsed.get("Items", ())]
        reads = read_units(sum(sizes), per_4k=per_4k)
        parts = [CapacityPart(declared_name(table), READ, reads)]
    elif operation == "BatchGetItem":
        wanted = request.get("RequestItems", {})
        table = ",".join(sorted(wanted))
        for name, asked in wanted.items():
            rate = 1.0 if asked.get("ConsistentRead") else 0.5
            found = [item_size(i) for i in parsed.get("Responses", {}).get(name, ())]
            later = len(parsed.get("UnprocessedKeys", {}).get(name, {}).get("Keys", ()))
            missing = len(asked["Keys"]) - len(found) - later
            parts.append(
                CapacityPart(declared_name(name), READ, sum(read_units(s, per_4k=rate) for s in found) + missing * rate)
            )
            sizes += found
        reads = sum(part.units for part in parts)
    elif operation == "TransactGetItems":
        for member, answer in zip(request.get("TransactItems", ()), parsed.get("Responses", ()), strict=False):
            if answer.get("Item"):
                sizes.append(item_size(answer["Item"]))
                parts.append(
                    CapacityPart(declared_name(member["Get"]["TableName"]), READ, read_units(sizes[-1], per_4k=2))
                )
        reads = sum(part.units for part in parts)
    else:
        consumed = parsed.get("ConsumedCapacity") or []
        entries = consumed if isinstance(consumed, list) else [consumed]
        parts = [part for entry in entries for part in _written(entry)]
        writes = sum(part.units for part in parts)
        table = table or ",".join(sorted({e.get("TableName", "") for e in entries}))
    return Call(operation, table, index, len(sizes), sum(sizes), reads, writes, seconds, tuple(parts))


def _written(consumed: dict[str, Any]) -> Iterator[CapacityPart]:
    """Yield what a write used of one table: the indexes' part, where the engine tells of it, and the rest."""
    total = float(consumed.get("CapacityUnits") or 0)
    indexes = (consumed.get("GlobalSecondaryIndexes") or {}).values()
    of_indexes = sum(float(index.get("CapacityUnits") or 0) for index in indexes)
    name = declared_name(consumed.get("TableName", ""))
    yield CapacityPart(name, WRITE, total - of_indexes)
    if of_indexes:
        yield CapacityPart(name, INDEX_WRITE, of_indexes)
