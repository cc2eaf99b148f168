"""Groups in a browser: their settings, the form of one, absence, and where tickets, queue and dashboard show them."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage
from tests.browser.page_audit import audit_all
from tests.support import defined
from tests.support.folding import Follower
from tests.support.world import World
from tickets.desk import creating
from tickets.desk_setup.setup import Assigning

pytestmark = pytest.mark.browser

SETTINGS = "/acme/desk/settings/groups/"


def shoot(page: Page, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        for wide, scheme in ((1280, "light"), (390, "dark")):
            page.set_viewport_size({"width": wide, "height": 900})
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.screenshot(path=f"{folder}/{name}-{wide}-{scheme}.png", full_page=True)


@pytest.fixture
def page(world: World, person: NewPage) -> Page:
    """Alice's browser, in a desk with three groups, one with a long name."""
    defined.add_group(world, "Billing", Assigning.TURN, members=("alice", "bob"), is_default=True)
    defined.add_group(world, "W" * 40, Assigning.LOAD, members=("bob",))
    defined.add_group(world, "Nobody's", Assigning.HAND)
    tenant = world.context("bob", "acme")
    for group in ("group_1", "group_2"):
        creating.create(tenant, title="The invoice is wrong", group=group)
    Follower().fold()
    return person("alice", "acme")


def test_pages_of_groups_are_fit_for_everybody(world: World, page: Page) -> None:
    found: list[str] = []
    addresses = {
        "settings": SETTINGS,
        "form": f"{SETTINGS}group_1/",
        "agent": f"{SETTINGS}people/{world.users['bob'].id}/",
        "away": "/acme/tickets/away/",
        "queue": "/acme/tickets/",
        "ticket": "/acme/tickets/2/",
    }
    for name, address in addresses.items():
        page.goto(address)
        found += audit_all(page, name, within="#main")
        shoot(page, name)
    page.goto("/acme/tickets/dashboard/")
    shoot(page, "dashboard")
    assert not found, "\n".join(one[:160] for one in found)


def test_a_group_is_made_and_taken_by_keys_alone(page: Page) -> None:
    page.goto(f"{SETTINGS}new/")
    page.get_by_label("Name", exact=True).fill("Second level")
    page.get_by_role("checkbox", name="Bob Example").press("Space")
    page.get_by_label("Name", exact=True).press("Control+Enter")
    expect(page.get_by_role("link", name="Second level", exact=True)).to_be_visible()
    page.goto("/acme/tickets/2/")
    page.locator("#quick-group").select_option(label="Second level")
    expect(page.locator(".prop-now").filter(has_text="Second level")).to_be_visible()
    expect(page.locator(".prop-now").filter(has_text="Bob Example")).to_be_visible()
