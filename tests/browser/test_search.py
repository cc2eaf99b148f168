"""Searching by hand: results while typing, the page of what was found, and the same where no script runs."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.browser.conftest import NewPage, Witness, is_at
from tests.browser.page_audit import NARROW, audit, audit_all
from tests.support import embedded
from tests.support.searching import index_all
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.search import index_lookup
from tickets.ticket.fields import Priority, Status

pytestmark = pytest.mark.browser

LONG = "The printer in the second floor stops with an unusually long and winding message " * 2
TITLES = (LONG, "Printer offline after the update", "Printing doubles each page", "Invoice cannot be opened")
SUGGESTIONS = "**/search/suggest/?q=*"
TICKETS = "#search-options [role=option][id^=suggested-ticket]"


@pytest.fixture
def world(engine: None) -> World:
    """Four tickets of Acme's that can be found; the first has a note, the second is Alice's and pending."""
    world = embedded.prepared("searched-in-a-browser", searched_desk)
    index_lookup.forget()  # of the test before
    return world


@pytest.fixture
def desk(world: World) -> World:
    return world


def searched_desk() -> World:
    world = World.create()
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    for title in TITLES:
        creating.create(alice, title=title, description="It broke.", priority=Priority.HIGH, tags=["printing", "hall"])
    commenting.comment(bob, 1, body="The toner is counterfeit.", internal=True)
    changing.assign(alice, 2, to=alice.user_id, version=1)
    changing.change_status(alice, 2, to=Status.PENDING, version=2)
    index_all()
    return world


@pytest.fixture
def page(desk: World, person: NewPage) -> Page:
    page = person("bob")
    page.goto("/tickets/")
    return page


# Each letter of a text is an event of its own, and no time goes by between them.
KEYS_AT_ONCE = """(box, text) => [...text].forEach((_, n) => {
  box.value = text.slice(0, n + 1);
  box.dispatchEvent(new InputEvent("input", { bubbles: true }));
})"""


def type_into_box(page: Page, text: str) -> None:
    page.wait_for_load_state()  # a page that shows its rows may not know its keys yet
    page.keyboard.press("/")
    expect(page.get_by_role("combobox", name="Search this desk")).to_be_focused()
    if text:
        page.keyboard.insert_text(text)  # at once: what the box waits between keys may not decide a test


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


# --- while typing ---


def test_a_ticket_is_found_and_opened_without_a_mouse(page: Page) -> None:
    type_into_box(page, "invo")
    expect(page.locator(TICKETS)).to_have_text([re.compile("#4.*Invoice cannot be opened.*Open", re.DOTALL)])
    expect(page.locator("#announce")).to_have_text("1 suggestion")
    box = page.locator("#search-box")
    expect(box).to_have_attribute("aria-expanded", "true")
    # Search for it, search for it in this list, the ticket; and from there round to the box, where nothing is chosen.
    for chosen in ("search-all", "search-here", "suggested-ticket-4"):
        press(page, "ArrowDown")
        expect(box).to_have_attribute("aria-activedescendant", chosen)
        expect(page.locator(f"#{chosen}")).to_have_attribute("aria-selected", "true")
    press(page, "ArrowDown")
    expect(page.locator("[aria-selected=true]")).to_have_count(0)
    press(page, "ArrowUp", "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Invoice cannot be opened")


def test_who_opened_a_hit_by_a_key_comes_back_to_it(page: Page) -> None:
    page.goto("/search/?q=print")
    press(page, "j", "j")
    opened = page.locator("[data-row-link]:focus")
    title, box = opened.inner_text(), opened.bounding_box()
    press(page, "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    page.go_back()
    expect(page.locator("[data-row-link]:focus")).to_have_text(title)
    assert page.locator("[data-row-link]:focus").bounding_box() == box


def test_a_hit_in_a_note_is_in_the_window_marked_and_has_the_focus_when_its_ticket_is_opened(page: Page) -> None:
    page.goto("/search/?q=counterfeit")
    assert audit(page, "a hit in a note") == []
    press(page, "j", "Enter")
    entry = page.locator(".activity > li:focus")
    expect(entry).to_contain_text("The toner is counterfeit.")
    expect(entry).to_be_in_viewport()
    expect(entry.locator("[aria-current=true]")).to_have_accessible_name("Internal note by Bob Example")
    assert audit(page, "a ticket at an entry") == []


def test_who_writes_at_a_hit_is_at_the_address_of_the_latest_entries_that_are_shown_then(page: Page) -> None:
    page.goto("/search/?q=counterfeit")
    page.locator("a.row-link").click()
    expect(page).to_have_url(re.compile(r"/tickets/1/\?entry="))
    page.locator("#reply textarea").first.fill("It is not.")
    page.locator("#comment-send").click()
    expect(page.locator("#activity")).to_contain_text("It is not.")
    expect(page).to_have_url(re.compile(r"/tickets/1/$"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"/search/\?q=counterfeit"))


def test_a_page_with_filters_offers_the_whole_desk_first_and_its_own_list_second(page: Page) -> None:
    for option, status in (("search-all", None), ("search-here", "open")):
        page.goto("/search/?q=zebra&status=open&order=newest")
        page.locator("#search-box").fill("printer")
        expect(page.locator("#search-all")).to_contain_text("Search the whole desk for “printer”")
        page.locator(f"#{option}").click()
        expect(page.locator("[data-row]").first).to_be_visible()
        asked = {name: value for name, (value,) in parse_qs(urlsplit(page.url).query).items()}
        assert asked == {"q": "printer", "order": "newest"} | ({"status": status} if status else {})


# --- the command palette ---


def open_palette(page: Page, text: str = "") -> None:
    page.wait_for_load_state()
    press(page, "Control+k")
    expect(page.locator("#search-options [role=option]").first).to_be_visible()
    page.keyboard.insert_text(text)


def test_the_palette_does_what_the_page_offers_by_a_button_and_by_a_select(page: Page) -> None:
    page.goto("/tickets/4/")
    for typed, command, where, shown in (
        ("clos", "Status: Closed", ".status-choice [aria-pressed=true]", "Closed"),
        ("prio urg", "Priority: Urgent", ".ticket-facts .priority", "Urgent"),
        ("to me", "Assign to me", ".prop-now .person", re.compile("Bob Example")),
    ):
        open_palette(page, typed)
        expect(page.locator("#search-options [aria-selected=true]")).to_have_text(command)
        press(page, "Enter")
        expect(page.locator("#search-panel")).to_be_hidden()
        expect(page.locator(where)).to_have_text(shown)
        expect(page.locator("#search-box")).to_have_value("")


def test_the_palette_acts_on_the_selected_tickets_of_a_list(page: Page) -> None:
    press(page, "j", "x", "j", "x")
    open_palette(page, "move closed")
    press(page, "Enter")
    expect(page.locator("#messages")).to_contain_text("2 tickets are now closed.")


def test_the_palette_leads_to_tickets_people_pages_and_other_desks(page: Page, person: NewPage) -> None:
    open_palette(page, "invoice")
    expect(page.locator(TICKETS)).to_have_count(1)
    press(page, "ArrowUp", "ArrowUp", "Enter") if page.locator("[aria-selected=true]").count() else press(
        page, "ArrowUp", "Enter"
    )
    expect(page.get_by_role("heading", level=1)).to_have_text("Invoice cannot be opened")
    alice = person("alice", "acme")
    for typed, note, place in (("audit", "Security", "/acme/desk/audit/"), ("globex", "globex", "/globex/tickets/")):
        alice.goto("/acme/tickets/")
        open_palette(alice, typed)
        expect(alice.locator("#search-options [aria-selected=true] .option-note")).to_have_text(note)
        press(alice, "Enter")
        is_at(alice, place)


def test_the_palette_keeps_its_choice_and_names_each_desk_once_when_the_answer_comes_late(person: NewPage) -> None:
    alice = person("alice", "acme")
    late: list[Route] = []
    alice.route("**/search/commands/", lambda route: late.append(route))
    alice.goto("/acme/tickets/")
    open_palette(alice)
    press(alice, "Control+k", "ArrowDown", "ArrowDown")
    chosen = alice.locator("#search-options [aria-selected=true]")
    before = chosen.inner_text()
    wait_until(lambda: alice.wait_for_timeout(20) or bool(late))
    late[0].continue_()
    expect(alice.locator("#search-options [role=option]", has_text="globex")).to_have_count(1)
    expect(chosen).to_have_text(before)


def test_the_palette_opens_from_a_text_box_and_gives_focus_back_with_what_was_typed(page: Page) -> None:
    page.goto("/tickets/4/")
    page.locator("#id_body").fill("Half a sen")
    open_palette(page)
    press(page, "Escape")
    expect(page.locator("#id_body")).to_be_focused()
    page.keyboard.type("tence")
    expect(page.locator("#id_body")).to_have_value("Half a sentence")
    page.keyboard.press("/")
    expect(page.locator("#id_body")).to_have_value("Half a sentence/")


def test_the_palette_offers_what_the_page_has_where_the_server_cannot_be_reached(page: Page, witness: Witness) -> None:
    witness.accepts_console("Failed to load resource")
    page.route("**/search/commands/", lambda route: route.abort())
    open_palette(page, "queue")
    expect(page.locator("#search-options [aria-selected=true]")).to_have_text("Queue")


def test_esc_closes_the_list_and_leaves_the_box_when_it_is_pressed_again(page: Page) -> None:
    box, panel = page.locator("#search-box"), page.locator("#search-panel")
    type_into_box(page, "print")
    expect(panel).to_be_visible()
    press(page, "Escape")
    expect(panel).to_be_hidden()
    expect(box).to_be_focused()
    press(page, "ArrowDown")
    expect(panel).to_be_visible()
    press(page, "Escape", "Escape")
    expect(box).not_to_be_focused()
    expect(box).to_have_value("print")
    press(page, "/")
    page.keyboard.type("x")
    expect(box).to_have_value("x")  # what was there is chosen as a whole
    press(page, "Backspace")
    expect(panel).to_be_hidden()
    type_into_box(page, "print")
    page.locator("h1").click()
    expect(panel).to_be_hidden()


def test_an_older_answer_never_replaces_a_newer_one(page: Page) -> None:
    held: list[Route] = []
    given_up: list[str] = []

    def hold_the_first(route: Route) -> None:
        if not held:
            held.append(route)
        else:
            route.continue_()

    page.on("requestfailed", lambda request: given_up.append(request.url))
    page.route(SUGGESTIONS, hold_the_first)
    with page.expect_request(SUGGESTIONS):
        type_into_box(page, "print")
    page.keyboard.press("Control+A")
    page.keyboard.insert_text("invoice")
    expect(page.locator(TICKETS)).to_have_count(1)
    wait_until(lambda: given_up, working=lambda: page.wait_for_timeout(20))
    assert [url.rpartition("=")[2] for url in given_up] == ["print"]
    expect(page.locator(TICKETS)).to_contain_text("Invoice")


def test_keys_that_follow_each_other_quickly_ask_once(page: Page) -> None:
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/search/suggest/?q=" in request.url:
            asked.append(request.url.rpartition("=")[2])

    page.on("request", note)
    type_into_box(page, "")
    page.get_by_role("combobox", name="Search this desk").evaluate(KEYS_AT_ONCE, "invoice")
    expect(page.locator(TICKETS)).to_have_count(1)
    assert asked == ["invoice"]


def test_where_too_much_is_asked_the_box_asks_again_by_itself(page: Page, witness: Witness) -> None:
    witness.accepts(429)
    answers: list[int] = []

    def refuse_the_first(route: Route) -> None:
        answers.append(len(answers))
        if len(answers) == 1:
            route.fulfill(status=429, headers={"Retry-After": "0.01"})
        else:
            route.continue_()

    page.route(SUGGESTIONS, refuse_the_first)
    type_into_box(page, "invoice")
    expect(page.locator(TICKETS)).to_have_count(1)
    assert answers == [0, 1]


def test_a_box_that_gets_focus_tells_the_server_to_be_ready(page: Page) -> None:
    with page.expect_response("**/search/suggest/") as ready:
        press(page, "/")
    assert ready.value.status == 204


def test_a_search_that_cannot_reach_the_server_can_still_be_sent(page: Page, witness: Witness) -> None:
    witness.accepts_console("net::ERR_FAILED")
    page.route("**/search/suggest/**", lambda route: route.abort())
    type_into_box(page, "invoice")
    press(page, "ArrowDown", "Enter")
    expect(page.locator("[data-row-link]")).to_have_text([TITLES[3]])


# --- the page ---


def test_enter_finds_and_the_results_are_worked_by_keyboard(page: Page) -> None:
    type_into_box(page, "printer offline")
    press(page, "Enter")
    both, one = page.locator(".hits").nth(0), page.get_by_role("table", name="Tickets with some of the words")
    expect(both.locator("[data-row-link]")).to_have_text([TITLES[1]])
    expect(both.locator("mark")).to_have_text(["Printer", "offline"])
    expect(one.locator("[data-row-link]")).to_have_text([TITLES[0].strip()])
    expect(page).to_have_title("“printer offline” · Search · Pooldesk")
    expect(page.locator("#search-box")).to_have_value("printer offline")
    page.wait_for_load_state()
    press(page, "j", "Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLES[1])
    page.go_back()
    expect(page.locator("[data-row-link]")).to_have_count(2)
    expect(page.locator("#search-panel")).to_be_hidden()


def test_filters_narrow_in_place_and_the_next_search_keeps_them(page: Page) -> None:
    page.goto("/search/?q=printer")
    expect(page.locator("[data-row]")).to_have_count(2)
    page.locator("#status-pending").focus()
    press(page, "Enter")
    expect(page.locator("[data-row-link]")).to_have_text([TITLES[1]])
    is_at(page, "/acme/search/?q=printer&status=pending")
    expect(page.locator("#status-pending")).to_be_focused()
    expect(page.locator("#announce")).to_have_text("1 ticket found")
    type_into_box(page, "invoice")
    press(page, "Enter")
    expect(page.get_by_role("heading", name="No tickets in this list match “invoice”.")).to_be_visible()
    page.get_by_role("link", name="Search in any status").click()
    expect(page.locator("[data-row-link]")).to_have_text([TITLES[3]])


def test_on_a_narrow_screen_the_box_is_a_symbol_until_it_is_touched(desk: World, person: NewPage) -> None:
    page = person("bob", viewport=NARROW, has_touch=True, is_mobile=True)
    page.goto("/tickets/")
    box = page.locator("#search-box")
    shut = box.bounding_box()
    assert shut is not None
    assert shut["width"] <= 48
    box.tap()
    page.keyboard.type("invoice")
    grown = box.bounding_box()
    assert grown is not None
    assert grown["width"] > 300
    page.locator(TICKETS).tap()
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLES[3])


# --- how it looks ---


def test_each_state_of_the_search_can_be_read_by_everybody(page: Page, witness: Witness) -> None:
    witness.accepts(400)
    found: list[str] = []
    type_into_box(page, "print")
    expect(page.locator(TICKETS)).to_have_count(4)
    press(page, "ArrowDown", "ArrowDown", "ArrowDown")
    found += audit(page, "typing", ".topbar")
    press(page, "Escape", "Escape")
    open_palette(page)
    found += audit(page, "palette", ".topbar")
    for name, query in {
        "waiting": "",
        "found": "q=toner+printer+the",
        "filtered": "q=printer&status=open&resolver=none&tag=printing&priority=high&created=2026-01-01..",
        "nothing": "q=zebra&status=open&resolver=me&tag=printing",
        "refused": "q=-printer",
        "bad filter": "q=printer&created=yesterday",
    }.items():
        page.goto(f"/search/?{query}")
        found += audit_all(page, name, "html" if name == "found" else "#main")
    assert not found
