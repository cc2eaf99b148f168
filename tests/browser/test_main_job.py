"""What an agent does all day, from signing in to the next tenant, in one sitting."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import NewPage, Witness, sign_in
from tests.browser.portal_process import Portal, serve
from tests.support.world import World
from tickets.desk import changing

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def portal(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    """The portal as it is served, in a process of its own."""
    with serve(tmp_path_factory.mktemp("gunicorn") / "server.log") as portal:
        yield portal


@pytest.fixture
def busy_world(world: World) -> World:
    """Acme has 46 open tickets: number 1 is Alice's, 2 is Bob's, the others are nobody's. Globex has two."""
    world.tickets("acme", 46)
    world.tickets("globex", 2)
    alice = world.context("alice", "acme")
    for number, who in ((1, "alice"), (2, "bob")):
        changing.assign(alice, number, to=world.users[who].id, version=1)
    return world


def test_alice_works_her_queue_and_goes_on_in_another_tenant(
    busy_world: World, browse: NewPage, witness: Witness
) -> None:
    witness.accepts(428)
    page = browse()
    rows = page.locator("[data-row]")
    status = page.get_by_role("navigation", name="Status")
    whose = page.get_by_role("navigation", name="Assignee")
    message = page.locator("#messages")
    history = page.locator("#activity")

    # She signs in and chooses Acme.
    sign_in(page, "alice@example.com")
    page.get_by_role("button", name="Acme").click()
    expect(page.locator("#switcher .tenant-name")).to_have_text("Acme")
    expect(rows).to_have_count(46)

    # She looks at her own tickets, at nobody's, at the pending ones, and at all that are open again.
    whose.get_by_role("link", name="Mine").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Ticket 1")
    whose.get_by_role("link", name="Unassigned").click()
    expect(rows).to_have_count(44)
    whose.get_by_text("Someone else").click()
    whose.get_by_role("link", name="Bob Example").click()
    expect(rows).to_have_count(1)
    expect(whose.get_by_role("link", name="Bob Example")).to_have_attribute("aria-current", "page")
    whose.get_by_role("link", name="Everyone").click()
    expect(rows).to_have_count(46)
    status.get_by_role("link", name="Pending").click()
    expect(page.get_by_role("heading", name="No pending tickets")).to_be_visible()
    page.go_back()
    expect(rows).to_have_count(46)

    # She opens a ticket, answers in Markdown, and leaves a note for the team.
    page.get_by_role("link", name="Ticket 46").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ticket 46")
    page.get_by_label("Comment", exact=True).fill("Please try **again** with `--force`.")
    page.get_by_role("button", name="Comment", exact=True).click()
    answer = history.get_by_role("article", name="Comment by Alice Example")
    expect(answer.locator("strong")).to_have_text("again")
    expect(answer.locator("code")).to_have_text("--force")
    expect(page.get_by_label("Comment", exact=True)).to_have_value("")
    page.get_by_label("Comment", exact=True).fill("They are on the old plan.")
    page.get_by_role("checkbox", name="Internal note").check()
    page.get_by_role("button", name="Add note", exact=True).click()
    expect(history.get_by_role("article", name="Internal note by Alice Example")).to_contain_text("old plan")
    expect(page.get_by_role("checkbox", name="Internal note")).not_to_be_checked()

    # She takes the ticket, then hands it to Bob.
    assignee = page.locator(".prop", has=page.get_by_role("heading", name="Assignee"))
    page.get_by_role("button", name="Assign to me").click()
    expect(assignee).to_contain_text("Alice Example (you)")
    assignee.get_by_text("Assign to someone else").click()
    assignee.get_by_role("button", name="Bob Example").click()
    expect(assignee.locator(".prop-now")).to_have_text(re.compile("Bob Example"))
    expect(history).to_contain_text("reassigned it from Alice Example to Bob Example")

    # She raises its priority and puts it aside.
    page.get_by_label("Priority").select_option("Urgent")
    expect(page.locator(".ticket-facts .priority")).to_have_text("Urgent")
    page.get_by_role("button", name="Pending").click()
    expect(page.locator(".ticket-facts .badge")).to_have_text("Pending")

    # She gives it a better title.
    page.get_by_role("link", name="Edit").click()
    page.get_by_label("Title").fill("The importer stops at row 512")
    page.get_by_label("Tags").fill("import, bug")
    page.get_by_role("button", name="Save changes").click()
    expect(message).to_contain_text("Changes saved.")
    expect(page.get_by_role("heading", level=1)).to_have_text("The importer stops at row 512")

    # Back in the queue she chooses one ticket, ten, all, and then all but five: these forty she closes.
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Queue").click()
    expect(rows).to_have_count(45)
    page.wait_for_load_state()
    chosen = page.locator("[data-count]")
    boxes = page.locator("input[name=tickets]")
    boxes.nth(0).click()
    expect(chosen).to_have_text("1 selected")
    boxes.nth(9).click(modifiers=["Shift"])
    expect(chosen).to_have_text("10 selected")
    page.get_by_label("Select all on this page").check()
    expect(chosen).to_have_text("45 selected")
    for position in (0, 1, 2, 43, 44):
        boxes.nth(position).uncheck()
    expect(chosen).to_have_text("40 selected")
    page.get_by_role("group", name="Selected tickets").get_by_role("button", name="Closed").click()
    page.get_by_role("button", name="Close 40 tickets").click()
    expect(message).to_contain_text("40 tickets are now closed.")
    expect(rows).to_have_count(5)

    # They are under Closed, and each knows who closed it.
    status.get_by_role("link", name="Closed").click()
    expect(rows).to_have_count(40)
    expect(message).to_have_text("")
    rows.first.get_by_role("link").click()
    expect(history).to_contain_text("Alice Example changed status from open to closed")

    # She goes on in Globex, whose queue is another one.
    page.locator("#switcher > summary").click()
    page.locator("#switcher").get_by_role("button", name="Globex").click()
    expect(page.locator("#switcher .tenant-name")).to_have_text("Globex")
    expect(rows).to_have_count(2)
    expect(page.locator("[data-row]", has_text="Charlie Example")).to_have_count(2)
