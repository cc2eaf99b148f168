"""The owner's Verify button: who may press it, what it shows, and that one verification runs at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from portal import clock
from portal.errors import Unavailable
from portal.load import tenant_limiter
from tenants.tenancy.context import TenantContext
from tests.support.folding import Follower, plant
from tests.support.world import Browser, World
from tickets.dashboards import verify_runs
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import CounterItem
from tickets.verification import recount, verify
from tickets.verification.recount import GROUP
from tickets.verification.verify import Difference, Verdict

BUTTON = "Verify numbers"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(verify_runs, "SETTLE", 120.0)
    yield
    verify_runs.wait_until_done()


@pytest.fixture
def alice(world: World) -> Iterator[TenantContext]:
    world.tickets("acme", 3)
    follower = Follower()
    follower.fold()
    with follower.following():
        yield world.context("alice", "acme")
        verify_runs.wait_until_done()


def verified(browser: Browser) -> str:
    return browser.get("/tickets/dashboard/verified/").content.decode()


def press(browser: Browser, **headers: str) -> object:
    response = browser.send("/tickets/dashboard/verify/", **headers)
    verify_runs.wait_until_done()
    return response


def test_nobody_has_asked_yet(world: World, alice: TenantContext) -> None:
    page = verified(world.browser("alice", "acme"))
    assert 'data-state="never"' in page
    assert BUTTON in page


def test_an_owner_verifies_and_the_result_stays(world: World, alice: TenantContext) -> None:
    browser = world.browser("alice", "acme")
    response = press(browser)
    assert (response.status_code, response["Location"]) == (302, "/acme/tickets/dashboard/#verified")  # type: ignore[attr-defined]
    for _ in range(2):
        page = verified(browser)
        assert 'data-state="ok"' in page
        assert "recounted 3 tickets" in page
        assert "Alice Example" in page
        assert "just now</time>.</span>" in page  # one sentence beside the icon, not three parts with gaps


def test_drift_is_shown_count_by_count(world: World, alice: TenantContext) -> None:
    plant(alice, "TOTALS", open_normal=4)
    browser = world.browser("alice", "acme")
    press(browser)
    page = verified(browser)
    assert 'data-state="drift"' in page
    assert "<td>TOTALS</td><td>open.normal</td><td>7</td><td>3</td>" in page


def test_with_htmx_the_button_answers_with_the_part_alone(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_runs, "_logged", lambda tenant, run: None)
    response = press(world.browser("alice", "acme"), HTTP_HX_REQUEST="true")
    page = response.content.decode()  # type: ignore[attr-defined]
    assert page.lstrip().startswith("<div")
    assert 'hx-trigger="every 2s"' in page
    assert BUTTON not in page


def test_a_page_without_javascript_shows_it_too(world: World, alice: TenantContext) -> None:
    browser = world.browser("alice", "acme")
    press(browser)
    assert 'data-state="ok"' in browser.get("/tickets/dashboard/").content.decode()


def test_one_runs_at_a_time(world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, go_on = [], threading.Event()

    def slow(*args: object, **kwargs: object) -> Verdict:
        runs.append(1)
        go_on.wait(120)
        return Verdict("ok", 3)

    monkeypatch.setattr(verify, "verify", slow)
    assert verify_runs.start(alice)
    assert not verify_runs.start(alice)
    assert 'data-state="running"' in verified(world.browser("alice", "acme"))
    go_on.set()
    verify_runs.wait_until_done()
    assert len(runs) == 1


def test_it_costs_so_much_that_it_may_be_asked_for_once_in_ten_minutes(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = world.browser("alice", "acme")
    assert "This reads every ticket, at about 3 read units." in verified(browser)
    press(browser)
    page = verified(browser)
    assert BUTTON not in page
    assert "You can verify again in 10 minutes" in page
    assert not verify_runs.start(alice)
    later = clock.now() + verify_runs.COOLDOWN
    monkeypatch.setattr(clock, "now", lambda: later)
    assert BUTTON in verified(browser)


def test_who_verifies_by_command_is_not_disturbed(world: World, alice: TenantContext) -> None:
    with verify.held(alice.repository, by="verify_aggregates"):
        press(world.browser("alice", "acme"))
    assert "The numbers are being verified already, by verify_aggregates" in verified(world.browser("alice", "acme"))


def test_another_tenant_need_not_wait(world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_runs, "_logged", lambda tenant, run: None)
    assert verify_runs.start(alice)
    assert verify_runs.start(world.context("charlie", "globex"))


def test_a_run_that_died_is_said_to_have_and_can_be_started_again(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(verify_runs, "_logged", lambda tenant, run: None)
        assert verify_runs.start(alice)
        verify_runs.wait_until_done()
    later = clock.now() + verify_runs.DEAD_AFTER + timedelta(seconds=1)
    monkeypatch.setattr(clock, "now", lambda: later)
    shown = verify_runs.read(alice)
    assert (shown.state, shown.can_start) == ("unknown", True)
    assert "ended before it was done" in shown.why
    assert verify_runs.start(alice)
    verify_runs.wait_until_done()
    assert verify_runs.read(alice).state == "ok"


def test_a_late_end_does_not_overwrite_the_run_that_took_its_place(alice: TenantContext) -> None:
    verify_runs.start(alice)
    verify_runs.wait_until_done()
    verify_runs._finish(alice, "another run", Verdict("drift", 9, [Difference("TOTALS", "open.normal", 1, 2)]))
    assert verify_runs.read(alice).state == "ok"


def test_a_database_that_goes_away_is_an_answer_too(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*args: object, **kwargs: object) -> Verdict:
        raise Unavailable("The database cannot be reached.")

    monkeypatch.setattr(verify, "verify", away)
    verify_runs.start(alice)
    verify_runs.wait_until_done()
    assert verify_runs.read(alice).why == "The database cannot be reached"


def test_more_differences_than_are_kept_are_numbered(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [Difference("TAGS", f"open.t{n}", n, 0) for n in range(60)]
    monkeypatch.setattr(verify, "verify", lambda *args, **kwargs: Verdict("drift", 3, many))
    verify_runs.start(alice)
    verify_runs.wait_until_done()
    shown = verify_runs.read(alice)
    assert (len(shown.differences), shown.more, shown.differences[1]) == (20, 40, many[1])


# --- stopping ---


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """A recount of ever more tickets; the event says that it has begun."""
    begun = threading.Event()

    def verify_for_ever(*args: object, advance: Callable[[int], object], **kwargs: object) -> Verdict:
        for _ in range(24_000):
            begun.set()
            advance(100)
            time.sleep(0.01)
        return Verdict("ok", 3)

    monkeypatch.setattr(verify, "verify", verify_for_ever)
    return begun


def test_an_owner_stops_a_verification_and_the_page_says_who_did(
    world: World, alice: TenantContext, endless: threading.Event
) -> None:
    browser = world.browser("alice", "acme")
    browser.send("/tickets/dashboard/verify/")
    assert endless.wait(120)
    assert "Stop verifying" in verified(browser)
    response = browser.send("/tickets/dashboard/verify/stop/")
    assert (response.status_code, response["Location"]) == (302, "/acme/tickets/dashboard/#verified")  # type: ignore[attr-defined]
    verify_runs.wait_until_done()
    page = verified(browser)
    assert "Alice Example stopped it" in page
    assert "Stop verifying" not in page


# --- going on ---


@pytest.fixture
def long(world: World, alice: TenantContext) -> TenantContext:
    """Three groups of ticket numbers, most of them gaps."""
    alice.repository.increment(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, by=3 * GROUP)
    return alice


@pytest.mark.parametrize("by", ["Alice Example stopped it", "the portal was stopped"])
def test_one_that_was_stopped_says_where_the_next_goes_on_and_it_does(
    world: World, long: TenantContext, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    monkeypatch.setattr(tenant_limiter, "stopping", threading.Event())
    browser = world.browser("alice", "acme")
    keep, behind = recount.keep, []

    def stopping(repository: object, of: object, number: int, part: object) -> None:
        keep(repository, of, number, part)  # type: ignore[arg-type]
        behind.append(number)
        if len(behind) == 2:
            verify_runs.stop(long) if "Alice" in by else tenant_limiter.stopping.set()

    monkeypatch.setattr(recount, "keep", stopping)
    press(browser)
    page = verified(browser)
    assert f"{by}. Started" in page
    tenant_limiter.stopping.clear()
    assert "The next verification goes on where this one ended." in page
    later = clock.now() + verify_runs.COOLDOWN
    monkeypatch.setattr(clock, "now", lambda: later)
    press(browser)
    assert 'data-state="ok"' in verified(browser)
    assert behind == [GROUP, 2 * GROUP, 3 * GROUP]
    assert "goes on" not in verified(browser)


def test_a_page_says_how_far_a_run_has_come(world: World, long: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    keep = recount.keep

    def looking(repository: object, of: object, number: int, part: object) -> None:
        keep(repository, of, number, part)  # type: ignore[arg-type]
        shown.append(verified(world.browser("alice", "acme")))

    monkeypatch.setattr(recount, "keep", looking)
    press(world.browser("alice", "acme"))
    assert f"Recounting all tickets, {GROUP} so far." in shown[1]
