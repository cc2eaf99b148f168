"""What somebody typed or chose is never lost and never lands in the wrong place: two tabs, two people, slow links."""

from __future__ import annotations

import re

import pytest
from django.conf import settings
from playwright.sync_api import Page, Route, expect

from tenants.audit_trail.recording import SYSTEM
from tenants.lifecycle import desk_settings
from tests.browser.conftest import NewPage, Witness, is_at
from tests.support import embedded
from tests.support.waiting import wait_until
from tests.support.world import PASSWORD, World
from tickets.desk import changing, commenting
from tickets.ticket.fields import Priority, Status

pytestmark = pytest.mark.browser

TEXT = "An hour of work"


@pytest.fixture
def world(engine: None) -> World:
    """Three tickets in Acme and one in Globex."""
    return embedded.prepared("desks-in-a-browser", desks_with_tickets)


def desks_with_tickets() -> World:
    world = World.create()
    world.tickets("acme", 3)
    world.tickets("globex", 1)
    return world


def type_comment(page: Page, number: int = 1) -> None:
    page.goto(f"/tickets/{number}/")
    page.get_by_label("Comment", exact=True).fill(TEXT)


def send_comment(page: Page) -> None:
    page.get_by_role("button", name="Comment", exact=True).click()


def comments(page: Page) -> list[str]:
    page.goto("/tickets/1/")
    return page.locator("#activity article .prose").all_inner_texts()


def tab_beside(page: Page, path: str) -> Page:
    """Another tab of the same browser."""
    tab = page.context.new_page()
    tab.goto(path)
    return tab


def switch_to(tab: Page, name: str) -> None:
    tab.goto("/tenants/")
    tab.get_by_role("main").get_by_role("button", name=name).click()
    expect(tab.locator("#switcher .tenant-name")).to_have_text(name)


def give_address_to_globex(world: World, *, instead: str) -> None:
    """Acme gets another name in addresses, and Globex the one that Acme's open pages have."""
    acme, globex = world.context("alice", "acme"), world.context("charlie", "globex")
    for slug in (f"{instead}-first", instead):  # the name before the last one stays a desk's own
        desk_settings.rename(world.context("alice", "acme"), name=acme.name, slug=slug, by=SYSTEM)
    desk_settings.rename(globex, name=globex.name, slug=acme.slug, by=SYSTEM)


def hold(page: Page, url: str) -> list[Route]:
    """From here on, requests to this address wait for `let_go`: a network as slow as the test wants it."""
    held: list[Route] = []
    page.route(url, lambda route: held.append(route))
    return held


def let_go(page: Page, held: list[Route]) -> None:
    """Send the one request that was held, and wait for its answer to have been shown or not."""
    wait_until(lambda: held, working=lambda: page.wait_for_timeout(20))
    (route,) = held
    with page.expect_response(route.request.url):
        route.continue_()
    page.unroute_all()
    page.wait_for_timeout(100)


def lose_the_answer(route: Route) -> None:
    route.fetch(max_redirects=0)
    route.abort()


# --- two tabs ---


def test_a_comment_from_a_page_of_another_tenant_waits_for_a_decision(
    world: World, person: NewPage, witness: Witness
) -> None:
    witness.accepts(409)
    page = person("alice", "acme")
    type_comment(page)
    give_address_to_globex(world, instead="industries")
    send_comment(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("That page belongs to Acme")
    expect(page.get_by_role("main")).to_contain_text("It was sent to Globex")
    expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
    page.get_by_role("button", name="Switch to Acme and continue").click()
    expect(page.get_by_role("main")).to_contain_text("it will go to Acme")
    expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
    page.get_by_role("button", name="Send it now").click()
    expect(page.get_by_role("article", name="Comment by Alice Example")).to_contain_text(TEXT)
    expect(page.locator("#switcher .tenant-name")).to_have_text("Acme")
    expect(page.get_by_label("Comment", exact=True)).to_have_value("")
    assert not changing.read(world.context("alice", "globex"), 1).comment_count

    type_comment(page)
    give_address_to_globex(world, instead="worldwide")
    send_comment(page)
    page.get_by_role("link", name="Discard and stay in Globex").click()
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("#switcher .tenant-name")).to_have_text("Globex")


def test_a_draft_belongs_to_its_tenant(world: World, person: NewPage) -> None:
    page = person("alice", "acme")
    type_comment(page)
    switch_to(page, "Globex")
    page.goto("/tickets/1/")
    expect(page.get_by_label("Comment", exact=True)).to_have_value("")
    switch_to(page, "Acme")
    page.goto("/tickets/1/")
    expect(page.get_by_label("Comment", exact=True)).to_have_value(TEXT)


# --- the session ends ---


@pytest.mark.parametrize("how", ["signed out in another tab", "the cookie is gone"])
def test_a_comment_survives_the_end_of_the_session(world: World, person: NewPage, witness: Witness, how: str) -> None:
    witness.accepts(401, 403)  # 403: what the page sends by itself, once it is signed out
    page = person("alice", "acme")
    type_comment(page)
    page.get_by_role("checkbox", name="Internal note").check()
    if how == "the cookie is gone":
        page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    else:
        tab = tab_beside(page, "/tickets/")
        tab.locator("#user-menu > summary").click()
        tab.get_by_role("button", name="Sign out").click()
        expect(tab.locator("#messages")).to_contain_text("You are signed out.")
    page.get_by_role("button", name="Add note", exact=True).click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
    page.get_by_label("E-mail").fill("alice@example.com")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("main")).to_contain_text("it will go to Acme")
    expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
    page.get_by_role("button", name="Send it now").click()
    expect(page.get_by_role("article", name="Internal note by Alice Example")).to_contain_text(TEXT)


def test_a_page_from_before_the_last_sign_in_sends_its_form_again(
    world: World, person: NewPage, witness: Witness
) -> None:
    witness.accepts(403)
    page = person("bob")
    type_comment(page)
    page.context.clear_cookies(name=settings.SESSION_COOKIE_NAME)
    tab = tab_beside(page, "/login/")
    tab.get_by_label("E-mail").fill("bob@example.com")
    tab.get_by_label("Password", exact=True).fill(PASSWORD)
    tab.get_by_role("button", name="Sign in").click()
    expect(tab.locator("[data-row]")).to_have_count(3)
    send_comment(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("This page was open for too long")
    expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
    page.get_by_role("button", name="Send it again").click()
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_contain_text(TEXT)


# --- two people ---


def test_two_versions_are_combined_by_hand(world: World, person: NewPage, witness: Witness) -> None:
    witness.accepts(409)
    page = person("alice", "acme")
    page.goto("/tickets/1/edit/")
    form = {"description": "It *broke*.", "priority": Priority.NORMAL, "version": 1}
    changing.edit(world.context("bob", "acme"), 1, title="Bob's title", tags=["bob"], **form)
    page.get_by_label("Title").fill("Alice's title")
    page.get_by_role("button", name="Save changes").click()
    page.get_by_text("Combine both versions by hand").click()
    page.get_by_label("Title").fill("Bob's and Alice's title")
    page.get_by_role("button", name="Save mine").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Bob's and Alice's title")
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("Title")).to_have_value("Bob's and Alice's title")
    expect(page.get_by_text("Your unsaved changes were restored.")).to_be_hidden()


def test_a_quick_change_on_an_old_page_shows_both_versions(world: World, person: NewPage, witness: Witness) -> None:
    witness.accepts(409)
    page = person("alice", "acme")
    page.goto("/tickets/1/")
    changing.change_status(world.context("bob", "acme"), 1, to=Status.PENDING, version=1)
    page.get_by_role("button", name="Closed").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Bob Example changed this ticket")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_role("row", name="Status")).to_have_text(re.compile("Pending.*Closed", re.DOTALL))
    expect(page.locator("#messages")).to_be_attached()
    page.get_by_role("link", name="Discard mine").click()
    expect(page.locator(".ticket-facts .badge")).to_have_text("Pending")


# --- drafts ---


def test_a_draft_survives_a_reload_until_it_is_sent_or_discarded(world: World, person: NewPage) -> None:
    page = person("bob")
    box = page.get_by_label("Comment", exact=True)
    type_comment(page)
    page.get_by_role("checkbox", name="Internal note").check()
    page.reload()
    expect(box).to_have_value(TEXT)
    expect(page.get_by_role("checkbox", name="Internal note")).to_be_checked()
    expect(page.get_by_text("Your unsent text was restored.")).to_be_visible()
    page.get_by_role("button", name="Discard it").click()
    expect(box).to_have_value("")
    page.reload()
    expect(box).to_have_value("")
    type_comment(page)
    send_comment(page)
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_contain_text(TEXT)
    page.reload()
    expect(box).to_have_value("")


def test_the_draft_of_a_new_ticket_is_gone_once_it_is_open(world: World, person: NewPage) -> None:
    page = person("bob")
    page.goto("/tickets/new/")
    page.get_by_label("Title").fill("Half a ticket")
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="New ticket").click()
    expect(page.get_by_label("Title")).to_have_value("Half a ticket")
    page.get_by_role("button", name="Create ticket").click()
    expect(page.locator("#messages")).to_contain_text("Ticket #4 created.")
    page.get_by_role("link", name="New ticket").click()
    expect(page.get_by_label("Title")).to_have_value("")


def test_an_edit_that_was_left_is_there_again(world: World, person: NewPage) -> None:
    page = person("bob")
    page.goto("/tickets/1/edit/")
    page.get_by_label("Title").fill("A better title")
    page.get_by_label("Priority").select_option("Urgent")
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_label("Title")).to_have_value("A better title")
    expect(page.get_by_label("Priority")).to_have_value("urgent")
    page.get_by_role("button", name="Discard them").click()
    expect(page.get_by_label("Title")).to_have_value("Ticket 1")
    page.reload()
    expect(page.get_by_label("Title")).to_have_value("Ticket 1")
    page.get_by_label("Title").fill("A better title")
    page.get_by_role("button", name="Save changes").click()
    page.get_by_role("link", name="Edit").click()
    expect(page.get_by_text("Your unsaved changes were restored.")).to_be_hidden()


# --- too long ---


def test_a_paste_that_is_too_long_is_let_in_counted_and_not_sent(world: World, person: NewPage) -> None:
    page = person("bob")
    page.goto("/tickets/1/")
    box = page.get_by_label("Comment", exact=True)
    box.focus()
    page.keyboard.insert_text("x" * 40_003)
    assert len(box.input_value()) == 40_003
    expect(page.get_by_text("40,003 of 20,000 characters. Shorten this text by 20,003 to send it.")).to_be_visible()
    send_comment(page)
    expect(box).to_be_focused()
    assert len(box.input_value()) == 40_003
    box.fill("x" * 20_000)
    expect(page.get_by_text("20,000 of 20,000 characters")).to_be_visible()
    send_comment(page)
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_have_count(1)
    assert changing.read(world.context("bob", "acme"), 1).comment_count == 1


def test_a_title_that_is_too_long_is_refused_with_all_of_it_still_there(world: World, person: NewPage) -> None:
    page = person("bob")
    page.goto("/tickets/new/")
    title = page.get_by_label("Title")
    title.focus()
    page.keyboard.insert_text("t" * 300)
    page.get_by_role("button", name="Create ticket").click()
    expect(page.get_by_text("300 of 200 characters. Shorten this text by 100 to send it.")).to_be_visible()
    assert len(title.input_value()) == 300


# --- slips ---


def test_many_tickets_are_closed_after_a_question_and_come_back_by_undo(
    world: World, person: NewPage, witness: Witness
) -> None:
    witness.accepts(428)
    world.tickets("acme", 4)
    page = person("bob")
    page.goto("/tickets/")
    chosen, boxes = page.locator("[data-count]"), page.locator("input[name=tickets]")
    boxes.nth(0).click()
    boxes.nth(4).click(modifiers=["Shift"])
    expect(chosen).to_have_text("5 selected")
    page.get_by_label("Select all on this page").check()
    boxes.nth(1).uncheck()
    expect(chosen).to_have_text("6 selected")
    page.get_by_role("group", name="Selected tickets").get_by_role("button", name="Closed").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Close 6 tickets?")
    page.get_by_role("button", name="Close 6 tickets").click()
    expect(page.locator("#messages")).to_contain_text("6 tickets are now closed.")
    expect(page.locator("[data-row]")).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#messages")).to_contain_text("6 tickets are as before.")
    expect(page.locator("[data-row]")).to_have_count(7)
    stored = changing.read(world.context("bob", "acme"), 1)
    assert (stored.status, stored.resolved_at) == ("open", None)


def test_no_status_button_moves_under_the_pointer(world: World, person: NewPage) -> None:
    page = person("bob")
    page.goto("/tickets/1/")
    buttons = page.locator(".status-choice button")
    before = [button.bounding_box() for button in buttons.all()]
    page.locator("#move-resolved").dblclick()
    expect(page.locator(".ticket-facts .badge")).to_have_text("Resolved")
    page.wait_for_timeout(300)
    expect(page.locator(".ticket-facts .badge")).to_have_text("Resolved")
    assert [button.bounding_box() for button in buttons.all()] == before


# --- quick hands and slow networks ---


def test_a_second_click_sends_nothing(world: World, person: NewPage) -> None:
    page = person("bob")
    type_comment(page)
    page.get_by_role("button", name="Comment", exact=True).dblclick()
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_have_count(1)
    assert comments(page) == [TEXT]
    page.goto("/tickets/new/")
    page.get_by_label("Title").fill("Once")
    held = hold(page, "**/tickets/new/")
    # The second comes while the first is under way, which is when Playwright itself would wait.
    twice = "(button) => { button.click(); setTimeout(() => button.click(), 100); }"
    page.get_by_role("button", name="Create ticket").evaluate(twice)
    page.wait_for_timeout(300)
    let_go(page, held)
    expect(page.get_by_role("heading", level=1)).to_have_text("Once")
    page.goto("/tickets/")
    expect(page.locator("[data-row]")).to_have_count(4)


def test_the_filter_that_was_clicked_last_is_the_one_that_is_shown(world: World, person: NewPage) -> None:
    page = person("bob")
    page.goto("/tickets/")
    held = hold(page, "**/tickets/?status=pending")
    page.get_by_role("link", name="Pending").click()
    page.get_by_role("link", name="Closed").click()
    expect(page.get_by_role("heading", name="No closed tickets")).to_be_visible()
    let_go(page, held)
    expect(page.get_by_role("heading", name="No closed tickets")).to_be_visible()
    is_at(page, "/tickets/?status=closed")


def test_a_change_made_while_a_comment_is_under_way_takes_nothing_from_it(world: World, person: NewPage) -> None:
    page = person("bob")
    type_comment(page)
    held = hold(page, "**/comment/")
    send_comment(page)
    page.get_by_role("button", name="Pending").click()
    expect(page.locator(".ticket-facts .badge")).to_have_text("Pending")
    let_go(page, held)
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_contain_text(TEXT)
    expect(page.get_by_label("Comment", exact=True)).to_have_value("")
    assert comments(page) == [TEXT]
    expect(page.get_by_label("Comment", exact=True)).to_have_value("")


def test_a_refusal_is_shown_even_if_the_list_was_filtered_meanwhile(
    world: World, person: NewPage, witness: Witness
) -> None:
    witness.accepts(409)
    page = person("bob")
    page.goto("/tickets/")
    changing.change_status(world.context("alice", "acme"), 2, to=Status.RESOLVED, version=1)
    held = hold(page, "**/tickets/bulk/")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("group", name="Selected tickets").get_by_role("button", name="Pending").click()
    page.get_by_role("link", name="Closed").click()
    expect(page.get_by_role("heading", name="No closed tickets")).to_be_visible()
    let_go(page, held)
    expect(page.get_by_role("heading", name="Nothing was changed")).to_be_focused()
    stuck = page.get_by_role("region", name="Tickets in the way").get_by_role("listitem")
    expect(stuck).to_have_text([re.compile("#2 Ticket 2.*is resolved now, not open", re.DOTALL)])
    page.get_by_role("button", name="Move the other 2 to Pending").click()
    expect(page.locator("#messages")).to_contain_text("2 tickets are now pending.")


@pytest.mark.parametrize("then", ["sent again", "reloaded"])
def test_a_comment_whose_answer_was_lost_is_neither_lost_nor_doubled(
    world: World, person: NewPage, witness: Witness, then: str
) -> None:
    """The server stores it, and the answer never comes."""
    witness.accepts_console("ERR_", "htmx:sendError", "htmx:afterRequest")
    page = person("bob")
    type_comment(page)
    page.route("**/comment/", lose_the_answer)
    send_comment(page)
    expect(page.get_by_role("alert")).to_contain_text("What you typed is still here")
    page.unroute_all()
    commenting.comment(world.context("alice", "acme"), 1, body="Another one.")
    if then == "reloaded":
        page.reload()
    else:
        send_comment(page)
    expect(page.get_by_label("Comment", exact=True)).to_have_value("")
    assert comments(page) == [TEXT, "Another one."]


def test_a_lost_connection_keeps_the_text_and_says_so(world: World, person: NewPage, witness: Witness) -> None:
    witness.accepts_console("ERR_INTERNET_DISCONNECTED", "htmx:sendError", "htmx:afterRequest")
    page = person("bob")
    type_comment(page)
    page.context.set_offline(True)
    send_comment(page)
    expect(page.get_by_role("alert")).to_contain_text("The server cannot be reached. What you typed is still here")
    expect(page.get_by_label("Comment", exact=True)).to_have_value(TEXT)
    page.context.set_offline(False)
    send_comment(page)
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_contain_text(TEXT)
    expect(page.get_by_role("alert")).to_have_count(0)
