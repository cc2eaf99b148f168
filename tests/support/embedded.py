"""The embedded engine by its bare wire, for what is done before each of thousands of tests.

The portal's own clients sign, check and count each request, which a fixture need not pay for: empty tables take a
quarter of the time this way, and the world of the tests, copied, a tenth.
"""

from __future__ import annotations

import copy
import http.client
import json
import urllib.parse
from functools import cache
from typing import Any

from django.conf import settings

from portal.schema import registry
from tests.support.world import World

# The engine takes account and region from the signature, which it does not check.
SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=pooldesk/20260101/{region}/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
)
BATCH = 25  # items that one BatchWriteItem takes

Items = dict[str, list[dict[str, Any]]]


class Wire:
    def __init__(self) -> None:
        address = urllib.parse.urlsplit(settings.DYNAMODB_ENDPOINT_URL)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=30)

    def post(self, path: str, body: str = "", headers: dict[str, str] | None = None) -> bytes:
        self._connection.request("POST", path, body, headers or {})
        answer = self._connection.getresponse()
        content = answer.read()
        assert answer.status == 200, content
        return content

    def call(self, operation: str, **arguments: object) -> dict[str, Any]:
        headers = {
            "Authorization": SIGNATURE.format(region=settings.AWS_REGION),
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        }
        return json.loads(self.post("/", json.dumps(arguments), headers))  # type: ignore[no-any-return]


def make_empty() -> None:
    """Forget everything and make the tables, as `schema.create_all` does but for what takes a look first."""
    wire = Wire()
    wire.post("/_ministack/reset")
    for table in registry.tables():
        wire.call("CreateTable", **table.definition())
        if table.ttl:
            expiry = {"Enabled": True, "AttributeName": table.ttl}
            wire.call("UpdateTimeToLive", TableName=table.full_name, TimeToLiveSpecification=expiry)


def world(*, shards: int) -> World:
    """The world, in empty tables: made once by the portal's own code, then copied item by item."""
    made, items = _made(shards)
    wire = Wire()
    requests = [(table, {"PutRequest": {"Item": item}}) for table, found in items.items() for item in found]
    for start in range(0, len(requests), BATCH):
        batch: dict[str, list[dict[str, Any]]] = {}
        for table, request in requests[start : start + BATCH]:
            batch.setdefault(table, []).append(request)
        assert not wire.call("BatchWriteItem", RequestItems=batch)["UnprocessedItems"]
    return copy.deepcopy(made)


@cache
def _made(shards: int) -> tuple[World, Items]:
    made = World.create(shards=shards)
    wire = Wire()
    return made, {
        table.full_name: found
        for table in registry.tables()
        if (found := wire.call("Scan", TableName=table.full_name)["Items"])
    }
