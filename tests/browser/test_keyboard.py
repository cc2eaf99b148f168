"""Hands on the keyboard: shortcuts, where focus is after each change of the page, and that it can be seen."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Route, expect

from portal import clock
from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import tenant_lifecycle
from tenants.tenancy.context import Role
from tests.browser.conftest import NewPage, Witness, is_at
from tests.browser.page_audit import NARROW
from tests.browser.test_nothing_is_lost import desks_with_tickets
from tests.support import embedded
from tests.support.api_client import api_client
from tests.support.world import World
from tickets.desk import changing, commenting
from tickets.ticket.fields import Priority, Status

pytestmark = pytest.mark.browser

# Whether the element that has focus shows it: an outline of its own, or of the row that its link stretches over.
FOCUS_SHOWS = """() => {
  const element = document.activeElement;
  const shows = (style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const visible = element.getBoundingClientRect();
  return shows(getComputedStyle(element)) || shows(getComputedStyle(element, "::after"))
    ? "" : `${element.outerHTML.slice(0, 120)} at ${Math.round(visible.x)},${Math.round(visible.y)}`;
}"""


@pytest.fixture
def world(engine: None) -> World:
    """Three tickets in Acme and one in Globex."""
    return embedded.prepared("desks-in-a-browser", desks_with_tickets)


@pytest.fixture
def page(world: World, person: NewPage) -> Page:
    """Bob's queue: three open tickets, the newest first."""
    page = person("bob")
    page.goto("/tickets/")
    return page


@pytest.fixture
def still(page: Page) -> Page:
    """The same where no time goes by: two keys that belong together are pressed at one moment."""
    page.clock.set_fixed_time(clock.now())
    page.reload()
    return page


def focus_is_on(page: Page, selector: str) -> None:
    expect(page.locator(selector)).to_be_focused()
    assert not page.evaluate(FOCUS_SHOWS)


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def arrives(page: Page, heading: str) -> None:
    """At the page with this heading, its scripts included."""
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    page.wait_for_load_state()


# --- shortcuts ---


def test_the_list_is_worked_with_j_k_x_and_enter(page: Page) -> None:
    press(page, "j")
    focus_is_on(page, "[data-row-link] >> nth=0")
    press(page, "x", "j", "x", "j", "j")
    focus_is_on(page, "[data-row-link] >> nth=2")
    expect(page.locator("[data-count]")).to_have_text("2 selected")
    press(page, "k", "x")
    focus_is_on(page, "[data-row-link] >> nth=1")
    expect(page.locator("[data-count]")).to_have_text("1 selected")
    page.locator("button[name=to][value=closed]").focus()
    press(page, "Enter")
    expect(page.locator("#messages")).to_contain_text("1 ticket is now closed.")
    focus_is_on(page, "#queue-title")
    assert page.locator("[data-row-link]").all_inner_texts() == ["Ticket 2", "Ticket 1"]
    press(page, "j")
    focus_is_on(page, "[data-row-link] >> nth=0")
    press(page, "Enter")
    arrives(page, "Ticket 2")


def test_c_opens_a_new_ticket_and_g_leads_elsewhere(still: Page) -> None:
    page = still
    press(page, "Control+c", "Alt+c")
    arrives(page, "Queue")
    press(page, "c")
    arrives(page, "New ticket")
    focus_is_on(page, "#id_title")
    for field in ("#id_title", "#id_description"):
        page.locator(field).focus()
        page.keyboard.type("jkxcr gq?")
        expect(page.locator(field)).to_have_value("jkxcr gq?")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.locator("#main").focus()
    press(page, "g", "q")
    arrives(page, "Queue")
    press(page, "g", "d")
    arrives(page, "Dashboard")
    press(page, "g", "r")
    arrives(page, "Requesters")
    press(page, "g", "m")
    arrives(page, "Letters")


def test_r_begins_an_answer_and_ctrl_enter_sends_it(still: Page) -> None:
    page = still
    page.goto("/tickets/1/")
    press(page, "r")
    focus_is_on(page, "#id_body")
    page.keyboard.type("Sent by hand")
    press(page, "Control+Enter")
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_contain_text("Sent by hand")
    expect(page.locator("#id_body")).to_have_value("")
    expect(page.locator("#announce")).to_have_text("Comment added")
    # The box is left, so that the next keys are shortcuts and not text; Esc leaves it too.
    focus_is_on(page, "#latest")
    press(page, "r")
    focus_is_on(page, "#id_body")
    page.keyboard.type("Half a ")
    press(page, "Escape", "g", "q")
    arrives(page, "Queue")


def test_keys_of_a_ticket_lead_to_what_they_change(page: Page) -> None:
    page.goto("/tickets/1/")
    press(page, "s")
    focus_is_on(page, "#move-pending")
    press(page, "p")
    focus_is_on(page, "#quick-priority")
    page.locator("#main").focus()
    press(page, "n")
    focus_is_on(page, "#id_body")
    expect(page.locator("[name=internal]")).to_be_checked()
    press(page, "Escape", "r")
    expect(page.locator("[name=internal]")).not_to_be_checked()
    press(page, "Escape", "n")
    page.keyboard.type("between us")
    press(page, "Escape", "r")
    expect(page.locator("[name=internal]")).to_be_checked()  # a note that was begun does not become a comment
    expect(page.locator("#id_body")).to_have_value("between us")
    press(page, "Escape", "Control+a", "a")
    expect(page.locator("#people-list .option")).to_have_count(2)
    press(page, "ArrowDown")
    focus_is_on(page, "#people-list .option >> nth=0")
    press(page, "Escape", "b")
    focus_is_on(page, "#snooze-menu > summary")
    press(page, "ArrowDown")
    focus_is_on(page, "#snooze-hours")
    press(page, "Escape", "l")
    arrives(page, "Edit ticket")
    focus_is_on(page, "#id_tags")


def test_keys_of_a_list_act_on_the_row_or_on_the_selection(page: Page) -> None:
    press(page, "a", "p", "l", "r", "n")
    arrives(page, "Queue")  # without a row there is nothing to act on
    press(page, "j", "s")
    expect(page.locator("[data-count]")).to_have_text("1 selected")
    focus_is_on(page, "button[name=to] >> nth=0")
    press(page, "Enter")
    expect(page.locator("#messages")).to_contain_text("1 ticket is now pending.")
    for key, place in (("p", "#quick-priority"), ("r", "#id_body"), ("n", "#id_body"), ("l", "#id_tags")):
        page.goto("/tickets/")
        press(page, "j", key)
        focus_is_on(page, place)
        if key in "rn":
            assert page.locator("[name=internal]").is_checked() == (key == "n")
    page.goto("/tickets/")
    press(page, "j", "x", "a")
    arrives(page, "Assign #2")
    for key in "apl":
        page.goto("/tickets/")
        press(page, "j", "x", "j", "x", key)
        arrives(page, "Change 2 tickets")


def test_a_viewers_keys_change_nothing(person: NewPage) -> None:
    page = person("vera")
    page.goto("/tickets/")
    press(page, "j", "a", "s", "p", "l", "r", "n", "c")
    arrives(page, "Queue")
    page.goto("/tickets/1/")
    press(page, "a", "s", "p", "l", "r", "n")
    arrives(page, "Ticket 1")


def test_a_question_mark_shows_the_keys_and_they_can_be_switched_off(page: Page) -> None:
    press(page, "j", "?")
    keys = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(keys).to_be_visible()
    press(page, "j", "c", "Escape")
    expect(keys).to_be_hidden()
    focus_is_on(page, "[data-row-link] >> nth=0")
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Use single-key shortcuts in this browser").uncheck()
    press(page, "Escape")
    page.reload()
    press(page, "c", "?")
    arrives(page, "Queue")
    expect(keys).to_be_hidden()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    expect(page.get_by_label("Use single-key shortcuts in this browser")).not_to_be_checked()


def test_a_list_is_filtered_and_worked_without_a_mouse(page: Page, world: World) -> None:
    bob = world.context("bob", "acme")
    changing.change_status(bob, 2, to=Status.PENDING, version=1)
    changing.edit(bob, 2, version=2, title="Ticket 2", description="", priority=Priority.HIGH, tags=["printer"])
    changing.edit(bob, 3, version=1, title="Ticket 3", description="", priority=Priority.LOW, tags=["printer"])
    page.locator("#filter-menu > summary").focus()
    press(page, "Enter", "Tab")
    focus_is_on(page, "#filter-status")
    page.locator("#filter-status").select_option("Unresolved")
    press(page, "Tab", "Tab", "Tab", "Tab", "Tab")
    focus_is_on(page, "#filter-tag")
    page.keyboard.type("Printer")
    press(page, "Enter")
    expect(page.locator(".chip")).to_have_text(["Remove the filter tag: printer"])
    is_at(page, "/tickets/?status=unresolved&tag=printer")
    focus_is_on(page, "#queue-title")
    press(page, "j", "x", "j", "x")
    focus_is_on(page, "[data-row-link] >> nth=1")
    page.locator("button[name=to][value=closed]").focus()
    press(page, "Enter")
    expect(page.locator("#messages")).to_contain_text("2 tickets are now closed.")
    expect(page.get_by_role("heading", name="No unresolved tickets match")).to_be_visible()
    page.locator(".chip").focus()
    focus_is_on(page, ".chip")
    press(page, "Enter")
    expect(page.locator(".chip")).to_have_count(0)
    expect(page.locator("[data-row-link]")).to_have_text(["Ticket 1"])
    focus_is_on(page, "#queue-title")


def test_a_tag_in_a_row_filters_in_place(page: Page, world: World) -> None:
    bob = world.context("bob", "acme")
    changing.edit(bob, 2, version=1, title="Ticket 2", description="", priority=Priority.LOW, tags=["printer"])
    page.reload()
    page.evaluate("window.stays = true")
    page.locator("a.tag").focus()
    assert not page.evaluate(FOCUS_SHOWS)
    press(page, "Enter")
    expect(page.locator(".chip")).to_have_count(1)
    expect(page.locator("[data-row-link]")).to_have_text(["Ticket 2"])
    is_at(page, "/tickets/?status=open&tag=printer")
    assert page.evaluate("window.stays")
    page.go_back()
    expect(page.locator("[data-row-link]")).to_have_count(3)


# --- where focus is ---


def test_the_first_tab_stop_skips_to_the_content(page: Page) -> None:
    press(page, "Tab")
    focus_is_on(page, ".skip-link")
    expect(page.locator(".skip-link")).to_be_in_viewport()
    press(page, "Enter")
    expect(page.locator("#main")).to_be_focused()
    press(page, "Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_focus_stays_on_what_filters_and_pages_or_goes_to_the_heading(world: World, page: Page) -> None:
    world.tickets("acme", 50)
    page.locator("#status-pending").focus()
    press(page, "Enter")
    expect(page.get_by_role("heading", name="No pending tickets")).to_be_visible()
    expect(page.locator("#announce")).to_have_text("No pending tickets.")
    expect(page).to_have_title("Pending tickets · Pooldesk")
    focus_is_on(page, "#status-pending")
    page.locator("#status-open").focus()
    press(page, "Enter")
    expect(page.locator("[data-row]")).to_have_count(49)
    page.locator("#page-next").focus()
    press(page, "Enter")
    expect(page.locator("[data-row]")).to_have_count(4)
    focus_is_on(page, "#queue-title")
    page.locator("#page-prev").focus()
    press(page, "Enter")
    expect(page.locator("[data-row]")).to_have_count(49)
    focus_is_on(page, "#queue-title")
    page.locator("input[name=tickets]").last.check()
    page.locator("button[name=to][value=pending]").focus()
    press(page, "Enter")
    expect(page.locator("#messages .notice")).to_be_in_viewport()


def test_focus_stays_where_a_property_was_changed(page: Page) -> None:
    page.goto("/tickets/1/")
    page.locator("#move-pending").focus()
    press(page, "Enter")
    expect(page.locator(".ticket-facts .badge")).to_have_text("Pending")
    focus_is_on(page, "#move-pending")
    page.locator("#assign-me").focus()
    press(page, "Enter")
    expect(page.locator(".prop-now .person")).to_contain_text("Bob Example (you)")
    focus_is_on(page, "#prop-assignee")
    menu = "#assign-menu > summary"
    page.locator(menu).focus()
    press(page, "Enter")
    expect(page.locator("#people-list .option")).to_have_count(2)
    press(page, "ArrowDown")
    focus_is_on(page, "#people-list .option >> nth=0")
    press(page, "Escape")
    focus_is_on(page, menu)
    press(page, "Enter", "ArrowDown", "ArrowDown", "Enter")  # oneself stands first
    expect(page.locator(".prop-now .person")).to_contain_text("Alice Example")
    focus_is_on(page, "#prop-assignee")
    page.locator("#quick-priority").focus()
    press(page, "ArrowUp")
    expect(page.locator(".ticket-facts .priority")).to_have_text("High")
    focus_is_on(page, "#quick-priority")


def test_a_priority_that_was_chosen_by_keys_is_set_at_once_by_enter_and_outlives_another_change(page: Page) -> None:
    page.goto("/tickets/1/")
    page.clock.install()  # nothing comes to rest by itself
    press(page, "p", "u", "Enter")
    expect(page.locator(".ticket-facts .priority")).to_have_text("Urgent")
    focus_is_on(page, "#quick-priority")
    press(page, "l")
    page.locator("#assign-me").click()
    expect(page.locator(".prop-now .person")).to_contain_text("Bob Example")
    expect(page.locator(".ticket-facts .priority")).to_have_text("Urgent")
    page.clock.run_for(2000)
    expect(page.locator(".ticket-facts .priority")).to_have_text("Low")


def test_focus_stays_where_it_is_when_a_page_learns_of_news(page: Page, world: World) -> None:
    bob = world.context("bob", "acme")
    page.evaluate("document.activeElement.blur()")
    told = page.locator("#updates")
    for number, text in (
        (1, "1 ticket in this list has been updated."),
        (2, "2 tickets in this list have been updated."),
    ):
        commenting.comment(bob, number, body="News")
        page.evaluate("document.querySelector('[data-updates]').dispatchEvent(new CustomEvent('pooldesk:updates'))")
        expect(told).to_contain_text(text)
        assert page.evaluate("document.activeElement === document.body")
    page.goto("/tickets/1/")
    page.locator("#id_body").fill("Half a sen")
    commenting.comment(bob, 1, body="It is solved.")
    page.evaluate("document.querySelector('[data-updates]').dispatchEvent(new CustomEvent('pooldesk:updates'))")
    expect(told).to_contain_text("It is solved.")
    focus_is_on(page, "#id_body")
    page.keyboard.type("tence")
    expect(page.locator("#id_body")).to_have_value("Half a sentence")
    press(page, "Control+Enter")
    expect(page.get_by_role("article", name="Comment by Bob Example").last).to_contain_text("Half a sentence")


def test_an_empty_comment_is_refused_and_focus_goes_to_the_reason(page: Page, witness: Witness) -> None:
    witness.accepts(422)
    page.goto("/tickets/1/")
    page.locator("#comment-send").focus()
    press(page, "Enter")
    focus_is_on(page, "[data-error-summary]")
    page.get_by_role("link", name="Comment: Write something first.").focus()
    press(page, "Enter")
    focus_is_on(page, "#id_body")


def test_the_switcher_is_worked_with_arrows_and_esc(world: World, person: NewPage) -> None:
    page = person("alice", "acme")
    page.goto("/tickets/")
    summary = "#switcher > summary"
    page.locator(summary).focus()
    press(page, "Enter")
    expect(page.locator("#switcher .option")).to_have_count(2)
    press(page, "ArrowDown", "Escape")
    focus_is_on(page, summary)
    press(page, "Enter", "ArrowDown", "ArrowDown", "Enter")
    expect(page.locator("#switcher .tenant-name")).to_have_text("Globex")
    expect(page.locator("[data-row]")).to_have_count(1)


def test_earlier_activity_appears_above_and_focus_stays_with_it(world: World, page: Page) -> None:
    bob = world.context("bob", "acme")
    for number in range(55):
        commenting.comment(bob, 1, body=f"Number {number}")
    page.goto("/tickets/1/")
    expect(page.get_by_text("Number 0", exact=True)).to_have_count(0)
    page.locator("#earlier-link").focus()
    press(page, "Enter")
    expect(page.get_by_text("Number 0", exact=True)).to_be_visible()
    expect(page.locator("#activity article")).to_have_count(55)
    focus_is_on(page, "#activity-title")
    page.set_viewport_size(NARROW)  # where the properties stand behind all of it
    page.get_by_role("link", name="Properties").press("Enter")
    focus_is_on(page, "#side-title")
    expect(page.locator("#prop-status")).to_be_in_viewport()


def test_long_menus_are_searched_by_typing(world: World, person: NewPage) -> None:
    for name in ("Ada", "Ben", "Cora", "Dan", "Eve", "Finn", "Gus"):
        world.add_user(name)
        world.join(name.lower(), "acme", Role.AGENT)
        tenant = tenant_lifecycle.create(name=f"Desk of {name}", owner=world.users["charlie"], by=SYSTEM)
        world.tenants[tenant.slug] = tenant
        world.join("alice", tenant.slug, Role.AGENT)
    page = person("alice", "acme")
    page.goto("/tickets/1/")
    page.locator("#assign-menu > summary").focus()
    press(page, "Enter")
    focus_is_on(page, "#assign-menu [data-filter]")
    page.keyboard.type("nobody")
    expect(page.locator("#people-list")).to_contain_text("No results for")
    press(page, *["Backspace"] * 6)
    expect(page.locator("#people-list .option:visible")).to_have_count(9)
    page.keyboard.type("cora")
    expect(page.locator("#people-list .option:visible")).to_have_count(1)
    press(page, "Enter")
    expect(page.locator(".prop-now .person")).to_contain_text("Cora Example")
    page.locator("#switcher > summary").focus()
    press(page, "Enter")
    focus_is_on(page, "#switcher [data-filter]")
    page.keyboard.type("of gus")
    expect(page.locator("#switcher .option:visible")).to_have_count(1)
    press(page, "Enter")
    expect(page.locator("#switcher .tenant-name")).to_have_text("Desk of Gus")


# --- that it can be seen ---


def test_every_tab_stop_shows_that_it_has_focus(page: Page) -> None:
    for path in ("/tickets/", "/tickets/1/", "/tickets/new/", "/account/", "/tenants/", "/tickets/dashboard/"):
        page.goto(path, wait_until="networkidle")  # what a page loads later may take the place of what has the focus
        stops = 0
        while stops < 60:
            press(page, "Tab")
            hidden = page.evaluate(f"() => document.activeElement === document.body ? null : ({FOCUS_SHOWS})()")
            if hidden is None:
                break
            stops += 1
            assert not hidden, path
        assert stops >= 8, path


# --- that nothing moves ---


def test_a_selection_moves_no_row_on_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    row = page.locator("[data-row]").first
    before = row.bounding_box()
    page.locator("input[name=tickets]").first.check()
    expect(page.locator("button[name=to]").first).to_be_in_viewport()
    assert row.bounding_box() == before


def test_the_filter_is_whole_in_the_window_also_on_a_phone(page: Page) -> None:
    for width, height in ((390, 844), (1280, 900)):
        page.set_viewport_size({"width": width, "height": height})
        page.goto("/tickets/")
        page.locator("#filter-menu > summary").click()
        expect(page.locator("#filter-menu > .menu-panel")).to_be_in_viewport(ratio=1)
        expect(page.locator("#filter-menu [type=submit]")).to_be_in_viewport(ratio=1)


def test_filter_stays_in_its_line_where_a_person_is_chosen(page: Page, world: World) -> None:
    for name in ("Bob Example", "Somebody With A Very Long Name"):
        page.goto(f"/tickets/?resolver={world.users['bob'].id}&name={name}")
        tops = [page.locator(place).bounding_box()["y"] for place in ("#filter-menu", ".who")]  # type: ignore[index]
        assert tops[0] == tops[1], name


def test_a_list_in_a_comment_has_full_bullets(page: Page, world: World) -> None:
    commenting.comment(world.context("bob", "acme"), 1, body="* one\n* two")
    page.goto("/tickets/1/")
    assert page.locator("#activity .prose ul").evaluate("list => getComputedStyle(list).listStyleType") == "disc"


BROKEN_WORDS = """() => {
  const found = [], texts = document.createTreeWalker(document.querySelector(".desk-trail"), NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) for (const word of texts.currentNode.data.matchAll(/\\w+/g)) {
    const range = document.createRange();
    range.setStart(texts.currentNode, word.index);
    range.setEnd(texts.currentNode, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) found.push(word[0]);
  }
  return found;
}"""


def test_the_columns_of_the_trail_break_no_word(person: NewPage, world: World) -> None:
    api_client(world, name="Notifications-of-the-warehouse")
    page = person("alice", "acme")
    for width in (768, 1024, 1280):
        page.set_viewport_size({"width": width, "height": 800})
        page.goto("/desk/audit/")
        assert page.evaluate(BROKEN_WORDS) == [], width


def test_the_bar_of_an_owner_fits_each_window_and_every_entry_of_it_is_in_sight_on_a_phone(person: NewPage) -> None:
    page = person("alice", "acme")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/acme/tickets/dashboard/")
    entries = page.locator(".topnav a").all()
    assert len(entries) == 7
    for entry in entries:
        expect(entry).to_be_in_viewport(ratio=1)
    for width in (390, 768, 1023, 1025, 1280, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_focus_stays_on_the_box_of_a_checklist_that_is_ticked(page: Page, world: World) -> None:
    bob = world.context("bob", "acme")
    changing.edit(bob, 1, version=changing.read(bob, 1).version, description="- [ ] Call Bob\n- [ ] Wait")
    commenting.comment(bob, 1, body="- [ ] in a comment")
    page.goto("/tickets/1/")
    for words in ("Wait", "in a comment"):
        box = page.get_by_role("checkbox", name=words)
        box.focus()
        page.keyboard.press("Space")
        expect(box).to_be_checked()
        expect(box).to_be_focused()


@pytest.mark.parametrize(("place", "menu"), [("/tickets/", "#people-menu"), ("/tickets/1/", "#assign-menu")])
def test_who_walks_into_the_list_of_people_before_it_is_loaded_finds_the_focus_on_its_first_person(
    page: Page, place: str, menu: str
) -> None:
    page.goto(place)
    with page.expect_response(lambda answer: "people" in answer.url or "assign" in answer.url):
        page.locator(f"{menu} summary").focus()
        press(page, "Enter", "ArrowDown")
    expect(page.locator(f"{menu} li:first-child [data-option]")).to_be_focused()
    expect(page.locator(menu)).to_have_attribute("open", "")


def test_where_the_browser_knows_no_panels_a_phone_shows_the_rows_and_their_links_lead_on(
    world: World, person: NewPage
) -> None:
    page = person("bob", viewport={"width": 390, "height": 844})
    gone = "for (const name of ['popover', 'showPopover', 'hidePopover']) delete HTMLElement.prototype[name];"
    page.add_init_script(gone)

    def without_panels(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace(":popover-open", ":unknown"))

    page.route("**/*.css", without_panels)
    page.route(
        "**/tickets/", lambda route: route.fulfill(body=route.fetch().text().replace(" popover ", " data-none "))
    )
    page.goto("/tickets/")
    expect(page.locator("#status-tabs a").last).to_be_visible()
    expect(page.locator(".chooser").first).to_be_hidden()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("link", name="Unassigned").click()
    expect(page.locator("#assignee-tabs [aria-current]")).to_have_text("Unassigned")
