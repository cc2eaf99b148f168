"""The embedded engine by its bare wire, for what is done before each of thousands of tests.

The portal's own clients sign, check and count each request, which a fixture need not pay for. And what one test began
with, the engine of the tests remembers for the next.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import http.client
import json
import urllib.parse
from collections.abc import Callable
from typing import Any, TypeVar

from django.conf import settings
from django.core.cache import cache

from portal.schema import registry
from portal.schema.tables import Table
from tests.support.world import World

# The engine takes account and region from the signature, which it does not check.
SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=pooldesk/20260101/{region}/dynamodb/aws4_request, SignedHeaders=host, Signature=0"
)
BATCH = 25  # items that one BatchWriteItem takes
MEMORY = "/_tests/"  # of tests/support/quick_engine.py

Made = TypeVar("Made")

_made: dict[tuple[str, str], Any] = {}


class Wire:
    """One connection to the engine, which stays open from test to test."""

    def __init__(self, url: str) -> None:
        address = urllib.parse.urlsplit(url)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=300)

    def post(self, path: str, body: str = "", headers: dict[str, str] | None = None) -> tuple[int, bytes]:
        try:
            return self._answer(path, body, headers or {})
        except (ConnectionError, http.client.BadStatusLine):  # it was idle for too long
            self._connection.close()
            return self._answer(path, body, headers or {})

    def _answer(self, path: str, body: str, headers: dict[str, str]) -> tuple[int, bytes]:
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def call(self, operation: str, **arguments: object) -> dict[str, Any]:
        headers = {
            "Authorization": SIGNATURE.format(region=settings.AWS_REGION),
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        }
        status, content = self.post("/", json.dumps(arguments), headers)
        assert status == 200, content
        return json.loads(content)  # type: ignore[no-any-return]


@functools.cache
def _wire(url: str) -> Wire:
    return Wire(url)


def wire() -> Wire:
    return _wire(settings.DYNAMODB_ENDPOINT_URL)


def make_empty() -> None:
    """Forget everything and make the tables, as `schema.create_all` does but for what takes a look first."""
    name = f"empty-{_schema()}"
    if _brought(name):
        return
    status, content = wire().post("/_ministack/reset")
    assert status == 200, content
    for table in registry.tables():
        create(table)
    _keep(name)


def create(table: Table) -> None:
    wire().call("CreateTable", **table.definition())
    if table.ttl:
        expiry = {"Enabled": True, "AttributeName": table.ttl}
        wire().call("UpdateTimeToLive", TableName=table.full_name, TimeToLiveSpecification=expiry)


def delete_everything(table: Table) -> None:
    """Of one table, on whichever engine the portal is pointed at."""
    names = [name for name in (table.hash, table.range) if name]
    aliases = {f"#{n}": name for n, name in enumerate(names)}
    keys = {"ProjectionExpression": ", ".join(aliases), "ExpressionAttributeNames": aliases}
    found = wire().call("Scan", TableName=table.full_name, **keys)
    assert "LastEvaluatedKey" not in found, "more than a test's table should hold"
    requests = [{"DeleteRequest": {"Key": key}} for key in found["Items"]]
    for start in range(0, len(requests), BATCH):
        batch = {table.full_name: requests[start : start + BATCH]}
        assert not wire().call("BatchWriteItem", RequestItems=batch).get("UnprocessedItems")


def world(*, shards: int) -> World:
    """The world, and nothing else."""
    return prepared(f"world-{shards}", lambda: World.create(shards=shards))


def prepared(name: str, make: Callable[[], Made]) -> Made:
    """What `make` makes in empty tables: made once by the portal's own code, then brought back under this name."""
    place = (settings.DYNAMODB_ENDPOINT_URL, f"{name}-{_schema()}")
    if place not in _made or not _brought(place[1]):
        make_empty()
        _made[place] = make()
        cache.clear()  # as it is where they are brought back
        _keep(place[1])
    return copy.deepcopy(_made[place])  # type: ignore[no-any-return]


def _schema() -> str:
    """A name of the tables as they are declared now."""
    declared = [(table.definition(), table.ttl) for table in registry.tables()]
    return hashlib.sha256(json.dumps(declared).encode()).hexdigest()


def _brought(name: str) -> bool:
    """Whether the engine now holds what was kept under this name and nothing else; not so where nothing was kept."""
    return wire().post(f"{MEMORY}bring/{name}")[0] == 200


def _keep(name: str) -> None:
    wire().post(f"{MEMORY}keep/{name}")
