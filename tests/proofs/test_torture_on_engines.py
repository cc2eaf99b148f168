"""A small `torture_stream` on every engine that the README names: a poller is killed, and each batch comes twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.conf import settings

from portal.objects import object_store
from portal.streams import positions, shards
from tests.support import commands, folding
from tests.support.engines import AnyEngine
from tickets.ticket.stored import TICKETS

pytest_plugins = ["tests.support.engines"]
# moto is a second opinion on requests, not an engine that anybody runs on.
pytestmark = pytest.mark.parametrize("chosen", ["ministack", "dynamodb-local"], indirect=True, scope="module")


@pytest.fixture
def tables(any_engine: AnyEngine) -> AnyEngine:
    folding.remember_nothing()
    object_store.create_bucket()  # beside the tables, on the embedded engine
    return any_engine


def test_a_small_torture_does_no_harm_and_leaves_nothing(tables: AnyEngine, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    of_all = {"events": 60, "kills": 1, "redeliver": 1, "tenants": 2, "writers": 1, "pollers": 2, "seed": 3}
    options = [f"--{name}={value}" for name, value in of_all.items()]
    where = {"DYNAMODB_ENDPOINT_URL": tables.endpoint_url, "S3_ENDPOINT_URL": settings.S3_ENDPOINT_URL}
    torture = commands.start("torture_stream", *options, "--json", figures, **where)
    ended = commands.finish(torture, timeout=880)
    assert ended.status == 0, ended.out + ended.err
    assert "No drift." in ended.out
    found = json.loads(figures.read_text())
    assert found["events"] >= 60
    assert found["events_applied"] > found["events_redelivered"] > 0
    assert (found["kills"], found["drift"], found["dead_letters"]) == (1, {}, 0)
    assert not {key for table, key in commands.of_tenants()}
    stream = shards.arn(TICKETS)
    (shard,) = shards.listing(stream).shards
    (lease,) = positions.unfinished(stream)
    assert (lease.shard, lease.owner, bool(lease.position)) == (shard.id, "", True), "the next poller goes on there"
    assert not positions.finished_among(stream, [shard.id])
