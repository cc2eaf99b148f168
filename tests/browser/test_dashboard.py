"""The dashboard in a real browser: it keeps itself up to date without disturbing anybody, on screen and on paper."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.cache import cache
from playwright.sync_api import Page, Route, expect

from portal import clock
from portal.streams import stored as stream_keys
from portal.streams.stored import WatermarkItem
from portal.streams.worker import WORKER
from tenants.tenancy.context import Role
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import NARROW, TOO_WIDE, WIDE, audit, layout
from tests.support import folding
from tests.support.world import World
from tickets.counting.contributions import BUCKETS
from tickets.desk import changing, commenting, creating
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import TICKETS

pytestmark = pytest.mark.browser

PAGE = "/tickets/dashboard/"
LONG = "Maximiliana-Wolfeschlegelsteinhausenbergerdorff-Featherstonehaugh"


@pytest.fixture
def follower(engine: None) -> folding.Follower:
    return folding.Follower()


@pytest.fixture
def desk(world: World, follower: folding.Follower) -> World:
    """Three tickets, one of each: open with nobody, pending with Alice, resolved by Bob."""
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    for priority in (Priority.URGENT, Priority.NORMAL, Priority.LOW):
        creating.create(
            alice, title="Broken", priority=priority, tags=["vpn", "a-tag-of-forty-characters-that-never-end"]
        )
    changing.assign(alice, 2, to=alice.user_id, version=1)
    changing.change_status(alice, 2, to=Status.PENDING, version=2)
    changing.assign(alice, 3, to=bob.user_id, version=1)
    commenting.comment(bob, 3, body="Done.", then=Status.RESOLVED)
    follower.fold()
    watermark(5)
    return world


def watermark(seconds: int, *, written: int = 0) -> None:
    """The worker has counted everything up to so many seconds ago."""
    now = clock.now()
    as_of, written_at = (clock.stamp(now - timedelta(seconds=s)) for s in (seconds, written))
    actions = [WatermarkItem.as_of.set(as_of), WatermarkItem.written_at.set(written_at)]
    actions.append(WatermarkItem.expires_at.set(int(now.timestamp()) + 3600))
    WORKER.update(WatermarkItem(TICKETS.name, stream_keys.WATERMARK), actions)
    cache.clear()  # which the pages read within a second


def number(page: Page, tile: str) -> str:
    return page.locator(f"#tile-{tile} .tile-number").inner_text()


def refresh_often(page: Page) -> None:
    page.locator("#dashboard").evaluate("(part) => { part.dataset.refresh = '0.2' }")


def test_the_page_is_accessible_in_all_its_states(desk: World, person: NewPage, witness: Witness) -> None:
    watermark(250)
    page = person("alice", "acme")
    page.goto(PAGE)
    expect(page.get_by_text("These numbers are 4 minutes behind")).to_be_visible()
    for table in page.locator("details.as-table > summary").all():
        table.click()
    found = audit(page, "dashboard, behind, with its tables")
    page = person("charlie")
    page.goto(PAGE)
    found += audit(page, "dashboard, nothing yet", within="#main")
    page = person("bob", viewport=NARROW)
    page.goto(PAGE)
    found += layout(page, "dashboard of an agent, 390")  # nothing is on it that is not on an owner's
    assert not found, "\n".join(found)


def test_millions_and_long_names_stay_within_the_window(desk: World, person: NewPage) -> None:
    desk.add_user(LONG)
    desk.join(LONG.lower(), "acme", Role.AGENT)
    acme = desk.context("alice", "acme")
    counts = {f"{s}_{p}": 1_234_567 for s in Status for p in Priority}
    nobody = {f"unassigned_{s}": 1_234_567 for s in Status}
    people = {f"{who}_{s}": 1_234_567 for who in (desk.users[LONG.lower()].id, "f" * 32) for s in Status}
    folding.plant(acme, "TOTALS", **counts, **nobody)
    folding.plant(acme, "PEOPLE", **people)
    buckets = {f"{what}_{bound}": 1_234_567 for what in ("first", "done") for bound in (*BUCKETS, "over")}
    events = {"created": 12_345_678, "done_n": 11_111_111, "first_n": 9_999_999, "commented": 99_999_999}
    folding.plant(acme, "DAY", str(clock.now().date()), **events, **buckets)
    page = person("alice", "acme")
    page.goto(f"{PAGE}?days=90")
    for table in page.locator("details.as-table > summary").all():
        table.click()
    assert number(page, "created") == "12,345,681"
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        assert page.evaluate(TOO_WIDE) == []


def test_a_new_number_appears_and_nothing_else_moves(desk: World, person: NewPage, follower: folding.Follower) -> None:
    page = person("alice", "acme")
    page.goto(PAGE)
    page.locator("#loads-table > summary").click()
    link = page.locator("#load-none .number").first
    link.focus()
    assert number(page, "open") == "1"
    creating.create(desk.context("bob", "acme"), title="One more")
    follower.fold()
    refresh_often(page)
    expect(page.locator("#tile-open .tile-number")).to_have_text("2")
    expect(link).to_be_focused()
    expect(link).to_have_text("2")
    expect(page.locator("#loads-table")).to_have_attribute("open", "")
    assert page.locator("#announce").inner_text() == ""


def test_focus_follows_its_row_when_the_order_changes(desk: World, person: NewPage, follower: folding.Follower) -> None:
    alice = desk.users["alice"].id
    page = person("alice", "acme")
    page.goto(PAGE)
    link = page.locator(f"#load-{alice} a.number")
    link.focus()
    tenant = desk.context("alice", "acme")
    changing.assign(tenant, 1, to=alice, version=1)
    creating.create(tenant, title="With nobody")
    creating.create(tenant, title="With nobody")
    creating.create(tenant, title="With nobody")
    follower.fold()
    rows = page.locator("#loads-title ~ table tbody tr")
    before = [row.get_attribute("id") for row in rows.all()]
    refresh_often(page)
    expect(page.locator("#tile-open .tile-number")).to_have_text("4")
    assert {row.get_attribute("id") for row in rows.all()} == set(before)
    expect(page.locator(f"#load-{alice} :focus")).to_have_count(1)


def test_a_tab_that_is_not_seen_asks_for_nothing(desk: World, person: NewPage) -> None:
    page = person("alice", "acme")
    page.goto(PAGE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if PAGE in request.url else None)
    page.evaluate("Object.defineProperty(document, 'hidden', { get: () => window.away ?? true })")
    refresh_often(page)
    page.wait_for_timeout(2500)
    assert asked == []
    with page.expect_response(f"**{PAGE}"):
        page.evaluate("window.away = false")


def test_a_failing_refresh_is_said_and_the_numbers_stay(desk: World, person: NewPage, witness: Witness) -> None:
    witness.accepts(503)
    page = person("alice", "acme")
    page.goto(PAGE)

    def fails(route: Route) -> None:
        route.fulfill(status=503, body="<p>down</p>", content_type="text/html")

    page.route(f"**{PAGE}", fails)
    refresh_often(page)
    expect(page.get_by_text("could not be refreshed")).to_be_visible()
    assert number(page, "open") == "1"
    page.unroute(f"**{PAGE}", fails)
    expect(page.get_by_text("could not be refreshed")).to_be_hidden()


def test_a_worker_that_stops_is_announced_in_the_open_page(desk: World, person: NewPage) -> None:
    page = person("alice", "acme")
    page.goto(PAGE)
    expect(page.locator("#lag")).to_be_empty()
    watermark(7300, written=7290)
    refresh_often(page)
    expect(page.locator("#lag [role=status]")).to_contain_text(
        "Counting has stopped. These numbers are from 2 hours ago"
    )


def test_a_day_in_the_chart_leads_to_its_tickets(desk: World, person: NewPage) -> None:
    page = person("alice", "acme")
    page.goto(PAGE)
    page.locator("a.daily-day").last.click()
    expect(page.locator("[data-row]")).to_have_count(3)


def test_a_print_has_the_tables_and_no_controls(desk: World, person: NewPage) -> None:
    page = person("alice", "acme")
    page.goto(PAGE)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("#daily-table table")).to_be_visible()
    expect(page.locator(".tabs")).to_be_hidden()
    expect(page.get_by_role("button", name="Verify numbers")).to_be_hidden()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator("#daily-table")).not_to_have_attribute("open", "")
    assert page.pdf(format="A4").startswith(b"%PDF")
