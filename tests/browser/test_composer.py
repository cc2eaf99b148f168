"""The composer: ready answers behind a ";", buttons and keys for Markdown, previews, quotes, and drafts of a device."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from tenants.audit_trail.recording import SYSTEM
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit, audit_all
from tests.browser.test_nothing_is_lost import desks_with_tickets
from tests.support import embedded
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.desk import changing, commenting
from tickets.ready_answers import answer_changes, answer_reading
from tickets.ready_answers.answer_reading import Given

pytestmark = pytest.mark.browser

REFUND = "Hello {requester},\n\nwe refund **{title}**."


@pytest.fixture
def world(engine: None) -> World:
    return embedded.prepared("desks-with-answers", desks_with_answers)


def desks_with_answers() -> World:
    world = desks_with_tickets()
    alice = world.context("alice", "acme")
    for given in (
        Given(
            "Refund for a parcel",
            "refund",
            "Hello {requester},\n\nwe refund **{title}**.",
            "resolved",
            ("money",),
            "me",
        ),
        Given("Opening hours", "hours", "9 to 5"),
        Given("Refuse politely", "refuse", "No."),
    ):
        answer_changes.create(alice, given, shared=True, by=SYSTEM)
    commenting.comment(alice, 1, body="The printer\n\nis on *fire*.")
    return world


@pytest.fixture
def page(world: World, person: NewPage) -> Page:
    page = person("bob")
    page.goto("/tickets/1/")
    return page


def text(page: Page) -> Locator:
    return page.locator("#reply textarea")


def options(page: Page) -> Locator:
    return page.locator("#completions [role=option]")


def tool(page: Page, name: str) -> Locator:
    return page.get_by_role("toolbar", name="Formatting").get_by_role("button", name=name)


def test_an_answer_is_inserted_by_keys_with_what_it_changes_and_sent(page: Page, world: World) -> None:
    text(page).focus()
    page.keyboard.type("Good morning. ;ref")
    expect(options(page)).to_have_count(2)
    expect(options(page).nth(0)).to_contain_text("Refund for a parcel")
    expect(page.locator("#announce")).to_contain_text("answers")
    page.keyboard.press("Enter")
    expect(text(page)).to_have_value("Good morning. Hello Alice Example,\n\nwe refund **Ticket 1**.")
    expect(page.get_by_label("Set the status to Resolved")).to_be_checked()
    page.get_by_label("Assign to me").uncheck()
    page.keyboard.press("Control+Enter")  # from a check box nothing is sent
    text(page).press("Control+Enter")
    expect(page.locator("#activity")).to_contain_text("we refund Ticket 1")
    ticket = changing.read(world.context("alice", "acme"), 1)
    assert (ticket.status, ticket.resolver, [*ticket.tags]) == ("resolved", "", ["money"])
    alice = world.context("alice", "acme")
    (refund, *_) = answer_reading.find(alice, "refund")
    assert answer_reading.uses(alice, [refund.answer_id]) == {refund.answer_id: 1}
    expect(text(page)).to_have_value("")
    expect(page.locator("[data-answer-actions]")).to_be_hidden()


def test_a_semicolon_in_a_sentence_offers_nothing_and_escape_closes_the_list(page: Page) -> None:
    text(page).focus()
    page.keyboard.type("One; two")
    expect(options(page)).to_have_count(0)
    page.keyboard.type(" ;")
    expect(options(page)).to_have_count(3)
    page.keyboard.press("Escape")
    expect(page.locator("#completions")).to_be_hidden()
    expect(text(page)).to_be_focused()
    page.keyboard.type("hou")
    options(page).nth(0).click()
    expect(text(page)).to_have_value("One; two 9 to 5")


def test_an_answer_is_reached_by_a_button_and_taken_back_by_undo(page: Page) -> None:
    tool(page, "Bold").focus()
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    expect(tool(page, "Ready answer")).to_be_focused()
    page.keyboard.press("Enter")
    expect(options(page)).to_have_count(3)
    page.keyboard.press("Enter")
    expect(text(page)).to_have_value("9 to 5")
    page.keyboard.press("Control+z")
    expect(text(page)).not_to_have_value("9 to 5")


MARKDOWN = [
    ("Control+b", "**word**"),
    ("Control+i", "_word_"),
    ("Control+e", "`word`"),
    ("Control+Shift+K", "[word](https://)"),
    ("Control+Shift+8", "- word"),
    ("Control+Shift+9", "> word"),
]


def test_keys_put_markdown_around_what_is_selected(page: Page) -> None:
    for key, written in MARKDOWN:
        text(page).fill("word")
        text(page).select_text()
        page.keyboard.press(key)
        expect(text(page)).to_have_value(written)


def test_the_same_button_again_takes_the_marks_away(page: Page) -> None:
    text(page).fill("one\ntwo")
    text(page).select_text()
    tool(page, "List").click()
    expect(text(page)).to_have_value("- one\n- two")
    tool(page, "List").click()
    expect(text(page)).to_have_value("one\ntwo")
    text(page).select_text()
    tool(page, "Bold").click()
    tool(page, "Bold").click()
    expect(text(page)).to_have_value("one\ntwo")


def test_a_preview_is_the_servers_and_leads_back_to_the_text(page: Page) -> None:
    text(page).fill("**bold** of #2 <b>not</b>")
    tool(page, "Preview").click()
    preview = page.get_by_role("region", name="Preview")
    expect(preview.locator("strong")).to_have_text("bold")
    expect(preview.get_by_role("link", name="#2")).to_be_visible()
    expect(text(page)).to_be_hidden()
    tool(page, "Preview").click()
    expect(text(page)).to_be_focused()
    expect(text(page)).to_have_value("**bold** of #2 <b>not</b>")


def test_what_is_selected_is_quoted_by_a_key_or_by_a_button(page: Page) -> None:
    entry = page.locator("#activity article .prose").first
    text(page).fill("Look:")
    text(page).blur()
    entry.locator("p").nth(1).select_text()
    page.keyboard.press("r")
    expect(text(page)).to_have_value("Look:\n\n> is on fire.\n\n")
    expect(text(page)).to_be_focused()
    entry.select_text()
    page.get_by_role("button", name="Quote in reply").click()
    expect(text(page)).to_have_value("Look:\n\n> is on fire.\n\n> The printer\n>\n> is on fire.\n\n")


def test_a_draft_and_its_answer_wait_on_the_device_for_its_author_alone(
    page: Page, world: World, person: NewPage
) -> None:
    text(page).focus()
    page.keyboard.type(";refund")
    expect(options(page)).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Add the tag money")).to_be_checked()
    page.get_by_label("Assign to me").uncheck()
    written = text(page).input_value()
    tab = page.context.new_page()
    page.close()
    tab.goto("/tickets/1/")
    expect(text(tab)).to_have_value(written)
    expect(tab.get_by_label("Add the tag money")).to_be_checked()
    expect(tab.get_by_label("Assign to me")).not_to_be_checked()
    kept = tab.evaluate("() => JSON.stringify(localStorage)")
    other = person("alice")
    other.goto("/acme/tickets/1/")
    other.evaluate("kept => Object.assign(localStorage, JSON.parse(kept))", kept)
    other.reload()
    expect(text(other)).to_have_value("")
    tab.get_by_role("button", name="Discard it").click()
    expect(tab.locator("[data-answer-actions]")).to_be_hidden()
    tab.reload()
    expect(text(tab)).to_have_value("")


def test_what_is_typed_in_another_tab_stays_when_the_comment_of_this_one_is_sent(page: Page) -> None:
    text(page).fill("Of the first tab.")
    tab = page.context.new_page()
    tab.goto("/tickets/1/")
    expect(text(tab)).to_have_value("Of the first tab.")
    text(tab).fill("Of the second tab.")
    page.locator("#comment-send").click()
    expect(page.locator(".entry", has_text="Of the first tab.")).to_be_visible()
    wait_until(lambda: tab.evaluate("JSON.stringify(localStorage).includes('second')"))
    tab.reload()
    expect(text(tab)).to_have_value("Of the second tab.")
    page.reload()
    expect(text(page)).to_have_value("Of the second tab.")


def test_signing_out_takes_the_drafts_from_the_device(page: Page) -> None:
    text(page).fill("A secret")
    page.locator("#user-menu summary").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page).not_to_have_url("/acme/tickets/1/")
    assert "A secret" not in page.evaluate("() => JSON.stringify([{...localStorage}, {...sessionStorage}])")


def test_the_composer_and_the_pages_of_answers_fit_every_window(
    world: World, person: NewPage, witness: Witness
) -> None:
    witness.accepts(422)
    alice = world.context("alice", "acme")
    long = "Donaudampfschifffahrtsgesellschaftskapitaen" * 2
    answer = answer_changes.create(alice, Given(long, "long", f"{long} {{me}}"), shared=True, by=SYSTEM).answer_id
    page = person("alice")
    page.goto("/acme/tickets/1/")
    text(page).focus()
    page.keyboard.type(";refund")
    expect(options(page)).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.get_by_label("Assign to me")).to_be_checked()
    found = audit(page, "composer with an answer", "#reply")
    tool(page, "Preview").click()
    expect(page.get_by_role("region", name="Preview")).to_be_visible()
    found += audit(page, "composer with a preview", "#reply")
    for path in ("", "?whose=mine", "?q=refund", "?q=nothing", f"{answer}/", f"{answer}/delete/"):
        page.goto(f"/acme/tickets/answers/{path}")
        found += audit_all(page, f"answers {path}")
    page.goto("/acme/tickets/answers/new/")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-error-summary]")).to_be_visible()
    found += audit_all(page, "new answer, refused")
    assert not found
