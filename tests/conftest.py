"""Fixtures: a clean engine for each test that wants one, and the world of Alice, Bob, Vera and Charlie."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache

from portal.dynamo import meter
from tests.support import embedded
from tests.support.world import World


@pytest.fixture
def engine() -> None:
    """Empty tables on the embedded engine."""
    embedded.make_empty()
    cache.clear()


@pytest.fixture
def world(engine: None) -> World:
    return embedded.world(shards=1)


@pytest.fixture
def sharded_world(engine: None) -> World:
    return embedded.world(shards=4)


@pytest.fixture
def bill() -> Iterator[meter.Meter]:
    """Counts what the test's own calls cost, outside of requests."""
    with meter.measure() as counted:
        yield counted
