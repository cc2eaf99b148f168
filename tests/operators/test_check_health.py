"""`check_health` and the status page: what an operator learns about engine, tables and streams."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.core.cache import cache

from portal import clock
from portal.dynamo.placement import Placement
from portal.schema import registry
from portal.streams import watermark
from portal.streams.stream_source import StreamSource
from portal.streams.watermark import Watermark
from tests.desk.test_outage import engine_down
from tests.support import placed
from tests.support.commands import run
from tests.support.engine_memory import wire
from tests.support.operators import Operator, make_operator
from tests.support.world import World
from tickets.ticket.stored import TICKETS


def reported(monkeypatch: pytest.MonkeyPatch, *, as_of: int, written: int) -> None:
    """The stream worker reported so many seconds ago up to when it has applied everything."""
    now = clock.now()
    known = Watermark(now - timedelta(seconds=as_of), now - timedelta(seconds=written))
    monkeypatch.setattr(watermark, "read", lambda *_: known)


def test_all_is_well(engine: None, monkeypatch: pytest.MonkeyPatch, settings: LazySettings) -> None:
    reported(monkeypatch, as_of=2, written=1)
    ended = run("check_health")
    assert ended.status == 0
    assert f"engine: {settings.DYNAMODB_ENDPOINT_URL} answers" in ended.out
    assert f"stream of {TICKETS.full_name}: applied up to 20" in ended.out


def test_a_stream_that_nothing_has_followed_yet_is_a_fault(engine: None) -> None:
    cache.clear()
    ended = run("check_health")
    assert (ended.status, f"nobody has followed the stream of {TICKETS.full_name} yet" in ended.err) == (1, True)
    assert f"stream of {TICKETS.full_name}: nobody reports" in ended.out


def test_a_worker_that_has_stopped_days_ago_is_still_a_fault(engine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    ended_at = clock.now() - timedelta(days=3)
    stamp = clock.stamp(ended_at)
    with monkeypatch.context() as then:
        then.setattr(time, "time", ended_at.timestamp)
        then.setattr(clock, "stamp", lambda: stamp)
        watermark.write(TICKETS, stamp)
    cache.clear()
    ended = run("check_health")
    assert (ended.status, f"nobody has followed the stream of {TICKETS.full_name} for 2592" in ended.err) == (1, True)


@pytest.mark.parametrize(
    ("written", "says"), [(200, "nobody has followed the stream of"), (1, "is more than 150 s behind")]
)
def test_a_worker_that_has_stopped_or_is_behind_is_a_fault(
    engine: None, monkeypatch: pytest.MonkeyPatch, written: int, says: str
) -> None:
    reported(monkeypatch, as_of=200, written=written)
    ended = run("check_health")
    assert (ended.status, says in ended.err) == (1, True)


def test_a_missing_table_is_named_and_so_is_an_engine_that_does_not_answer(
    engine: None, settings: LazySettings
) -> None:
    wire().call("DeleteTable", TableName=TICKETS.full_name)
    ended = run("check_health")
    assert (ended.status, f"{TICKETS.full_name} is missing" in ended.err) == (1, True)
    with engine_down(settings):
        ended = run("check_health")
    assert (ended.status, "cannot be reached" in ended.err) == (1, True)


def test_an_account_with_nearly_as_many_tables_as_it_may_have_is_a_fault(engine: None, settings: LazySettings) -> None:
    used = len(wire().call("ListTables")["TableNames"])
    assert f"account: {used} of 2,500 tables" in run("check_health").out
    settings.DYNAMODB_TABLE_QUOTA = used
    ended = run("check_health")
    assert ended.status == 1
    assert f"the account has {used} of {used} tables; have AWS raise the quota" in ended.err


# --- tables that tenants have to themselves ---


@pytest.fixture
def sites(settings: LazySettings) -> None:
    settings.SILOS = placed.sites()


@pytest.fixture(params=[placed.BRIDGE, placed.SILO], ids=["bridge", "silo"])
def source(world: World, sites: None, request: pytest.FixtureRequest) -> StreamSource:
    where: Placement = request.param
    return StreamSource(placed.lay(world, "acme", where), where)


def applied(source: StreamSource, *, minutes_ago: int) -> None:
    as_of = clock.stamp(clock.now() - timedelta(minutes=minutes_ago))
    for table in (table for table in registry.tables() if table.stream):
        watermark.write(table, clock.stamp())
        with source.entered():
            watermark.write(table, as_of)
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


def test_check_health_fails_where_a_site_is_away_and_says_the_rest(
    world: World, sites: None, settings: LazySettings
) -> None:
    placed.lay(world, "acme", placed.SILO)
    settings.SILOS = {}
    ended = run("check_health")
    assert ended.status == 1
    assert "cannot be asked for" in ended.err
    assert "tables: " in ended.out
