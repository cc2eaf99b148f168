"""The main pages in languages whose texts are 40% longer, written from the left or from the right, wide and narrow."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage
from tests.browser.page_audit import layout, show, ways_of
from tests.support import pseudo_language
from tests.support.world import World
from tickets.desk import changing, commenting

pytestmark = pytest.mark.browser

PAGES = (
    "tickets/",
    "tickets/1/",
    "tickets/new/",
    "tickets/dashboard/",
    "tickets/reports/",
    "tickets/reports/letter/",
    "search/?q=ticket",
    "desk/members/",
    "desk/settings/",
    "desk/settings/rules/new/",
)


@pytest.mark.parametrize(
    ("language", "direction"),
    [(pseudo_language.LEFT_TO_RIGHT, "ltr"), (pseudo_language.RIGHT_TO_LEFT, "rtl")],
)
def test_pages_fit_into_the_window(world: World, person: NewPage, language: str, direction: str) -> None:
    world.tickets("acme", 2)
    alice = world.context("alice", "acme")
    changing.assign(alice, 1, to=alice.user_id, version=1)
    commenting.comment(alice, 1, body="It stands still.", internal=True)
    page, found = person("alice", "acme"), []
    page.set_extra_http_headers({"Accept-Language": language})
    with pseudo_language.spoken(language):
        for path in PAGES:
            page.goto(f"/acme/{path}")
            expect(page.locator("html")).to_have_attribute("dir", direction)
            for scheme, size in ways_of(page):
                show(page, scheme, size)
                found += layout(page, f"{path}, {size['width']}")
    assert not found, "\n".join(found)
