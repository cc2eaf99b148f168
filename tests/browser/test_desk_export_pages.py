"""The page of a desk's export in each of its states, and the desk's navigation, in light and dark, wide and narrow."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage
from tests.browser.page_audit import audit_all
from tests.support.world import PASSWORD, World
from tickets.desk_export import export_job

pytestmark = pytest.mark.browser

PAGE = "/acme/desk/settings/export/"


def test_an_owner_watches_an_export_and_downloads_it(world: World, person: NewPage) -> None:
    world.tickets("acme", 2)
    page = person("alice", "acme")
    page.goto(PAGE)
    expect(page.get_by_role("navigation", name="Data").get_by_role("link", name="Export")).to_have_attribute(
        "aria-current", "page"
    )
    found = audit_all(page, "no export", within="#main")
    page.get_by_role("button", name="Export this desk").click()
    page.get_by_role("textbox", name="Password").fill(PASSWORD)  # this session has not been confirmed of late
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Continue").click()
    expect(page).to_have_url(re.compile(f"{PAGE}$"))
    page.get_by_role("button", name="Export this desk").click()
    expect(page.get_by_role("heading", name="The export is being made")).to_be_visible()
    found += audit_all(page, "an export that is being made", within="#main")
    assert export_job.follower(parts_a_second=1000.0).turn() == 1
    expect(page.get_by_role("heading", name="Your file is ready")).to_be_visible()  # it looks again by itself
    found += audit_all(page, "a file that is ready", within="#main")
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download").click()
    assert downloading.value.suggested_filename.startswith("acme-")
    assert not found
