"""A desk's admins see what it asks for beside what it may; operators set that, and the trail tells of it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.conf import LazySettings

from portal import clock
from portal.load import rate_sharing, reporting, tenant_limiter, usage
from portal.load.measurement import NoiseTally, TenantNotes
from portal.load.rate_sharing import RateSharer
from portal.load.reporting import LoadReporter
from portal.load.tenant_limiter import TenantLimiter, limiter
from portal.web import gunicorn_worker
from portal.web.gunicorn_worker import BufferingWorker
from tenants.operators.facades import AuditRow
from tenants.tenancy import tenant_directory
from tests.desk.test_cost import IDENTITY, spent
from tests.support.operators import Operator, make_operator, text_of
from tests.support.world import World

PAGE = "/desk/settings/usage/"


@pytest.fixture
def acme(world: World, settings: LazySettings) -> str:
    """Acme may ask for ten units a second."""
    settings.TENANT_RATES = "standard=10"
    return world.tenants["acme"].tenant_id


def shown(world: World, who: str = "alice") -> str:
    return text_of(world.browser(who, "acme").get(PAGE))


def test_what_was_asked_for_is_shown_by_minute_beside_the_limit(world: World, acme: str) -> None:
    earlier = clock.now() - timedelta(minutes=3)
    usage.add(acme, NoiseTally(200, 250), at=earlier)
    usage.add(acme, NoiseTally(50, 50, 8), at=earlier)
    usage.add(world.tenants["globex"].tenant_id, NoiseTally(777, 250), at=clock.now())
    page = shown(world)
    assert "777" not in page, "another desk's"
    assert "Up to 600 units a minute (10 a second, plan Standard)" in page
    assert f"{earlier:%H:%M} UTC 50% 250 8" in page, "processes add up"
    assert "8 requests were refused" in page
    assert page.count("under 5%") == 14


def test_a_minute_is_under_the_bound_or_has_a_share_from_it_on(world: World, acme: str) -> None:
    cases = [(18, "under 5%"), (29, "under 5%"), (30, "5%"), (42, "7%"), (600, "100%")]
    begins = [clock.now() - timedelta(minutes=back) for back, _ in enumerate(cases, 3)]
    for at, (units, _) in zip(begins, cases, strict=True):
        usage.add(acme, NoiseTally(3, units), at=at)
    page = shown(world)
    assert all(f"{at:%H:%M} UTC {said} 3 0" in page for at, (_, said) in zip(begins, cases, strict=True)), page


def test_a_desk_without_a_limit_is_told_so(world: World) -> None:
    assert "This desk has no limit of requests." in shown(world)


def test_members_and_what_is_at_work_stand_beside_their_limits(world: World, acme: str) -> None:
    make_operator()
    root = Operator.signed_in()
    root.fill(f"/admin/tenants/tenant/{acme}/change/", member_limit="25")
    tenant_limiter.heavy.enter(acme)
    try:
        page = shown(world)
    finally:
        tenant_limiter.heavy.leave(acme)
    assert "Members 3 of 25 Pending invitations 0, which count as members" in page
    assert "Requests 1 of 4, this one included Heavy work 1 of 2" in page


def test_admins_reach_it_from_the_settings_and_others_do_not(world: World, acme: str) -> None:
    settings_page = world.browser("alice", "acme").get("/desk/settings/").content.decode()
    assert len(re.findall(r'href="/acme/desk/settings/usage/"', settings_page)) == 2
    assert world.browser("bob").get(PAGE).status_code == 403


def test_the_page_takes_two_trips_and_four_calls(world: World) -> None:
    bill = spent(world.browser("alice", "acme"), PAGE)
    assert bill.trips == 2
    assert sorted(c.operation for c in bill.calls if c.table != IDENTITY)[-4:] == [
        "BatchGetItem", "Query", "Query", "Query",
    ]  # fmt: skip


# --- what is written down ---


def test_once_a_minute_a_process_writes_down_who_asked_for_more_than_a_little(world: World, acme: str) -> None:
    globex, now = world.tenants["globex"].tenant_id, [clock.now().timestamp() - 60]
    notes = TenantNotes(clock=lambda: now[0])
    reporter = LoadReporter(notes, kind="web", role="platform")
    for tenant_id, times, rate in ((acme, 60, 10), (globex, 1, 10_000)):
        for _ in range(times):
            limiter.spend(tenant_id, 1, per_second=rate)
            notes.note(tenant_id, NoiseTally(requests=1, units=1))
    now[0] += 60
    for _ in range(2):
        reporter.turn()
        (row,) = usage.latest(world.context("alice", "acme").repository, minutes=5, now=clock.now())
        assert (row.requests, row.units, row.refused) == (60, 60, 0), "and each request once"
    assert usage.latest(world.context("charlie", "globex").repository, minutes=5, now=clock.now()) == []


def test_two_processes_find_each_other_in_the_table(world: World, settings: LazySettings) -> None:
    settings.WEB_PROCESSES = 1
    first, second = TenantLimiter(), TenantLimiter()
    keepers = [RateSharer(first), RateSharer(second)]
    for _ in range(2):
        for keeper in keepers:
            keeper.turn()
    assert [keeper.processes for keeper in keepers] == [2, 2]
    taken = 0
    while (answer := first.spend("a" * 32, 1, per_second=10)) and answer.allowed:
        taken += 1
    assert taken == 50, "half of what one process alone would let through"


def test_a_process_shares_its_rates_once(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Any] = []
    settings.RATES_SHARED = True
    monkeypatch.setattr(rate_sharing, "_sharer", None)
    monkeypatch.setattr(rate_sharing, "_run", started.append)
    for _ in range(2):
        rate_sharing.start()
    assert len(started) == 1


def test_a_worker_shares_its_rates_and_reports_before_it_serves(
    settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.RATES_SHARED = settings.NOISE_NOTED = True
    done: list[Any] = []
    monkeypatch.setattr(rate_sharing, "start", lambda: done.append("rates"))
    monkeypatch.setattr(reporting, "start", lambda *what: done.append(what))

    def served(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(gunicorn_worker, "create_server", served)
    monkeypatch.setattr(tenant_limiter, "_threads", None)  # run() sets it, and this process is no worker
    worker = object.__new__(BufferingWorker)
    worker.cfg, worker.wsgi, worker.sockets = Mock(threads=4), None, []
    with pytest.raises(KeyboardInterrupt):
        worker.run()
    assert done == ["rates", ("web", "platform")]


# --- operators ---


def test_operators_see_and_give_a_rate_and_the_trail_tells_of_it(world: World, acme: str) -> None:
    make_operator()
    root = Operator.signed_in()
    url = f"/admin/tenants/tenant/{acme}/change/"
    assert "10 units a second, by its plan, standard. Plans: standard 10." in root.says(url)
    assert "Use a number from 1 to 100,000" in text_of(root.fill(url, request_rate="0"))
    assert root.fill(url, request_rate="500").status_code == 302
    assert tenant_directory.find("acme").request_rate == 500
    assert "500 units a second, of its own." in root.says(url)
    assert "(500 a second, agreed for this desk)" in shown(world)
    assert root.fill(url, request_rate="").status_code == 302
    assert tenant_directory.find("acme").request_rate is None
    rows = AuditRow.objects.filter(tenant_id=acme, entity_type="tenant", entity_id=acme)
    assert [(row.action, row.before, row.after) for row in rows][:2] == [
        ("tenant.limits_changed", "request rate: 500", "request rate: none"),
        ("tenant.limits_changed", "request rate: none", "request rate: 500"),
    ]
