"""How somebody comes into a desk, works there, and is out again: three browsers, one mailbox, one sitting.

Whether a page can be read is what test_accessibility.py looks at; here, what only this way leads to.
"""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import grave
from tests.support import folding
from tests.support.mailing import letter_to
from tests.support.world import World

pytestmark = pytest.mark.browser

NORA = "nora@example.org"
PASSWORD = "hay stack of needles"
DESK = re.compile("Acme|Alice|printer")  # what nobody outside may read


def test_nora_is_invited_works_and_is_out_at_her_next_click(
    world: World, browse: NewPage, person: NewPage, witness: Witness
) -> None:
    found: list[str] = []
    alice = person("alice", "acme")
    message = alice.locator("#messages")
    people = alice.get_by_role("navigation", name="People")

    # Alice invites Nora from the page of the members.
    alice.goto("/tickets/")
    alice.get_by_role("navigation", name="Main").get_by_role("link", name="Desk").click()
    expect(alice.get_by_role("row", name="Bob Example")).to_be_visible()
    alice.get_by_role("link", name="Invite people").click()
    expect(alice.get_by_role("heading", name="No pending invitations")).to_be_visible()
    alice.get_by_label("E-mail addresses").fill(f"Nora New <{NORA}>")
    alice.get_by_label("Role").select_option("agent")
    alice.get_by_role("button", name="Send invitations").click()
    expect(message).to_contain_text(f"An invitation was sent to {NORA}.")
    expect(alice.get_by_role("row", name=NORA)).to_contain_text("Invited by Alice Example")

    # The mail holds the same link in text and in HTML.
    letter = letter_to(NORA)
    assert letter["Subject"] == "Invitation to Acme on Pooldesk"
    text, html = (letter.get_body((kind,)) for kind in ("plain", "html"))
    assert text is not None
    assert html is not None
    link = re.search(r"http\S+/invitation/\S+", text.get_content())
    assert link is not None
    assert f'href="{link[0]}"' in html.get_content()

    # Nora follows it, makes an account and is in the desk.
    nora = browse()
    nora.goto(link[0])
    expect(nora.get_by_role("heading", level=1)).to_have_text("Join Acme")
    nora.get_by_label("Your name").fill("Nora New")
    nora.get_by_label("Password", exact=True).fill(PASSWORD)
    nora.get_by_label("Confirm password", exact=True).fill(PASSWORD)
    nora.get_by_role("button", name="Create account and join").click()
    expect(nora.locator("#messages")).to_contain_text("Welcome to Acme.")
    expect(nora.locator("#switcher .tenant-name")).to_have_text("Acme")
    found += grave(nora, "first queue")

    # She opens her first ticket and takes it. Of the desk's own pages she sees nothing.
    expect(nora.get_by_role("link", name="Desk", exact=True)).to_have_count(0)
    nora.get_by_role("navigation", name="Main").get_by_role("link", name="New ticket").click()
    nora.get_by_label("Title").fill("The printer smokes")
    nora.get_by_role("button", name="Create ticket").click()
    expect(nora.get_by_role("heading", level=1)).to_have_text("The printer smokes")
    nora.get_by_role("button", name="Assign to me").click()
    expect(nora.locator(".prop-now .person")).to_contain_text("Nora New (you)")

    # The link has done its work, and the list of those who wait is empty again.
    witness.accepts(404)
    late = browse()
    late.goto(link[0])
    expect(late.get_by_role("heading", level=1)).to_have_text("This invitation is no longer valid")
    people.get_by_role("link", name="Invitations").click()
    expect(alice.get_by_role("heading", name="No pending invitations")).to_be_visible()

    # Alice removes her, after a page that says what that means.
    people.get_by_role("link", name="Members").click()
    alice.get_by_role("link", name="Remove Nora New").click()
    expect(alice.get_by_role("heading", level=1)).to_have_text("Remove Nora New?")
    alice.get_by_role("button", name="Remove Nora New").click()
    expect(message).to_contain_text("Nora New was removed from Acme.")
    expect(alice.get_by_role("heading", level=1)).to_have_text("Nora New has left and has 1 unresolved ticket")

    # Nora's next click shows that she is out, and nothing of the desk.
    nora.get_by_role("navigation", name="Main").get_by_role("link", name="Queue").click()
    expect(nora.get_by_role("heading", level=1)).to_have_text("You no longer have access to this desk")
    assert not DESK.search(nora.content())
    found += grave(nora, "out")
    nora.goto("/tickets/1/")
    expect(nora.get_by_role("heading", level=1)).to_have_text("You no longer have access to this desk")

    # Her tickets are listed as left by a former member, and reassigned in one step.
    folding.Follower().fold()
    alice.get_by_role("link", name="Members", exact=True).first.click()
    alice.get_by_role("link", name="Tickets left by former members").click()
    expect(alice.get_by_role("main").get_by_role("listitem")).to_contain_text([NORA])
    alice.get_by_role("link", name=NORA).click()
    alice.get_by_label("New assignee").select_option(label="Bob Example")
    alice.get_by_role("button", name="Reassign").click()
    expect(message).to_contain_text("1 ticket was reassigned to Bob Example.")
    alice.goto("/tickets/1/")
    expect(alice.locator(".prop-now .person")).to_contain_text("Bob Example")

    # The audit trail tells all of it.
    alice.goto("/desk/audit/")
    for words in ("invited", "accepted the invitation", "removed", "reassigned the tickets of"):
        expect(alice.get_by_role("cell", name=words).first).to_be_visible()
    assert not found
