"""The pages on which tickets are merged, marked as spam and given tags: by keys, in light and dark, wide and narrow."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit_all
from tests.support.folding import Follower
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.requesters import requesters

pytestmark = pytest.mark.browser


@pytest.fixture
def page(person: NewPage) -> Page:
    return person("alice", "acme")


@pytest.fixture(autouse=True)
def three(world: World) -> None:
    """Three tickets of one requester, whose titles are long."""
    bob = world.context("bob", "acme")
    ada = requesters.ensure(bob, f"{'ada' * 15}@example.org", name="Augusta Ada King, Countess of Lovelace")
    for n in range(1, 4):
        creating.create(
            bob, title=f"The engine {'stops-and-' * 9}{n}", description=f"Word {n}.", requester=ada, tags=["engine"]
        )
        commenting.comment(bob, n, body=f"Answer {n}.")


def test_two_tickets_are_merged_by_keys(page: Page, witness: Witness) -> None:
    witness.accepts(422)
    page.goto("/acme/tickets/3/")
    page.keyboard.press("m")
    expect(page.get_by_role("heading", name="Merge ticket #3")).to_be_visible()
    found = audit_all(page, "choosing a ticket", within="#main")
    page.get_by_label("Merge into ticket number").fill("99")
    page.keyboard.press("Enter")
    expect(page.locator("[data-error-summary]")).to_be_focused()
    page.get_by_label("Merge into ticket number").fill("1")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Merge #3 into #1")).to_be_focused()
    found += audit_all(page, "two tickets", within="#main")
    page.keyboard.press("Enter")
    expect(page.get_by_text("From #3").first).to_be_visible()
    found += audit_all(page, "a ticket with a merged one", within="#main")
    page.get_by_role("button", name="Take out again").click()
    expect(page).to_have_url(re.compile("/tickets/3/"))
    assert not found


def test_a_ticket_is_marked_as_spam_by_one_key_and_brought_back_by_another(page: Page) -> None:
    page.goto("/acme/tickets/1/")
    page.keyboard.press("!")
    expect(page.get_by_role("heading", name="More of the same sender")).to_be_visible()
    found = audit_all(page, "more of the same sender", within="#main")
    page.goto("/acme/tickets/spam/")
    found += audit_all(page, "spam", within="#main")
    page.goto("/acme/tickets/1/")
    found += audit_all(page, "a ticket that is spam", within="#main")
    page.get_by_role("button", name="Not spam").click()
    expect(page.get_by_text("is back in the lists")).to_be_visible()
    page.keyboard.press("!")
    expect(page.get_by_role("heading", name="More of the same sender")).to_be_visible()
    page.keyboard.press("z")
    expect(page.get_by_text("is no spam")).to_be_visible()
    assert not found


def test_a_tag_gets_a_colour_and_is_suggested(page: Page) -> None:
    Follower().fold()
    page.goto("/acme/tickets/tags/")
    found = audit_all(page, "tags", within="#main")
    page.get_by_role("link", name="Change engine").click()
    found += audit_all(page, "one tag", within="#main")
    page.get_by_label("Pink").check()
    page.get_by_role("button", name="Save the colour").click()
    expect(page.locator(".tag.hue-3")).to_have_text("engine")
    found += audit_all(page, "tags with a colour", within="#main")
    page.goto("/acme/tickets/new/")
    page.get_by_label("Tags").fill("vpn, en")
    expect(page.locator("#tags-options option")).to_have_attribute("value", "vpn, engine")
    assert not found
