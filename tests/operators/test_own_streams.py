"""Operators see how the streams of tenants that have tables of their own are followed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache

from portal import clock
from portal.dynamo.placement import Placement
from portal.schema import registry
from portal.streams import watermark
from portal.streams.stream_source import StreamSource
from tests.support import placed
from tests.support.commands import run
from tests.support.operators import Operator, make_operator
from tests.support.world import World
from tickets.ticket.stored import TICKETS


@pytest.fixture(autouse=True)
def sites(settings: Any) -> None:
    settings.SILOS = placed.sites()


@pytest.fixture(params=[placed.BRIDGE, placed.SILO], ids=["bridge", "silo"])
def source(world: World, request: pytest.FixtureRequest) -> StreamSource:
    where: Placement = request.param
    return StreamSource(placed.lay(world, "acme", where), where)


def applied(source: StreamSource, *, minutes_ago: int) -> None:
    with source.entered():
        watermark.write(TICKETS, clock.stamp(clock.now() - timedelta(minutes=minutes_ago)))
    cache.clear()


def test_the_status_page_has_a_row_for_each_own_stream_and_the_first_page_says_which_is_late(
    world: World, source: StreamSource
) -> None:
    make_operator()
    root = Operator.signed_in()
    assert "No stream worker has reported yet." in root.says("/admin/status/").partition("own tables")[2]
    applied(source, minutes_ago=0)
    own = root.says("/admin/status/").partition("own tables")[2]
    assert "acme" in own
    assert str(source.placement) in own
    assert "keeps up" in own
    assert "own tables" not in root.says("/admin/")
    cache.clear()
    with pytest.MonkeyPatch.context() as later:
        now = clock.now()
        later.setattr(clock, "now", lambda: now + timedelta(minutes=10))
        said = root.says("/admin/")
    assert "1 stream of a tenant's own tables is not followed in time" in said


def test_check_health_looks_at_own_tables_and_their_streams(world: World, source: StreamSource) -> None:
    stream = f"{source.tenant_id}.{TICKETS.name}"
    applied(source, minutes_ago=10)
    ended = run("check_health")
    assert (ended.status, f"{stream} is more than" in ended.err) == (1, True)
    applied(source, minutes_ago=0)
    ended = run("check_health")
    assert ended.status == 0, ended.err
    own = len(registry.placed_tables())
    assert f"tables of {source}: {own} of {own} active" in ended.out
    assert f"{stream}: applied up to" in ended.out


def test_check_health_fails_where_a_site_is_away_and_says_the_rest(world: World, settings: Any) -> None:
    placed.lay(world, "acme", placed.SILO)
    settings.SILOS = {}
    ended = run("check_health")
    assert ended.status == 1
    assert "cannot be asked for" in ended.err
    assert "tables: " in ended.out
