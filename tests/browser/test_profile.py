"""The zone of the browser finds its way into the profile, and into the times of pages."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage
from tests.support.world import World

pytestmark = pytest.mark.browser


def test_a_browser_tells_its_zone_once_and_pages_show_times_in_it(world: World, person: NewPage) -> None:
    world.tickets("acme", 1)
    page = person("bob", "acme", timezone_id="Asia/Tokyo")
    with page.expect_response("**/account/profile/zone/") as told:
        page.goto("/acme/tickets/1/")
    assert told.value.status == 204
    page.reload()
    expect(page.locator("#find-zone")).to_have_count(0)
    assert "Asia/Tokyo (UTC+9)" in (page.locator(".ticket-facts time").get_attribute("title") or "")
    page.goto("/account/profile/")
    expect(page.get_by_label("Time zone")).to_have_value("Asia/Tokyo")
    expect(page).to_have_title("Profile · Pooldesk")
    page.get_by_label("Dates and times").select_option("us")
    page.get_by_role("button", name="Save your profile").click()
    expect(page.get_by_role("button", name="Save choices")).to_be_visible()  # loaded after the page
    expect(page.get_by_text("Your profile is saved.")).to_be_visible()
    expect(page.get_by_text("It is now")).to_contain_text("m in Asia/Tokyo.")
