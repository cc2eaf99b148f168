"""Read and write a tenant's index as the stream worker, under its own policy and guard.

Errors: those of `portal.errors`, here also Rejected.

Writes keep below what a partition takes: the blocks of a segment share one, and a large merge could send thousands of
write units there in a second. AWS gives a partition 1,000; source: AWS, "Designing partition keys to distribute your
workload". The lock of a merge saves work and decides nothing: what makes a merge safe is the condition of its commit,
see `publishing.py`. So the lock may rest on clocks.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Final

from portal import clock
from portal.dynamo.batches import BATCH_GET_LIMIT
from portal.dynamo.client import fan_out
from portal.dynamo.meter import item_size
from portal.errors import ConditionFailed, Throttled
from portal.isolation import guard
from portal.streams import worker
from tickets.search import stored
from tickets.search.stored import SEARCH

UNITS_A_SECOND: Final = 600.0
# Write units that may come at once, beside what one group of requests takes: 16 blocks of 16 KB are 256.
BURST: Final = 120.0


class WritePace:
    """Count the write units that were sent, and wait where they would come too fast."""

    def __init__(self, *, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], None] = time.sleep):
        self._now, self._sleep = now, sleep
        self._sent_until = now()  # when all that was sent would have been sent at an even pace

    def spend(self, units: float) -> None:
        """Take note of write units that were sent."""
        self._sent_until = max(self._sent_until, self._now()) + units / UNITS_A_SECOND

    def wait(self) -> None:
        """Return when there is room for a group of requests."""
        ahead = self._sent_until - self._now() - BURST / UNITS_A_SECOND
        if ahead > 0:
            self._sleep(ahead)


# --- the store ---


Raw = dict[str, Any]

_AT_ONCE: Final = 16  # items that are written or deleted side by side
_TRIES: Final = 6  # for keys that the engine left unprocessed


class MissingBlock(Throttled):
    """A block that a header names is not there: it was deleted meanwhile, and the header with it."""


@dataclass(frozen=True)
class RowWrite:
    """A write of one row of the directory: these attributes, or None to delete it. Or a check of it, beside writes.

    With `unchanged` the row must be there and have these attributes, None for one that it must lack.
    """

    sort_key: str
    attributes: Mapping[str, Any] | None = None
    unchanged: Mapping[str, Any] | None = None
    is_check: bool = False


class IndexStore:
    """The index of one tenant in DynamoDB. All reads are consistent. `write_units` is what the writes have cost.

    Blocks are written and deleted at a pace that the partition of a segment bears.
    """

    def __init__(self, tenant_id: str) -> None:
        self.tenant_id = tenant_id
        self.write_units = 0.0
        self._pace = WritePace()

    def next_number(self) -> int:
        """Return a number that no segment of this tenant has had: one UpdateItem."""
        answer = self._update("ADD #last :one", {"#last": "last"}, {":one": {"N": "1"}}, ReturnValues="UPDATED_NEW")
        return int(answer["Attributes"]["last"]["N"])

    def lock(self, owner: str, *, now: str, until: str) -> bool:
        """Take the right to merge, stamps of this process's clock; False where another one has it."""
        free = "attribute_not_exists(#owner) OR #owner = :owner OR #until < :now"
        return self._locked(free, {":owner": {"S": owner}, ":until": {"S": until}, ":now": {"S": now}})

    def renew(self, owner: str, *, until: str) -> bool:
        """Keep the right to merge; False where nobody has it or another one."""
        return self._locked("#owner = :owner", {":owner": {"S": owner}, ":until": {"S": until}})

    def _locked(self, condition: str, values: Raw) -> bool:
        names = {"#owner": "owner", "#until": "until"}
        try:
            self._update("SET #owner = :owner, #until = :until", names, values, ConditionExpression=condition)
        except ConditionFailed:
            return False
        return True

    def unlock(self, owner: str) -> None:
        """Give the right to merge back; nothing where another one has it by now."""
        names, values = {"#owner": "owner", "#until": "until"}, {":owner": {"S": owner}}
        with suppress(ConditionFailed):
            self._update("REMOVE #owner, #until", names, values, ConditionExpression="#owner = :owner")

    def rows(self, first: str, last: str) -> Iterator[Raw]:
        """Return the rows of the directory between two sort keys, both included, page by page."""
        return self._query(stored.directory(self.tenant_id), first, last)

    def write(self, *rows: RowWrite) -> None:
        """Write one row, or several all or nothing. Raises ConditionFailed for one, TransactionRefused for several."""
        members = [self._member(row) for row in rows]
        if len(members) > 1:
            self._send("TransactWriteItems", {"TransactItems": members, "ClientRequestToken": str(uuid.uuid4())})
            return
        for kind, request in members[0].items():
            self._send(f"{kind}Item", request)

    def delete_rows(self, sort_keys: Iterable[str]) -> None:
        """Delete rows of the directory, side by side. One that is not there is no error."""
        self._delete_all(self._row(sort_key) for sort_key in sort_keys)

    def blocks(self, segment: str, numbers: Sequence[int]) -> list[bytes]:
        """Return these blocks in this order: one BatchGetItem, at most 100. Raises MissingBlock."""
        if len(numbers) > BATCH_GET_LIMIT:
            raise ValueError(f"at most {BATCH_GET_LIMIT} blocks are read at once")
        found: dict[str, bytes] = {}
        left = [self._block(segment, number) for number in numbers]
        for attempt in range(_TRIES):
            if not left:
                break
            time.sleep(0 if not attempt else 0.02 * 2**attempt)
            answer = self._send("BatchGetItem", {"RequestItems": {_table(): {"Keys": left, "ConsistentRead": True}}})
            found |= {raw["sk"]["S"]: bytes(raw["d"]["B"]) for raw in answer["Responses"].get(_table(), [])}
            left = (answer.get("UnprocessedKeys") or {}).get(_table(), {}).get("Keys", [])
        if left:
            raise Throttled("The database did not return every block.")
        if len(found) < len(numbers):
            raise MissingBlock(f"Segment {segment} lacks a block.")
        return [found[stored.block(number)] for number in numbers]

    def put_blocks(self, segment: str, blocks: Mapping[int, bytes]) -> None:
        """Write blocks of a segment, side by side, some at a time."""
        items = [{**self._block(segment, number), "d": {"B": data}} for number, data in blocks.items()]
        puts = [{"TableName": SEARCH.full_name, "Item": item} for item in items]
        self._send_all("PutItem", puts)

    def delete_blocks(self, segment: str, numbers: Iterable[int]) -> None:
        """Delete blocks of a segment, side by side. One that is not there is no error."""
        self._delete_all(self._block(segment, number) for number in numbers)

    def block_numbers(self, segment: str) -> list[int]:
        """Return which blocks of a segment are stored, by reading all of them."""
        partition = stored.segment(self.tenant_id, segment)
        return [int(raw["sk"]["S"]) for raw in self._query(partition, stored.block(0), stored.LAST_BLOCK)]

    def _member(self, row: RowWrite) -> Raw:
        request: Raw = {"TableName": SEARCH.full_name}
        if row.unchanged is not None:
            wanted = list(row.unchanged.items())
            exact = [
                f"#a{n} = :a{n}" if value else f"attribute_not_exists(#a{n})" for n, (_, value) in enumerate(wanted)
            ]
            values = {f":a{n}": value for n, (_, value) in enumerate(wanted) if value}
            request["ConditionExpression"] = " AND ".join(["attribute_exists(#r)", *exact])
            request["ExpressionAttributeNames"] = {"#r": "sk"} | {f"#a{n}": name for n, (name, _) in enumerate(wanted)}
            request |= {"ExpressionAttributeValues": values} if values else {}
        if row.is_check:
            return {"ConditionCheck": {**request, "Key": self._row(row.sort_key)}}
        if row.attributes is None:
            return {"Delete": {**request, "Key": self._row(row.sort_key)}}
        return {"Put": {**request, "Item": {**row.attributes, **self._row(row.sort_key)}}}

    def _update(self, expression: str, names: Raw, values: Raw, **more: Any) -> Raw:
        request = {
            "TableName": SEARCH.full_name,
            "Key": self._row(stored.LOCK),
            "UpdateExpression": expression,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values,
        }
        return self._send("UpdateItem", {**request, **more})

    def _query(self, partition: str, first: str, last: str) -> Iterator[Raw]:
        request: Raw = {
            "TableName": SEARCH.full_name,
            "KeyConditionExpression": "#h = :h AND #r BETWEEN :first AND :last",
            "ExpressionAttributeNames": {"#h": "pk", "#r": "sk"},
            "ExpressionAttributeValues": {":h": {"S": partition}, ":first": {"S": first}, ":last": {"S": last}},
            "ConsistentRead": True,
        }
        while True:
            answer = self._send("Query", request)
            yield from answer["Items"]
            if not answer.get("LastEvaluatedKey"):
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _row(self, sort_key: str) -> Raw:
        return {"pk": {"S": stored.directory(self.tenant_id)}, "sk": {"S": sort_key}}

    def _block(self, segment: str, number: int) -> Raw:
        return {"pk": {"S": stored.segment(self.tenant_id, segment)}, "sk": {"S": stored.block(number)}}

    def _delete_all(self, found: Iterable[Raw]) -> None:
        requests = [{"TableName": SEARCH.full_name, "Key": key} for key in found]
        self._send_all("DeleteItem", requests)

    def _send_all(self, operation: str, requests: Sequence[Raw]) -> None:
        for start in range(0, len(requests), _AT_ONCE):
            self._pace.wait()
            fan_out([partial(self._send, operation, request) for request in requests[start : start + _AT_ONCE]])

    def _send(self, operation: str, request: Raw) -> Raw:
        reads = operation in ("Query", "BatchGetItem")
        with guard.acting_for(self.tenant_id):
            answer = worker.dispatch(operation, request if reads else {**request, "ReturnConsumedCapacity": "TOTAL"})
        if not reads:
            consumed = answer.get("ConsumedCapacity") or []
            several = consumed if isinstance(consumed, list) else [consumed]
            units = sum(float(one.get("CapacityUnits") or 0) for one in several)
            self.write_units += units
            self._pace.spend(units)
        return answer


def block_overhead() -> int:
    """Return the bytes that a block's item has beside the block."""
    zero: dict[str, Raw] = {
        "pk": {"S": stored.segment("0" * 32, stored.segment_id(1))},
        "sk": {"S": stored.block(0)},
        "d": {"B": b""},
    }
    return item_size(zero)


def _table() -> str:
    return SEARCH.full_name


# --- the lock ---


SECONDS: Final = 60.0  # without a sign of life, after which another process may merge


class LockLost(Throttled):
    """Another process merges this tenant's segments: this one was silent for too long."""


class IndexLock:
    """The right to merge one tenant's segments, to be kept from time to time. As a context it ends with it."""

    def __init__(self, store: IndexStore) -> None:
        self._store = store
        self._me = uuid.uuid4().hex
        self._renew_at = ""

    def take(self) -> bool:
        """Take it. False where another process has it. Raises Throttled, Unavailable."""
        now, until = self._times()
        return self._store.lock(self._me, now=now, until=until)

    def keep(self) -> None:
        """Renew it when it is time to. Raises LockLost, also where the whole index is gone: it is not made again."""
        if clock.stamp() > self._renew_at and not self._store.renew(self._me, until=self._times()[1]):
            raise LockLost("Another process merges this tenant's segments.")

    def _times(self) -> tuple[str, str]:
        now = clock.now()
        self._renew_at = clock.stamp(now + timedelta(seconds=SECONDS / 3))
        return clock.stamp(now), clock.stamp(now + timedelta(seconds=SECONDS))

    def __enter__(self) -> IndexLock:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._store.unlock(self._me)
