"""Agents choose the requester of a ticket while they type, and all pages of requesters fit every window."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tenants.audit_trail.recording import SYSTEM
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit_all
from tests.support.world import World
from tickets.desk import changing, creating
from tickets.requesters import bounced_addresses, requester_changes, requesters
from tickets.requesters.requester_changes import Details
from tickets.requesters.requesters import Requester

pytestmark = pytest.mark.browser

LONG = "Wolfeschlegelsteinhausenbergerdorff-" * 2


@pytest.fixture
def ada(world: World) -> Requester:
    """Ada, with a ticket and an address to which no mail comes, and others of every kind."""

    alice = world.context("alice", "acme")
    details = Details(
        "Ada Lovelace", "Engines", "Calls in the mornings.", "en", ("ada@example.org", f"{LONG[:60]}@example.org")
    )
    made = requester_changes.create(alice, details, by=SYSTEM, request_id="form")
    bounced_addresses.note(alice, "ada@example.org", "The mailbox is full.")
    countess = requesters.ensure(alice, "countess@example.org", name="The Countess")
    requester_changes.merge(alice, made.id, countess.id, by=SYSTEM)
    requesters.ensure(alice, f"{LONG[:64]}@{LONG[:60]}.example.org", name=LONG)
    for title in ("The engine stops", LONG * 2, "Another one"):
        creating.create(alice, title=title, requester=made)
    return made


def test_the_requester_of_a_new_ticket_is_chosen_by_keyboard(world: World, person: NewPage, ada: Requester) -> None:
    page = person("alice", "acme")
    page.goto("/acme/tickets/new/")
    field = page.get_by_label("Requester")
    field.press_sequentially("ada")
    option = page.locator("#requester-options option").first
    expect(option).to_have_attribute("value", "Ada Lovelace <ada@example.org>")
    # The list is the browser's own, which no driver opens: what it would put there is typed.
    field.fill("Ada Lovelace <ada@example.org>")
    expect(page.get_by_text("Mail to ada@example.org does not arrive: The mailbox is full.")).to_be_visible()
    field.fill("new@example.org")
    expect(page.get_by_text("Nobody has this address yet. The person is added with the ticket.")).to_be_visible()
    field.fill("Ada Lovelace <ada@example.org>")
    field.press("Tab")
    page.keyboard.type("The loom stops")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="The loom stops")).to_be_visible()
    side = page.locator("#requester")
    expect(side.get_by_role("link", name="The engine stops")).to_be_visible()
    expect(side.get_by_text("The loom stops")).to_have_count(0)
    assert changing.read(world.context("alice", "acme"), 4).requester == ada.id


def test_the_list_is_searched_while_somebody_types(person: NewPage, ada: Requester) -> None:
    page = person("alice", "acme")
    page.goto("/acme/requesters/")
    page.get_by_role("searchbox", name="Find a requester").press_sequentially("lady")
    expect(page.get_by_role("heading", name="Nobody found")).to_be_visible()
    page.get_by_role("searchbox", name="Find a requester").fill("ada")
    page.get_by_role("link", name="Ada Lovelace").click()
    expect(page.get_by_role("heading", name="Ada Lovelace")).to_be_visible()
    page.get_by_role("button", name="Undo the merge of The Countess").click()
    expect(page.get_by_role("heading", name="The Countess")).to_be_visible()


def test_all_pages_of_requesters_fit_every_window(person: NewPage, ada: Requester, witness: Witness) -> None:
    witness.accepts(422)
    page = person("alice", "acme")
    found = []
    one = f"/acme/requesters/{ada.id}/"
    for path in (
        "/acme/requesters/",
        "/acme/requesters/?q=zzz",
        one,
        f"{one}edit/",
        f"{one}merge/",
        "/acme/requesters/new/",
    ):
        page.goto(path)
        found += audit_all(page, path, within="#main")
    page.get_by_label("Mail addresses").fill("ada at example\nada@example.org")
    page.get_by_role("button", name="Add the requester").click()
    expect(page.get_by_text("is no mail address").first).to_be_visible()
    found += audit_all(page, "a refused form", within="#main")
    _merged(page, one)
    found += audit_all(page, "a merge to be confirmed", within="#main")
    page.goto("/acme/tickets/1/")
    expect(page.locator("#requester").get_by_role("link", name="Another one")).to_be_visible()
    found += audit_all(page, "a ticket with its requester", within="#main")
    page.goto("/acme/tickets/new/")
    found += audit_all(page, "a new ticket", within="#main")
    assert found == []


def _merged(page: Page, one: str) -> None:
    page.goto(f"{one}merge/")
    page.get_by_label("The other person").fill(LONG)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("button", name="Merge them")).to_be_visible()
