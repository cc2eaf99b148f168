"""`check_health`: what an operator learns about engine, tables and streams."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.core.cache import cache

from portal import clock
from portal.streams import watermark
from portal.streams.watermark import Watermark
from tests.desk.test_outage import engine_down
from tests.support.commands import run
from tests.support.engine_memory import wire
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


def test_a_stream_that_nothing_has_followed_yet_is_no_fault(engine: None) -> None:
    cache.clear()
    ended = run("check_health")
    assert ended.status == 0
    assert f"stream of {TICKETS.full_name}: nobody reports" in ended.out


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
    assert (ended.status, f"{TICKETS.full_name} is missing." in ended.err) == (1, True)
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
