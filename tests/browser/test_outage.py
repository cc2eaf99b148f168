"""The engine goes away and comes back while somebody works."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from playwright.sync_api import expect

from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit
from tests.desk.test_outage import engine_down
from tests.support.world import World

pytestmark = pytest.mark.browser

TEXT = "An hour of work"


def test_what_was_typed_outlives_an_outage(
    world: World, person: NewPage, witness: Witness, settings: LazySettings
) -> None:
    witness.accepts(503)
    world.tickets("acme", 1)
    page = person("bob")
    title = page.get_by_role("heading", level=1)
    page.goto("/tickets/1/")
    page.get_by_label("Comment", exact=True).fill(TEXT)
    other = page.context.new_page()

    with engine_down(settings):
        page.get_by_role("button", name="Comment", exact=True).click()
        expect(title).to_have_text("We cannot reach the database right now")
        expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
        assert not audit(page, "503")
        page.get_by_role("button", name="Try again").click()
        expect(title).to_have_text("We cannot reach the database right now")
        expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
        other.goto("/tickets/")
        expect(other.get_by_role("heading", level=1)).to_have_text("We cannot reach the database right now")

    page.get_by_role("button", name="Try again").click()
    expect(title).to_have_text("Ticket 1")
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_contain_text(TEXT)
    expect(page.get_by_label("Comment", exact=True)).to_have_value("")
    other.get_by_role("link", name="Try again").click()
    expect(other.locator("[data-row]")).to_have_count(1)
