"""Pages that stay open: who else is on the ticket, what is new, and how seldom they ask."""

from __future__ import annotations

import re
from functools import partial

import pytest
from playwright.sync_api import Request, Route, expect

from portal import clock
from tenants.membership.mail_choices import MailKind
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit
from tests.browser.test_nothing_is_lost import desks_with_tickets
from tests.support import embedded
from tests.support.targets import set_targets
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.desk.changing import Wishes
from tickets.linking import linking
from tickets.live import presence
from tickets.notices import inbox
from tickets.sla.policy import TargetRule

pytestmark = pytest.mark.browser

TEXT = "Half a sentence"


@pytest.fixture
def world(engine: None) -> World:
    return embedded.prepared("desks-in-a-browser", desks_with_tickets)


@pytest.fixture(autouse=True)
def answers_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "SECONDS", 0)


def test_who_writes_is_told_of_the_other_writer_and_of_new_comments_and_keeps_the_text(
    world: World, person: NewPage
) -> None:
    alice = world.context("alice", "acme")
    linking.link(alice, 1, "blocks", 2)
    page = person("bob")
    page.clock.install()
    page.goto("/tickets/1/")
    expect(page.locator("#presence")).to_be_hidden()
    presence.announce(alice, 1, shown="", writes=True)
    text = page.locator("#reply textarea").first
    page.clock.run_for(5_000)
    text.press_sequentially(TEXT)
    expect(page.locator("#presence")).to_have_text("Alice Example is writing an answer.")
    for body in ("First.", "Second."):
        commenting.comment(alice, 1, body=body)
    page.clock.run_for(10_000)
    expect(page.locator("#updates")).to_contain_text("2 new on this ticket. Show them")
    expect(text).to_have_value(TEXT)
    expect(text).to_be_focused()
    page.get_by_role("link", name="Show them").press("Enter")
    expect(page.locator("#activity")).to_contain_text("Second.")
    expect(page.locator("#links")).to_contain_text("Ticket 2")  # which has come after the rest, and takes no focus
    expect(page.locator("#activity > li", has_text="First.")).to_be_focused()
    expect(page.locator("#reply textarea").first).to_have_value(TEXT)
    expect(page.locator("#updates")).not_to_contain_text("2 new")


def test_a_reader_hears_within_ten_seconds_that_somebody_begins_to_write_and_stops(
    world: World, person: NewPage
) -> None:
    alice, page = world.context("alice", "acme"), person("bob")
    page.clock.install()
    page.goto("/tickets/1/")
    page.wait_for_load_state("networkidle")
    presence.announce(alice, 1, shown="", writes=True)
    page.clock.run_for(10_000)
    expect(page.locator("#presence")).to_have_text("Alice Example is writing an answer.")
    presence.announce(alice, 1, shown="")
    page.clock.run_for(10_000)
    expect(page.locator("#presence")).to_have_text("Alice Example is looking at this ticket.")


@pytest.mark.parametrize(("path", "most"), [("/tickets/1/", 1), ("/tickets/", 1)])
def test_a_page_that_nobody_uses_reads_once_a_minute_and_a_hidden_one_not_at_all(
    world: World, person: NewPage, path: str, most: int
) -> None:
    page, asked = person("bob"), list[str]()

    def note(request: Request) -> None:
        if request.method == "POST" and "/r/live/" in request.url:
            asked.append((request.post_data or "").removeprefix("for=").partition("&")[0])
        elif request.resource_type in ("fetch", "xhr"):
            asked.append(request.url)

    page.clock.install()
    page.goto(path)
    page.wait_for_load_state("networkidle")
    page.clock.run_for(130_000)  # it counts as used that long after it was loaded
    page.on("request", note)
    for _ in range(6):
        page.clock.run_for(10_000)
        page.wait_for_timeout(20)
    assert asked.count("change") <= most
    assert {*asked} <= {"change", "people"}
    asked.clear()
    page.mouse.move(200, 200)
    page.clock.run_for(10_000)
    page.wait_for_timeout(20)
    assert "change" in asked
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true })")
    asked.clear()
    page.clock.run_for(120_000)
    assert asked == []


def test_news_of_a_list_are_shown_in_place_and_the_focus_stays_in_the_list(world: World, person: NewPage) -> None:
    page, version = person("bob"), ["1"]
    page.clock.install()
    page.route("**/r/live/**", lambda route: route.fulfill(json={"at": version[0]}))
    page.goto("/tickets/")
    page.wait_for_load_state("networkidle")
    page.evaluate("window.stays = true")
    changing.change(world.context("alice", "acme"), 1, Wishes(title="Another title"))
    version[0] = "2"
    page.clock.run_for(10_000)
    page.get_by_role("link", name="Show it").press("Enter")
    expect(page.locator("#queue")).to_contain_text("Another title")
    expect(page.locator("#queue-title")).to_be_focused()
    assert page.evaluate("window.stays")


def test_a_list_offers_its_news_within_ten_seconds_and_seldom_where_others_change_all_the_time(
    world: World, person: NewPage
) -> None:
    page, asked, version = person("bob"), list[str](), [0]

    def answer(route: Route) -> None:
        version[0] += 1
        route.fulfill(json={"at": str(version[0])})

    page.clock.install()
    page.route("**/r/live/**", answer)
    page.goto("/tickets/?status=closed")
    page.wait_for_load_state("networkidle")
    page.on("request", lambda request: asked.append(request.url) if "/updates/" in request.url else None)
    for number in range(1, 13):
        page.clock.run_for(10_000)
        page.wait_for_timeout(20)
        if number == 2:
            assert len(asked) == 1
    assert len(asked) <= 5


@pytest.mark.parametrize("status", [404, 503])
def test_a_page_whose_address_is_too_old_or_of_a_former_place_asks_for_another(
    world: World, person: NewPage, witness: Witness, status: int
) -> None:
    witness.accepts(status)
    page = person("bob")
    page.clock.install()
    page.goto("/tickets/1/")
    page.wait_for_load_state("networkidle")
    before = page.locator("[data-live]").get_attribute("data-live") or ""
    page.route(f"**{before}", lambda route: route.fulfill(status=status))
    page.clock.run_for(70_000)
    expect(page.locator("[data-live]")).not_to_have_attribute("data-live", before)
    presence.announce(world.context("alice", "acme"), 1, shown="")
    page.clock.run_for(40_000)
    expect(page.locator("#presence")).to_have_text("Alice Example is looking at this ticket.")


@pytest.mark.parametrize("path", ["/tickets/", "/tickets/1/"])
def test_targets_are_counted_down_in_an_open_page(world: World, person: NewPage, path: str) -> None:
    set_targets(world.context("alice", "acme"), TargetRule(first=5 * 60))
    number = creating.create(world.context("alice", "acme"), title="Soon")
    page = person("bob")
    page.clock.install()
    page.goto(path.replace("1", str(number)))
    due = page.locator(".due").first
    expect(due).to_have_text(re.compile("First answer in [45] min"))
    page.clock.run_for(121_000)
    expect(due).to_have_text(re.compile("First answer in [23] min"))
    page.clock.run_for(6 * 60_000)
    expect(due).to_have_text(re.compile("First answer [23] min late"))
    expect(due).to_have_class("due due-overdue")


NOTIFICATIONS = """
window.shown = [];
window.Notification = class {
  static permission = "default";
  static requestPermission() { window.Notification.permission = ANSWER; return Promise.resolve(ANSWER); }
  constructor(title, options) { window.shown.push(`${title}: ${options.body}`); }
};
"""


def test_a_browser_notifies_of_news_by_choice_in_a_hidden_tab_too_and_once(world: World, person: NewPage) -> None:
    bob = world.context("bob", "acme")
    page = person("bob", is_given_up=True)
    page.clock.install()
    page.add_init_script(NOTIFICATIONS.replace("ANSWER", '"granted"'))
    page.goto("/acme/desk/mail/")
    page.locator("[data-notify-choice]").check()
    expect(page.locator("[data-notify-choice]")).to_be_checked()
    page.add_init_script("window.Notification.permission = 'granted';")
    page.goto("/tickets/")
    page.wait_for_load_state("networkidle")
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true })")
    for number in (1, 2):
        inbox.tell(bob, bob.user_id, MailKind.DUE, number, at=clock.stamp(offset=number), event=str(number))
        page.clock.run_for(70_000)
        # No wait_for_function: where it has to look again, the policy of the page refuses its eval.
        wait_until(partial(page.evaluate, f"window.shown.length === {number}"))
        page.clock.run_for(70_000)
    assert page.evaluate("window.shown") == [
        "Pooldesk: 1 ticket has news for you.",
        "Pooldesk: 2 tickets have news for you.",
    ]
    expect(page.locator("#bell [data-number]")).to_have_text("2")


def test_a_browser_that_refuses_notifications_says_so(world: World, person: NewPage) -> None:
    page = person("bob", is_given_up=True)
    page.add_init_script(NOTIFICATIONS.replace("ANSWER", '"denied"'))
    page.goto("/acme/desk/mail/")
    page.locator("[data-notify-choice]").click()
    expect(page.locator("[data-notify-choice]")).not_to_be_checked()
    expect(page.locator("[data-notify-refused]")).to_be_visible()


def test_the_inbox_opens_a_ticket_and_its_news_are_read(world: World, person: NewPage) -> None:
    bob = world.context("bob", "acme")
    for number, kind in ((1, MailKind.ASSIGNED), (2, MailKind.DUE)):
        inbox.tell(bob, bob.user_id, kind, number, at=clock.stamp(offset=number), event=str(number))
    page = person("bob")
    page.goto("/acme/inbox/")
    expect(page.locator("#bell [data-number]")).to_have_text("2")
    assert audit(page, "inbox") == []
    page.get_by_role("link", name="#1 Ticket 1").click()
    expect(page.locator("#ticket-title")).to_have_text("Ticket 1")
    expect(page.locator("#bell [data-number]")).to_have_text("1")
    page.go_back()
    expect(page.locator(".is-unread")).to_have_count(1)
