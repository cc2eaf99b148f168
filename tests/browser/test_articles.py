"""Agents put links to articles into answers, guests are offered articles, and all their pages fit every window."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tenants.audit_trail.recording import SYSTEM
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit_all
from tests.public_form.conftest import open_form
from tests.support.articles import published
from tests.support.world import World
from tickets.articles import article_changes, articles, sections
from tickets.articles.articles import Text
from tickets.outside import looks

pytestmark = pytest.mark.browser

LONG = "Donaudampfschifffahrtsgesellschaftskapitaen" * 3
BODY = f"""# First

Press **Forgot**, then `{LONG}`.

1. One
2. Two

| a | {LONG} |
|---|---|
| 1 | 2 |

```
{LONG} {LONG}
```
"""


@pytest.fixture
def desk(world: World) -> World:
    """A help centre with articles of every kind."""
    alice = world.context("alice", "acme")
    section = sections.add(alice, "First steps", "How to begin", by=SYSTEM)
    sections.add(alice, LONG[:80], LONG, by=SYSTEM)
    published(alice, "Reset your password", BODY, section=section.id)
    published(alice, LONG, LONG, public=False)
    article_changes.create(alice, Text("A draft"), by=SYSTEM)
    text = Text("Reset your password", BODY.replace("Two", "Three"), section.id, True)
    article_changes.save(alice, 1, text, edit=2, by=SYSTEM)
    world.tickets("acme", 1)
    return world


def test_a_link_is_put_into_an_answer(desk: World, person: NewPage) -> None:
    page = person("bob", "acme")
    page.goto("/acme/tickets/1/")
    field = page.get_by_label("Comment", exact=True)
    expect(page.get_by_text("Articles that may answer this")).to_be_visible()
    page.goto("/acme/tickets/new/")
    page.get_by_label("Title").fill("I forgot my password")
    page.get_by_role("button", name="Create ticket").click()
    field.fill("Please read")
    page.get_by_role("button", name="Insert link to Reset your password").click()
    expect(field).to_have_value(f"Please read [Reset your password]({_origin(page)}/help/acme/1-reset-your-password/)")
    expect(field).to_be_focused()
    page.get_by_role("button", name="Comment", exact=True).click()
    page.locator("#activity").get_by_role("link", name="Reset your password").click()
    expect(page.get_by_role("heading", name="Reset your password")).to_be_visible()


def _origin(page: Page) -> str:
    return str(page.evaluate("location.origin"))


def test_guests_are_offered_articles_while_they_write(desk: World, browse: NewPage) -> None:
    open_form(desk)
    page = browse()
    page.goto("/forms/acme/")
    page.get_by_label("Subject").press_sequentially("I forgot my password")
    link = page.get_by_role("link", name="Reset your password")
    expect(link).to_be_visible()
    page.get_by_label("Subject").fill("Elephants")
    expect(link).to_have_count(0)


def test_all_pages_of_articles_fit_every_window(desk: World, person: NewPage, witness: Witness) -> None:
    witness.accepts(409, 422)
    page = person("alice", "acme")
    found = []
    for path in (
        "", "?q=password", "?q=zzz", "1/", "2/", "3/", "1/edit/", "1/versions/", "1/versions/1/", "1/delete/", "new/",
        "sections/", f"sections/{sections.listed(desk.context('alice', 'acme'))[1].id}/", "options/?title=password",
        "options/?title=zzz",
    ):  # fmt: skip
        page.goto(f"/acme/articles/{path}")
        found += audit_all(page, path or "list", within="#main")
    page.goto("/acme/articles/1/edit/")
    alice = desk.context("alice", "acme")
    edit = int(articles.draft(alice, 1).edit)
    article_changes.save(alice, 1, Text("Reset", f"{LONG}\n\nOther", "", True), edit=edit, by=SYSTEM)
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_text("Somebody else has saved this article meanwhile").first).to_be_visible()
    found += audit_all(page, "a conflict", within="#main")
    page.goto("/acme/search/?q=password")
    found += audit_all(page, "a search", within="#main")
    page.goto("/acme/tickets/1/")
    page.get_by_label("Comment", exact=True).focus()
    found += audit_all(page, "a ticket", within="#main")
    page.set_extra_http_headers({"Accept-Language": "de"})
    for path in ("", "1/", "1/edit/", "1/versions/1/", "sections/"):
        page.goto(f"/acme/articles/{path}")
        expect(page.locator("html")).to_have_attribute("lang", "de")
        found += audit_all(page, f"{path or 'list'}, de", within="#main")
    assert found == []


@pytest.mark.parametrize("language", ["en", "de"])
def test_all_public_pages_fit_every_window(desk: World, browse: NewPage, witness: Witness, language: str) -> None:
    witness.accepts(404)
    alice = desk.context("alice", "acme")
    published(alice, LONG, BODY)
    values = {"name": LONG[:80], "colour": "#ffee00", "language": language}
    looks.change(alice, values=values, version=0, by=SYSTEM)
    page = browse()
    found = []
    for path in ("", "?q=password", f"?q={LONG}+password", "?q=zzz", "1-reset-your-password/", "4/", "99/"):
        page.goto(f"/help/acme/{path}")
        found += audit_all(page, path or "home", within="body")
    assert found == []
