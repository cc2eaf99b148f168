"""What waits happens once, when its moment has come: tenants in turns, through kills, clock jumps and moves."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from delivery.timers import due, due_worker, stored
from delivery.timers.due_worker import DueWorker
from delivery.timers.stored import DueItem
from portal import clock
from portal.dynamo import meter
from portal.dynamo.placement import Placement
from portal.dynamo.store import RawItems, Transaction
from portal.errors import NotFound, TransactionRefused, Unavailable
from tenants.tenancy.context import TenantContext
from tests.support import placed
from tests.support.commands import run
from tests.support.world import World

KIND = "test"
NOON = datetime(2026, 11, 26, 12, tzinfo=UTC)
DAY, HOUR, MINUTE, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


class Time:
    """The clock of the process, which can be set."""

    def __init__(self) -> None:
        self.now = NOON

    def pass_by(self, by: timedelta) -> None:
        self.now += by


class Calls:
    """The handler of the tests: notes what it is called for, and fails where it is told to."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str, datetime]] = []
        self.error: BaseException | None = None

    def __call__(self, tenant: TenantContext, entity: str, version: str, due_at: datetime) -> None:
        self.seen.append((tenant.slug, entity, version, due_at))
        if self.error:
            raise self.error

    @property
    def entities(self) -> list[str]:
        return [entity for _, entity, _, _ in self.seen]

    @property
    def slugs(self) -> list[str]:
        return [slug for slug, *_ in self.seen]


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(clock, "now", lambda: made.now)
    return made


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    made = Calls()
    monkeypatch.setattr(due, "_handlers", {KIND: made})
    return made


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls in the order in which they begin."""
    monkeypatch.setattr(due_worker, "THREADS", 1)


def wait_for(tenant: TenantContext, at: datetime, *entities: str, version: int = 1, kind: str = KIND) -> None:
    transaction = Transaction()
    for entity in entities:
        due.put(transaction, tenant, at, kind, entity, version)
    tenant.repository.transact(transaction)


def rows_of(tenant: TenantContext) -> list[Any]:
    store = tenant.repository.as_role("lifecycle")
    found = [store.query_all(RawItems(stored.DUE), stored.due, n) for n in stored.BUCKETS]
    return [row for rows in found for row in rows]


def test_a_row_waits_until_its_moment_and_is_gone_afterwards(world: World, time: Time, calls: Calls) -> None:
    acme = world.context("alice", "acme")
    wait_for(acme, NOON + MINUTE, "ticket/7", version=3)
    assert DueWorker().turn() == 0
    time.pass_by(MINUTE)
    assert DueWorker().turn() == 1
    assert calls.seen == [("acme", "ticket/7", "3", NOON + MINUTE)]
    assert rows_of(acme) == []
    assert DueWorker().turn() == 0


def test_a_change_that_is_refused_leaves_no_row(world: World, time: Time, calls: Calls) -> None:
    acme, transaction = world.context("alice", "acme"), Transaction()
    due.put(transaction, acme, NOON, KIND, "ticket/7", 1)
    transaction.check(DueItem(stored.due(acme.tenant_id, "00"), "y"), DueItem.pk.exists())
    with pytest.raises((TransactionRefused, NotFound)):
        acme.repository.transact(transaction)
    assert DueWorker().turn() == 0


@pytest.mark.parametrize("jump", [DAY, -DAY])
def test_a_clock_that_jumps_by_a_day_and_back_calls_nobody_twice_and_forgets_nobody(
    jump: timedelta, world: World, time: Time, calls: Calls
) -> None:
    acme, worker = world.context("alice", "acme"), DueWorker()
    for hours in range(-30, 31, 6):
        wait_for(acme, NOON + hours * HOUR, f"ticket/{hours + 30}")
    worker.turn()
    time.pass_by(jump)
    worker.turn()
    assert max(due_at for *_, due_at in calls.seen) == NOON + max(jump, 0 * DAY)  # the moment that was waited for
    time.pass_by(-jump)
    worker.turn()
    time.pass_by(2 * DAY)
    worker.turn()
    assert Counter(calls.entities) == Counter(f"ticket/{hours + 30}" for hours in range(-30, 31, 6))


def test_what_waited_for_an_hour_comes_longest_due_first(
    world: World, time: Time, calls: Calls, one_thread: None
) -> None:
    acme = world.context("alice", "acme")
    for minutes in (50, 10, 40, 20, 30):
        wait_for(acme, NOON + minutes * MINUTE, f"ticket/{minutes}")
    time.pass_by(HOUR)
    DueWorker().turn()
    assert calls.entities == [f"ticket/{minutes}" for minutes in (10, 20, 30, 40, 50)]


def test_a_tenant_with_many_due_rows_lets_another_one_wait_for_no_more_than_a_turn(
    world: World, time: Time, calls: Calls, one_thread: None, bill: Any
) -> None:
    acme, globex = world.context("alice", "acme"), world.context("alice", "globex")
    for minute in range(3):
        for start in range(0, 240, 80):
            wait_for(acme, NOON + minute * MINUTE, *(f"ticket/{minute}-{n}" for n in range(start, start + 80)))
    wait_for(globex, NOON + 2 * MINUTE, "ticket/1", "ticket/2")
    time.pass_by(HOUR)
    worker = DueWorker()
    worker.turn()
    assert calls.slugs[:4] == ["acme", "globex", "acme", "globex"]
    assert calls.slugs.count("globex") == 2
    assert len(calls.slugs) <= 2 + due_worker.SHARE * stored.SHARDS
    while worker.turn():
        pass
    assert Counter(calls.slugs) == {"acme": 720, "globex": 2}
    assert len(set(calls.entities)) == 722


def test_a_tenant_with_slow_handlers_lets_another_one_wait_for_one_of_them(
    world: World, time: Time, monkeypatch: pytest.MonkeyPatch, one_thread: None
) -> None:
    acme, globex, called, passed = world.context("alice", "acme"), world.context("alice", "globex"), list[str](), [0.0]

    def slow(tenant: TenantContext, entity: str, version: str, due_at: datetime) -> None:
        called.append(tenant.slug)
        passed[0] += 10 * (tenant.slug == "acme")
        if len(called) == 1:
            wait_for(globex, NOON, "ticket/1")

    monkeypatch.setattr(due, "_handlers", {KIND: slow})
    monkeypatch.setattr(due_worker, "time", SimpleNamespace(monotonic=lambda: passed[0]))
    wait_for(acme, NOON - MINUTE, *(f"ticket/{n}" for n in range(12)))
    worker = DueWorker()
    for _ in range(3):
        worker.turn()
    assert called == ["acme", "acme", "globex", "acme"]


def test_reading_goes_on_where_the_last_turn_had_no_time_for_more(
    world: World, time: Time, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due_worker, "MOST_READS", 1)
    monkeypatch.setattr(due_worker, "PAGE", 1)
    monkeypatch.setattr(due_worker, "SHARE", 1)
    calls.error = Unavailable("not now")
    acme, globex = world.context("alice", "acme"), world.context("alice", "globex")
    wait_for(acme, NOON - MINUTE, *(f"ticket/{n}" for n in range(40)))
    wait_for(globex, NOON, "ticket/1")
    worker = DueWorker()
    for _ in range(2 * 40):
        worker.turn()
    assert "globex" in calls.slugs


def test_a_handler_that_fails_is_called_again_later_and_later(world: World, time: Time, calls: Calls) -> None:
    acme, worker = world.context("alice", "acme"), DueWorker()
    wait_for(acme, NOON, "ticket/7")
    calls.error = RuntimeError("a mistake")
    worker.turn()
    worker.turn()
    assert len(calls.seen) == 1
    time.pass_by(due_worker.LEASE)
    worker.turn()
    time.pass_by(due_worker.LEASE)
    worker.turn()
    assert len(calls.seen) == 2
    calls.error = None
    time.pass_by(due_worker.LEASE)
    worker.turn()
    assert len(calls.seen) == 3
    assert rows_of(acme) == []


def test_two_workers_that_see_the_same_row_call_once(world: World, time: Time, calls: Calls) -> None:
    wait_for(world.context("alice", "acme"), NOON, "ticket/7")
    workers = DueWorker(), DueWorker()
    found = [worker._due_in(due_worker.POOLED) for worker in workers]
    assert [worker._call_all(rows, lambda: True) for worker, rows in zip(workers, found, strict=True)] == [1, 0]


def test_a_worker_that_dies_in_its_handler_leaves_the_row_to_the_next_one(
    world: World, time: Time, calls: Calls
) -> None:
    wait_for(world.context("alice", "acme"), NOON, "ticket/7")
    calls.error = SystemExit()
    with pytest.raises(SystemExit):
        DueWorker().turn()
    calls.error = None
    time.pass_by(due_worker.LEASE)
    assert DueWorker().turn() == 1


def test_a_row_that_its_handler_writes_anew_stays(world: World, time: Time, calls: Calls) -> None:
    def again(tenant: TenantContext, entity: str, version: str, due_at: datetime) -> None:
        wait_for(tenant, due_at + DAY, entity)

    due._handlers[KIND] = again
    acme = world.context("alice", "acme")
    wait_for(acme, NOON, "person/1")
    DueWorker().turn()
    assert [row["at"]["S"] for row in rows_of(acme)] == [clock.stamp(NOON + DAY)]


def test_a_kind_of_a_newer_version_waits_until_somebody_knows_it(world: World, time: Time, calls: Calls) -> None:
    acme, worker = world.context("alice", "acme"), DueWorker()
    wait_for(acme, NOON, "ticket/7", kind="of-next-year")
    assert worker.turn() == 0
    due._handlers["of-next-year"] = calls
    assert worker.turn() == 0
    time.pass_by(due_worker.UNKNOWN)
    assert worker.turn() == 1


@pytest.mark.parametrize("where", [placed.BRIDGE, placed.SILO], ids=str)
def test_a_tenant_with_tables_of_its_own_is_served_too(
    where: Placement, world: World, time: Time, calls: Calls, settings: Any
) -> None:
    settings.SILOS = placed.sites()
    placed.lay(world, "acme", where)
    acme = world.context("alice", "acme")
    wait_for(acme, NOON, "ticket/7")
    assert DueWorker().turn() == 1
    assert calls.slugs == ["acme"]
    assert rows_of(acme) == []


def test_the_next_look_is_when_the_next_row_is_due(world: World, time: Time, calls: Calls) -> None:
    worker = DueWorker(look_seconds=60)
    worker.turn()
    assert worker._pause == 60
    wait_for(world.context("alice", "acme"), NOON + 7 * SECOND, "ticket/7")
    worker.turn()
    assert worker._pause == 7


def test_the_lag_is_that_of_the_row_that_is_due_longest(world: World, time: Time, calls: Calls) -> None:
    acme = world.context("alice", "acme")
    wait_for(acme, NOON + MINUTE, "ticket/7", "ticket/8")
    assert due.summary_of_lag() == {"behind": 0, "late": False}
    time.pass_by(3 * MINUTE)
    assert due.summary_of_lag() == {"behind": 120, "late": True}
    assert "“due” is late" in run("check_health").err


def test_a_look_at_an_index_in_which_nothing_is_due_costs_half_a_unit_for_each_shard_and_one_for_the_placements(
    world: World, time: Time, calls: Calls
) -> None:
    wait_for(world.context("alice", "acme"), NOON + DAY, "ticket/7")
    with meter.measure() as used:
        DueWorker().turn()
    assert [call.operation for call in used.calls] == ["Query"] * (stored.SHARDS + 1)
    assert used.write_units == 0


def test_a_day_in_which_nothing_is_due_costs_less_than_a_cent() -> None:
    looks = 24 * 3600 / due_worker.LOOK_SECONDS
    units = looks * (stored.SHARDS + 1) * 0.5
    assert units == 43_200
    assert units * 0.125 / 1_000_000 < 0.01  # dollars, at 0.125 a million read units


def test_what_is_due_costs_a_claim_and_a_deletion_beside_its_handler(world: World, time: Time, calls: Calls) -> None:
    wait_for(world.context("alice", "acme"), NOON, "ticket/7", "ticket/8")
    with meter.measure() as used:
        DueWorker().turn()
    counts = Counter(call.operation for call in used.calls)
    assert (counts["UpdateItem"], counts["DeleteItem"], counts["BatchGetItem"]) == (2, 2, 1)
