"""The API's page in a browser, under the strict policy: it is read, and its forms call the API."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tenants.api_keys.scopes import Scope
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import NARROW, WAYS, audit, layout, show
from tests.support.api_client import api_client
from tests.support.world import World

pytestmark = pytest.mark.browser

PAGE = "/api/v1/docs/"


def test_the_page_is_readable_in_both_colours_and_sizes(world: World, person: NewPage) -> None:
    page = person("alice", "acme")
    page.goto(PAGE)
    found = []
    for scheme, size in WAYS:  # what is shown folded is read unfolded too, so that only its layout is looked at here
        show(page, scheme, size)
        found += layout(page, f"folded, {scheme}, {size['width']}")
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    assert found + audit(page, "unfolded", within="#main") == []


def test_the_page_is_folded_and_a_link_unfolds_what_it_leads_to(person: NewPage) -> None:
    page = person("alice", "acme", viewport=NARROW)
    page.goto(PAGE)
    assert page.evaluate("document.documentElement.scrollHeight") < 18 * NARROW["height"]
    shape, route = (page.get_by_role("region", name=name, exact=True) for name in ("Problem", "Read a ticket"))
    expect(shape.get_by_text("stable, for programs")).to_be_hidden()

    page.get_by_role("link", name="Problem").click()
    expect(shape.get_by_text("stable, for programs")).to_be_visible()

    page.goto(PAGE + "#read_ticket")
    expect(route.get_by_text("Needs the scope")).to_be_visible()


def test_a_form_calls_the_api_with_the_key_that_was_typed(world: World, person: NewPage, witness: Witness) -> None:
    world.tickets("acme", 1)
    key = api_client(world, Scope.TICKETS_READ).key
    witness.accepts(401)
    page = person("alice", "acme")
    page.goto(PAGE)
    route = page.get_by_role("region", name="List tickets, the one that changed last first")
    route.get_by_text("GET /api/v1/tickets").click()
    route.get_by_text("Try it").click()
    expect(page.get_by_label("Body", exact=True).first).to_have_css("font-family", re.compile("monospace"))

    route.get_by_role("button", name="Send").click()
    expect(route.get_by_role("status")).to_contain_text("Type your API key at the top of this page first.")

    page.get_by_label("API key", exact=True).fill(key)
    route.get_by_label("priority").select_option("normal")
    route.get_by_role("button", name="Send").click()
    expect(route.get_by_role("status")).to_contain_text("GET /api/v1/tickets?priority=normal")
    expect(route.get_by_role("status")).to_contain_text('"title": "Ticket 1"')

    page.get_by_label("API key", exact=True).fill(key[:-1] + ("x" if key[-1] != "x" else "y"))
    route.get_by_role("button", name="Send").click()
    expect(route.get_by_role("status")).to_contain_text("key_malformed")

    page.get_by_label("API key", exact=True).fill(key[:-1] + "к")
    route.get_by_role("button", name="Send").click()
    expect(route.get_by_role("status")).to_have_text(re.compile("^This is no API key"))
