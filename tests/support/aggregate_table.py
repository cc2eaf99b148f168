"""The table of aggregates in memory, for tests that need thousands of writes or a death between any two of them.

It answers the requests that the stream worker sends, and nothing else, as DynamoDB does: conditions are checked,
several writes of a transaction are done or refused together, and capacity follows AWS's published rules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest

from portal.dynamo import client
from portal.dynamo.meter import item_size
from portal.errors import ConditionFailed, Reason, TransactionRefused
from portal.streams import positions, shards
from tickets.counting import merge, stored, stored_counts
from tickets.counting.contributions import Contribution
from tickets.counting.stored import AGGREGATES, Recent

Raw = dict[str, Any]


class AggregateTable:
    """`items` by partition and sort key; `positions` by shard; `left` are shards that have left the stream. `before` is
    called ahead of every request."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, str], Raw] = {}
        self.positions: dict[str, str] = {}
        self.left: set[str] = set()
        self.before: Callable[[str], object] = lambda operation: None
        self.write_units = self.read_units = 0.0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(client.connection("worker"), "dispatch", self.dispatch)
        patch.setattr(positions, "_stored", self.position)
        patch.setattr(shards, "has_left", self.has_left)
        # One after the other, so that a test can stop ahead of each.
        patch.setattr(merge, "fan_out", lambda calls: [call() for call in calls])

    def position(self, stream_arn: str, shard_id: str) -> str:
        self.before("Position")
        self.read_units += 2
        return self.positions.get(shard_id, "")

    def has_left(self, stream_arn: str, shard_id: str) -> bool:
        self.before("GetShardIterator")
        return shard_id in self.left

    def leave(self, shard_id: str) -> None:
        """Let a finished shard leave the stream, and what is kept of it with it."""
        self.left.add(shard_id)
        self.positions.pop(shard_id, None)

    def dispatch(self, operation: str, request: Raw) -> Raw:
        self.before(operation)
        answer: Raw = getattr(self, f"_{operation}")(request)
        return answer

    def recent(self, tenant_id: str) -> Recent:
        raw = self.items.get((stored.aggregate(tenant_id), stored.RECENT))
        return Recent.from_raw_data(raw) if raw else Recent(stored.aggregate(tenant_id), stored.RECENT)

    def counts(self, tenant_id: str) -> Contribution:
        """All counts of the one tenant of this table, wherever they lie."""
        found = [AGGREGATES.from_raw_data(raw) for raw in self.items.values()]
        return stored_counts.of(found, self.recent(tenant_id)).counts

    # --- reads ---

    def _GetItem(self, request: Raw) -> Raw:
        item = self.items.get(_key(request["Key"]))
        self.read_units += math.ceil(item_size(item or {}) / 4096) or 1
        return {"Item": dict(item)} if item else {}

    def _BatchGetItem(self, request: Raw) -> Raw:
        ((name, wanted),) = request["RequestItems"].items()
        answers = [self._GetItem({"Key": key}).get("Item") for key in wanted["Keys"]]
        return {"Responses": {name: [item for item in answers if item]}}

    def _Query(self, request: Raw) -> Raw:
        values = request["ExpressionAttributeValues"]
        prefix = values.get(":r", {"S": ""})["S"]
        items = [
            dict(item)
            for (pk, sk), item in sorted(self.items.items())
            if pk == values[":h"]["S"] and sk.startswith(prefix)
        ]
        self.read_units += math.ceil(sum(map(item_size, items)) / 4096) or 1
        return {"Items": items}

    # --- writes ---

    def _UpdateItem(self, request: Raw) -> Raw:
        before = self.items.get(_key(request["Key"]), {})
        # DynamoDB takes 300 operators and 4 KB of expression; all updates keep well below.
        assert len(request["ExpressionAttributeNames"]) <= 200
        if not _holds(request, before):
            self._spend(before, before)
            raise ConditionFailed(item=dict(before))
        after = self._updated(request, before)
        units = self._write(_key(request["Key"]), after)
        return {"Attributes": dict(after), "ConsumedCapacity": {"CapacityUnits": units}}

    def _TransactWriteItems(self, request: Raw) -> Raw:
        members = [next(iter(member.items())) for member in request["TransactItems"]]
        befores = [self.items.get(_key(body.get("Item") or body["Key"]), {}) for _, body in members]
        held = [_holds(body, before) for (_, body), before in zip(members, befores, strict=True)]
        if not all(held):
            raise TransactionRefused([None if ok else Reason("ConditionalCheckFailed", "", None) for ok in held])
        units = 0.0
        for (kind, body), before in zip(members, befores, strict=True):
            after = body["Item"] if kind == "Put" else self._updated(body, before)
            units += 2 * self._write(_key(after), after)
        self.write_units += units / 2
        return {"ConsumedCapacity": [{"CapacityUnits": units}]}

    def _DeleteItem(self, request: Raw) -> Raw:
        before = self.items.get(_key(request["Key"]), {})
        if not _holds(request, before):
            raise ConditionFailed(item=dict(before))
        return {"ConsumedCapacity": {"CapacityUnits": self._write(_key(request["Key"]), None)}}

    def _PutItem(self, request: Raw) -> Raw:
        if "pk" not in request["Item"]:
            return {}  # a dead letter
        return {"ConsumedCapacity": {"CapacityUnits": self._write(_key(request["Item"]), request["Item"])}}

    def _updated(self, request: Raw, before: Raw) -> Raw:
        after, values = {**before, **request["Key"]}, request["ExpressionAttributeValues"]
        names = request["ExpressionAttributeNames"]
        sets, _, adds = request["UpdateExpression"].partition("ADD ")
        for name, value in re.findall(r"(#\w+) = (:\w+)", sets):
            after[names[name]] = values[value]
        for name, value in re.findall(r"(#\w+) (:\w+)", adds):
            total = int(after.get(names[name], {"N": "0"})["N"]) + int(values[value]["N"])
            after[names[name]] = {"N": str(total)}
        return after

    def _write(self, key: tuple[str, str], after: Raw | None) -> float:
        before = self.items.pop(key, {})
        if after is not None:
            self.items[key] = dict(after)
        return self._spend(before, after or {})

    def _spend(self, before: Raw, after: Raw) -> float:
        units = math.ceil(max(item_size(before), item_size(after)) / 1024) or 1
        self.write_units += units
        return float(units)


def _key(item: Raw) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


def _holds(request: Raw, item: Raw) -> bool:
    """Check a condition: comparisons of texts and numbers, and attribute_not_exists, joined by AND and OR."""
    names, values = request.get("ExpressionAttributeNames", {}), request.get("ExpressionAttributeValues", {})

    def compared(match: re.Match[str]) -> str:
        stored, wanted = item.get(names[match[1]]), values[match[3]]
        if stored is None:
            return "False"
        return str(stored == wanted if match[2] == "=" else bool(stored["S"] < wanted["S"]))

    text = request.get("ConditionExpression", "True")
    text = re.sub(r"attribute_not_exists ?\((#\w+)\)", lambda match: str(names[match[1]] not in item), text)
    text = re.sub(r"(#\w+) (=|<) (:\w+)", compared, text)
    return bool(eval(text.replace("AND", "and").replace("OR", "or")))  # noqa: S307  # of our own making
