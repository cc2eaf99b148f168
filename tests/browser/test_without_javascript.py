"""The same work where no script runs: forms are forms, menus open, and nothing is offered that cannot be done."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage, sign_in
from tests.support.operators import make_operator
from tests.support.world import World

pytestmark = pytest.mark.browser


@pytest.fixture
def page(world: World, browse: NewPage) -> Page:
    """Alice in Acme, with three open tickets there and one in Globex."""
    world.tickets("acme", 3)
    world.tickets("globex", 1)
    page = browse(java_script_enabled=False)
    sign_in(page, "alice@example.com")
    page.get_by_role("button", name="Acme").click()
    expect(page.locator("[data-row]")).to_have_count(3)
    return page


def test_tickets_are_worked_without_javascript(page: Page) -> None:
    rows = page.locator("[data-row]")
    for control in ("[data-select-all]", "[data-clear-selection]", "[data-opens=help]", ".list-hint"):
        expect(page.locator(control)).to_be_hidden()

    page.get_by_role("link", name="Ticket 2").click()
    page.get_by_label("Comment", exact=True).fill("Thank you, **solved**.")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_role("article", name="Comment by Alice Example").locator("strong")).to_have_text("solved")
    page.get_by_label("Priority").select_option("High")
    page.get_by_role("button", name="Set").click()
    expect(page.locator(".ticket-facts .priority")).to_have_text("High")
    page.get_by_role("button", name="Pending").click()
    expect(page.locator(".ticket-facts .badge")).to_have_text("Pending")

    # The menu leads to a page of its own, where she hands the ticket to Bob.
    page.get_by_text("Assign to someone else").click()
    page.get_by_role("link", name="Choose a person").click()
    page.get_by_role("button", name="Bob Example").click()
    expect(page.locator(".prop-now .person")).to_contain_text("Bob Example")

    page.get_by_role("link", name="Queue", exact=True).first.click()
    page.get_by_label("Select #1", exact=True).check()
    page.get_by_role("group", name="Selected tickets").get_by_role("button", name="Closed").click()
    expect(page.locator("#messages")).to_contain_text("1 ticket is now closed.")
    expect(rows).to_have_count(1)


def test_lists_and_desks_are_chosen_without_javascript(page: Page) -> None:
    page.locator("#filter-menu > summary").click()
    page.get_by_role("combobox", name="Status").select_option("Any")
    page.get_by_label("Opened from").fill("2020-01-01")
    page.get_by_label("Opened to").fill("2020-01-31")
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_role("heading", name="No tickets match")).to_be_visible()
    page.get_by_role("link", name="Remove the filter opened 1 to 31 Jan 2020").click()
    expect(page.locator("[data-row]")).to_have_count(3)
    page.get_by_text("Someone else").click()
    page.get_by_role("link", name="Choose a person").click()
    page.get_by_role("link", name="Bob Example").click()
    expect(page.locator("[data-row]")).to_have_count(0)
    page.goto("/account/security/")
    expect(page.get_by_text("Passkeys need JavaScript")).to_be_visible()
    page.locator("#switcher > summary").click()
    page.get_by_role("link", name="See all your desks").click()
    page.get_by_role("button", name="Globex").click()
    expect(page.locator("#switcher .tenant-name")).to_have_text("Globex")


def test_on_a_phone_tickets_begin_near_the_top_and_the_list_is_chosen_in_a_panel(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    for language in ("en", "de"):
        page.set_extra_http_headers({"Accept-Language": language})
        page.goto("/acme/tickets/")
        entries = page.locator(".topnav a").evaluate_all("all => all.map((a) => a.getBoundingClientRect().top)")
        assert len(set(entries)) == 1, f"the navigation takes more than one row: {entries}"
        assert page.locator("[data-row]").first.bounding_box()["y"] < 260  # type: ignore[index]
    page.set_extra_http_headers({"Accept-Language": "en"})
    page.goto("/acme/tickets/")
    page.get_by_role("button", name="Status: Open").click()
    page.get_by_role("link", name="Closed", exact=True).click()
    expect(page.get_by_role("button", name="Status: Closed")).to_be_visible()
    expect(page.get_by_role("link", name="Pending")).to_be_hidden()


def test_the_admins_sidebar_is_open_before_its_script_runs_so_that_the_page_does_not_move(
    world: World, browse: NewPage
) -> None:
    world.users["root"] = make_operator()
    page = browse(java_script_enabled=False)
    sign_in(page, "root@example.com")
    page.goto("/admin/tenants/tenant/")
    expect(page.get_by_role("navigation", name="Sidebar")).to_be_in_viewport()
