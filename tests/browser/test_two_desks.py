"""Two tabs of one browser, in two desks: each goes on working in its own."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage, is_at
from tests.browser.test_nothing_is_lost import tab_beside
from tests.support.world import World
from tickets.desk import creating

pytestmark = pytest.mark.browser


def test_two_tabs_on_two_desks_work_side_by_side(world: World, person: NewPage) -> None:
    creating.create(world.context("alice", "acme"), title="Acme's printer", description="")
    creating.create(world.context("charlie", "globex"), title="Globex's printer", description="")
    tab = person("alice", "acme")
    tab.goto("/acme/tickets/")
    tabs = {"Acme": tab, "Globex": tab_beside(tab, "/globex/tickets/")}
    for name, page in tabs.items():
        page.reload()
        is_of(page, name)
        page.get_by_role("link", name=f"{name}'s printer").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"{name}'s printer")
    for name, page in tabs.items():
        page.get_by_label("Comment", exact=True).fill(f"Told to {name}")
        page.get_by_role("button", name="Comment", exact=True).click()
        expect(page.get_by_role("article", name="Comment by Alice Example")).to_contain_text(f"Told to {name}")
    for name, page in tabs.items():
        page.reload()
        is_of(page, name)
        is_at(page, f"/{name.lower()}/tickets/1/")
        expect(page.get_by_role("article", name="Comment by Alice Example")).to_have_count(1)
        page.goto(f"/{name.lower()}/tickets/")
        is_of(page, name)
        expect(page.locator("[data-row]")).to_have_count(1)


def is_of(page: Page, name: str) -> None:
    expect(page.locator("#switcher .tenant-name")).to_have_text(name)
