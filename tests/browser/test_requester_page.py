"""The page of a requester's ticket in a browser: in German, in both schemes, wide and narrow, with long content."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tenants.audit_trail.recording import SYSTEM
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit_all
from tests.support.world import World
from tickets.attachments import attachments
from tickets.desk import changing, commenting, creating, timelines
from tickets.outside import looks
from tickets.replies import mail_settings, ticket_links
from tickets.requesters import requester_changes, requesters
from tickets.requesters.requester_changes import Details
from tickets.ticket.fields import Status

pytestmark = pytest.mark.browser

LONG = "Kundendienst-für-Donaudampfschifffahrtsgesellschaften-" * 3


def test_a_requester_reads_answers_and_rates_their_ticket(world: World, browse: NewPage, witness: Witness) -> None:
    witness.accepts(422, 404)
    bob = world.context("bob", "acme")
    person = requesters.ensure(bob, "ada@example.org", name="Ada Lovelace")
    spoken = Details(name=LONG[:90], addresses=person.addresses, language="de")
    person = requester_changes.change(bob, person.id, lambda before: spoken, version=None, by=SYSTEM)
    number = creating.create(bob, title=LONG[:150], description=f"It stops.\n\n{LONG}", requester=person)
    file = attachments.store(bob, f"{LONG[:80]}.txt", b"text")
    commenting.comment(bob, number, body=f"# Look\n\n- at *this*\n\n```\n{LONG}\n```", files=[file])
    commenting.comment(bob, number, body="Done.", then=Status.RESOLVED)
    looks.change(world.context("alice", "acme"), values={"name": LONG[:80], "colour": "#ffee00", "language": "en"},
                 version=0, by=SYSTEM)  # fmt: skip
    settings = mail_settings.read(bob)
    link = ticket_links.ticket_link(bob, changing.read(bob, number), person, settings)
    page = browse()
    page.goto(f"/r/{link.token}/?rating=bad#rating")
    assert page.locator("html").get_attribute("lang") == "de"
    expect(page.get_by_label("Schlecht", exact=True)).to_be_checked()
    found = audit_all(page, "the ticket")
    page.get_by_role("button", name="Bewertung senden").click()
    expect(page.locator(".notice")).to_contain_text("Ihre Bewertung ist gespeichert.")
    page.get_by_role("button", name="Antwort senden").click()
    expect(page.locator(".error-summary")).to_contain_text("Schreiben Sie zuerst etwas.")
    found += audit_all(page, "the ticket, refused")
    page.get_by_label("Ihre Antwort", exact=True).fill("It stops again.")
    page.get_by_role("button", name="Antwort senden").click()
    expect(page.locator(".notice")).to_contain_text("Ihre Antwort ist angekommen.")
    found += audit_all(page, "the ticket, answered")
    page.goto(f"/r/all/{ticket_links.all_link(bob, person, settings).token}/")
    expect(page.get_by_role("heading", name="Ihre Anfragen")).to_be_visible()
    found += audit_all(page, "all tickets")
    assert not found
    made = timelines.ticket(bob, number)
    assert (made.summary.rating, made.summary.status) == ("bad", "open")
    assert "It stops again." in [entry.body for entry in made.activity]


def test_a_link_that_does_not_work_offers_a_new_one(browse: NewPage, world: World, witness: Witness) -> None:
    witness.accepts(404)
    page = browse()
    page.goto("/r/nonsense/")
    found = audit_all(page, "no link")
    page.get_by_role("button", name="Send me a new link").click()
    expect(page.get_by_role("heading", name="Please look into your mailbox")).to_be_visible()
    found += audit_all(page, "a new link")
    assert not found
