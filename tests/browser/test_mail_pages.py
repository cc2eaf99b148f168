"""The pages of mail, in light and dark, wide and narrow: a desk's settings, and a ticket with letters."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from tenants.audit_trail.recording import SYSTEM
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit, audit_all
from tests.support.world import World
from tickets.desk import commenting, creating, timelines
from tickets.replies import delivery_states, mail_settings, own_domain
from tickets.requesters import requesters

pytestmark = pytest.mark.browser

MAIL = "/acme/desk/settings/mail/"
LONG = "a-rather-long-name-of-a-domain-" * 2 + "example.example.net"


@pytest.fixture
def page(person: NewPage) -> Page:
    return person("alice", "acme")


@pytest.fixture
def number(world: World) -> int:
    """A requester's ticket with a letter in each state; the last one did not arrive."""
    bob = world.context("bob", "acme")
    ada = requesters.ensure(bob, f"{'ada' * 15}@{LONG}", name="Augusta Ada King, Countess of Lovelace" * 2)
    number = creating.create(bob, title="The engine stops", description="At noon.", requester=ada)
    for state in ("held", "sent", "complained", "bounced"):
        commenting.comment(bob, number, body=f"It is {state}.", cc=[f"grace@{LONG}", "lin@example.org"])
        entry = timelines.ticket(bob, number).activity[-1]
        note = "The mail server answered 550 5.1.1 " + "no-such-user-" * 14 if state == "bounced" else ""
        delivery_states.mark(bob, number, entry.sk, state, note=note)
    return number


def test_the_settings_of_mail(world: World, page: Page, witness: Witness) -> None:
    witness.accepts(422)
    page.goto(MAIL)
    found = audit_all(page, "mail, nothing set", within="#main")
    page.get_by_label("Name of the sender").fill("Acme <x>")
    page.get_by_label("Blocked senders").fill("@spam.example")
    page.get_by_role("button", name="Save the mail settings").click()
    expect(page.locator("[data-error-summary]")).to_be_focused()
    expect(page.get_by_label("Blocked senders")).to_have_value("@spam.example")
    found += audit(page, "mail, refused", within="#main")
    page.get_by_label("Name of the sender").fill("Acme Support")
    page.get_by_role("button", name="Save the mail settings").click()
    expect(page.get_by_text("Settings saved.")).to_be_visible()
    own_domain.choose(world.context("alice", "acme"), sender=f"help@{LONG}", version=1, by=SYSTEM)
    page.goto(MAIL)
    expect(page.get_by_text(f"_pooldesk.{LONG}")).to_be_visible()
    found += audit_all(page, "mail, with a domain", within="#main")
    assert not found
    assert mail_settings.read(world.context("alice", "acme")).sender_name == "Acme Support"


def test_a_ticket_with_letters(page: Page, number: int, witness: Witness) -> None:
    witness.accepts(422)
    page.goto(f"/acme/tickets/{number}/")
    expect(page.locator("[data-delivery=bounced]")).to_contain_text("Not delivered")
    expect(page.locator("#reply")).to_contain_text("was not delivered")
    found = audit_all(page, "ticket with letters", within="#main")
    copies, told = page.get_by_label(re.compile("Copies to")), page.locator("#reply .letter-to")
    expect(copies).to_have_value(f"grace@{LONG}, lin@example.org")
    page.get_by_label("Internal note").check()
    expect(copies).to_be_hidden()
    expect(told).to_be_hidden()
    found += audit(page, "a note, which is no letter", within="#main")
    page.get_by_label("Internal note").uncheck()
    copies.fill("nobody")
    page.locator("#reply textarea").fill("Hello again.")
    page.locator("#comment-send").click()
    expect(page.locator("#reply")).to_contain_text("“nobody” is no mail address.")
    expect(page.locator("#reply textarea")).to_have_value("Hello again.")
    copies.fill("lin@example.org")
    page.locator("#comment-send").click()
    expect(page.locator("[data-delivery=held]").last).to_contain_text("copies to lin@example.org")
    assert not found
