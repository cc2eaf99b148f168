"""The embedded engine by its bare wire, for what is done before each of thousands of tests."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable
from typing import TypeVar

from django.conf import settings
from django.core.cache import cache

from portal.objects import object_store
from portal.schema import registry
from portal.schema.registry import Table
from tests.support import engine_memory
from tests.support.engine_memory import wire
from tests.support.world import World

BATCH = 25  # items that one BatchWriteItem takes

Made = TypeVar("Made")


def make_empty() -> None:
    """Forget everything and make the tables, as `schema.create_all` does but for what takes a look first."""
    name = f"empty-{_schema()}"
    if engine_memory.brought(name):
        return
    status, content = wire().post("/_ministack/reset")
    assert status == 200, content
    object_store.create_bucket()
    for table in registry.tables():
        create(table)
    engine_memory.keep(name)


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

    def made() -> Made:
        make_empty()
        result = make()
        cache.clear()  # as it is where they are brought back
        return result

    return engine_memory.prepared(f"{name}-{_schema()}", made)


def _schema() -> str:
    """A name of the tables as they are declared now."""
    return _named(settings.DYNAMODB_TABLE_PREFIX, registry.tables())


@functools.cache
def _named(prefix: str, tables: tuple[Table, ...]) -> str:
    declared = [(table.definition(), table.ttl) for table in tables]
    return hashlib.sha256(json.dumps(declared).encode()).hexdigest()
