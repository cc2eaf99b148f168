"""Names behind an "@" in a comment, chosen by keys or a pointer."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import NewPage
from tests.browser.page_audit import NARROW
from tests.browser.test_nothing_is_lost import desks_with_tickets
from tests.support import embedded
from tests.support.world import World

pytestmark = pytest.mark.browser


@pytest.fixture
def world(engine: None) -> World:
    return embedded.prepared("desks-in-a-browser", desks_with_tickets)


@pytest.fixture
def page(world: World, person: NewPage) -> Page:
    page = person("bob")
    page.goto("/tickets/1/")
    return page


def text(page: Page) -> Locator:
    return page.locator("#reply textarea")


def options(page: Page) -> Locator:
    return page.locator("#completions [role=option]")


def test_a_name_is_completed_by_keys_alone(page: Page) -> None:
    text(page).focus()
    page.keyboard.type("Ask @")
    expect(options(page)).to_have_count(2)
    expect(options(page).nth(0)).to_have_attribute("aria-selected", "true")
    expect(page.locator("#announce")).to_contain_text("2 names")
    page.keyboard.press("ArrowDown")
    expect(text(page)).to_have_attribute("aria-activedescendant", "completions-1")
    page.keyboard.press("Enter")
    expect(text(page)).to_have_value("Ask @Vera Example ")
    expect(page.locator("#completions")).to_be_hidden()
    page.keyboard.type("and @al")
    expect(options(page)).to_have_count(1)
    page.keyboard.press("Tab")
    page.keyboard.type("too")
    expect(text(page)).to_have_value("Ask @Vera Example and @Alice Example too")
    expect(text(page)).to_be_focused()


def test_escape_closes_the_list_and_the_text_keeps_its_focus(page: Page) -> None:
    text(page).focus()
    page.keyboard.type("@Ve")
    expect(options(page)).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("#completions")).to_be_hidden()
    expect(text(page)).to_be_focused()
    page.keyboard.press("Enter")
    expect(text(page)).to_have_value("@Ve\n")


def test_no_list_opens_where_nobody_is_named(page: Page) -> None:
    text(page).focus()
    with page.expect_response("**/people/names/"):
        page.keyboard.type("@")
    for typed in ("bob@example.com", "me@Vera", "@Nobody", "a @ b"):
        text(page).fill("")
        page.keyboard.type(typed)
        expect(text(page)).to_have_value(typed)
        expect(page.locator("#completions")).to_be_hidden()


def test_a_name_is_chosen_by_a_pointer_on_a_phone_and_reaches_the_comment(page: Page) -> None:
    page.set_viewport_size(NARROW)
    text(page).focus()
    page.keyboard.type("@")
    options(page).nth(0).click()
    expect(text(page)).to_have_value("@Alice Example ")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#activity")).to_contain_text("@Alice Example")


def test_a_ticket_is_followed_and_muted_by_keys_and_the_focus_stays_near(page: Page) -> None:
    page.locator("#follow").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#unfollow")).to_be_visible()
    page.locator("#mute").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("You muted this ticket.")).to_be_visible()
    expect(page.locator("#prop-mail:focus, #follow:focus, #mute:focus")).to_have_count(1)
