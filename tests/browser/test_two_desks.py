"""Two tabs of one browser, in two desks: no click in one opens what belongs to the other."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage, Witness, is_at
from tests.browser.test_nothing_is_lost import switch_to, tab_beside
from tests.support.world import World
from tickets.desk import creating

pytestmark = pytest.mark.browser


def test_a_click_in_a_tab_of_acme_does_not_open_globexs_ticket(world: World, person: NewPage, witness: Witness) -> None:
    creating.create(world.context("alice", "acme"), title="Acme's printer", description="")
    creating.create(world.context("charlie", "globex"), title="Globex's printer", description="")
    witness.accepts(409)
    tab = person("alice", "acme")
    tab.goto("/tickets/")
    is_at(tab, "/acme/tickets/")
    switch_to(tab_beside(tab, "/acme/tickets/"), "Globex")

    tab.get_by_role("link", name="Acme's printer").click()

    main = tab.get_by_role("main")
    expect(main.get_by_role("heading", level=1)).to_have_text("This page belongs to Acme")
    expect(main).to_contain_text("You are working in Globex now")
    expect(main).not_to_contain_text("printer")
    tab.get_by_role("button", name="Switch to Acme").click()
    expect(tab.get_by_role("heading", level=1)).to_contain_text("Acme's printer")
    is_at(tab, "/acme/tickets/1/")


def test_who_stays_is_at_the_desk_chosen_last(world: World, person: NewPage, witness: Witness) -> None:
    world.tickets("acme", 1)
    witness.accepts(409)
    tab = person("alice", "acme")
    tab.goto("/acme/tickets/")
    switch_to(tab_beside(tab, "/acme/tickets/"), "Globex")
    tab.goto("/acme/tickets/1/")
    tab.get_by_role("link", name="Stay in Globex").click()
    expect(tab.locator("#switcher .tenant-name")).to_have_text("Globex")
    is_at(tab, "/globex/tickets/")
