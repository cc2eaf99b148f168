"""Fixtures: a clean engine for each test that wants one, and the world of Alice, Bob, Vera and Charlie."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.cache import cache

from portal.dynamo import client, meter, tables
from tests.world import World


@pytest.fixture
def engine() -> None:
    """Empty tables on the embedded engine."""
    reset = urllib.request.Request(f"{settings.DYNAMODB_ENDPOINT_URL}/_ministack/reset", method="POST")
    urllib.request.urlopen(reset, timeout=30).close()
    # Not schema.create_all, which looks at every table before and after: a tenth of a second in each of many tests.
    for table in tables.ALL:
        connection = client.connection("platform")
        connection.call("CreateTable", **table.definition())
        if table.ttl:
            expiry = {"Enabled": True, "AttributeName": table.ttl}
            connection.call("UpdateTimeToLive", TableName=table.full_name, TimeToLiveSpecification=expiry)
    cache.clear()


@pytest.fixture
def world(engine: None) -> World:
    return World.create()


@pytest.fixture
def sharded_world(engine: None) -> World:
    return World.create(shards=4)


@pytest.fixture
def bill() -> Iterator[meter.Meter]:
    """Counts what the test's own calls cost, outside of requests."""
    with meter.measure() as counted:
        yield counted
