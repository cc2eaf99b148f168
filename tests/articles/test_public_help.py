"""People outside a desk read its public articles, and nothing else of it."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy.context import TenantContext
from tests.articles.test_writing_articles import PAGE, sent, text_of
from tests.desk.test_cost import spent
from tests.public_form.conftest import open_form
from tests.support.articles import published
from tests.support.world import Browser, World
from tickets.articles import article_changes, catalogue, sections
from tickets.articles.articles import Text
from tickets.outside import looks, pages

HELP = "/help/acme/"


@pytest.fixture
def guest(world: World) -> Client:
    return Client()


def test_guests_find_and_read_public_articles(alice: TenantContext, guest: Client) -> None:
    section = sections.add(alice, "First steps", "How to begin", by=SYSTEM)
    published(alice, "Reset your password", "Press **Forgot**.", section=section.id)
    home = text_of(guest.get(HELP))
    assert all(words in home for words in ("First steps", "How to begin", "Press Forgot."))
    assert 'href="/help/acme/1-reset-your-password/"' in home
    page = text_of(guest.get(f"{HELP}1-reset-your-password/"))
    assert "<strong>Forgot</strong>" in page
    assert "First steps" in page
    assert "<mark>password</mark>" in text_of(guest.get(HELP, {"q": "password"}))


@pytest.mark.parametrize("address", ["1/", "1-reset-your-password/", "1-a-former-title/"])
def test_the_number_in_an_address_decides_and_the_words_are_decoration(
    alice: TenantContext, guest: Client, address: str
) -> None:
    published(alice, "Reset your password")
    answer = guest.get(HELP + address)
    assert answer.status_code == 200
    assert '/help/acme/1-reset-your-password/">' in text_of(answer)


def test_a_title_without_latin_letters_has_an_address(alice: TenantContext, guest: Client) -> None:
    published(alice, "Пароль")
    assert 'href="/help/acme/1/"' in text_of(guest.get(HELP))
    assert "Пароль" in text_of(guest.get(f"{HELP}1/"))


def test_nothing_that_is_not_public_is_shown(alice: TenantContext, guest: Client, world: World) -> None:
    published(alice, "Secret of the desk", "elephant", public=False)
    article_changes.create(alice, Text("Secret draft", "elephant", "", True), by=SYSTEM)
    published(alice, "Withdrawn secret", "elephant")
    article_changes.withdraw(alice, 3, by=SYSTEM)
    published(alice, "Open", "elephant")
    article_changes.save(alice, 4, Text("Secret title", "Secret change", "", True), edit=2, by=SYSTEM)
    published(alice, "Secret from now on", "elephant")
    article_changes.publish(alice, 5, Text("Secret from now on", "elephant", "", False), edit=2, by=SYSTEM)
    for path in (HELP, f"{HELP}?q=elephant", f"{HELP}suggest/?q=elephant+secret", f"{HELP}4/"):
        page = text_of(guest.get(path))
        assert "ecret" not in page.replace("elephant secret", ""), path
    for number in (1, 2, 3, 5, 99, 10**13):
        assert guest.get(f"{HELP}{number}/").status_code == 404, number
    for path in ("/help/globex/4/", "/help/nobody/4/", "/help/nobody/"):
        assert guest.get(path).status_code == 404, path


def test_a_member_is_a_guest_there_too(alice: TenantContext, world: World) -> None:
    published(alice, "Secret of the desk", public=False)
    browser = world.browser("alice", "acme")
    answer = browser.get(f"{HELP}1/")
    assert answer.status_code == 404
    assert not answer.cookies


def test_a_closed_desk_has_no_help_centre(alice: TenantContext, guest: Client, world: World) -> None:
    from tenants.lifecycle import tenant_lifecycle

    published(alice, "Open")
    assert guest.get(f"{HELP}1/").status_code == 200
    tenant_lifecycle.suspend(world.tenants["acme"].tenant_id, by=SYSTEM)
    assert guest.get(f"{HELP}1/").status_code == 404


def test_markup_in_an_article_hurts_nobody(alice: TenantContext, guest: Client) -> None:
    published(alice, "<img src=x onerror=alert(1)>", "<script>alert(1)</script> [x](javascript:alert(1))")
    for path in (HELP, f"{HELP}1/", f"{HELP}?q=alert", f"{HELP}suggest/?q=onerror"):
        page = text_of(guest.get(path))
        assert "<script>alert" not in page, path
        assert "<img" not in page, path
        assert 'href="javascript' not in page, path


def test_the_pages_speak_german_where_the_desk_does(alice: TenantContext, guest: Client) -> None:
    values = {"name": "", "colour": "", "language": "de"}
    looks.change(alice, values=values, version=0, by=SYSTEM)
    published(alice, "Kennwort")
    assert "Artikel durchsuchen" in text_of(guest.get(HELP))
    assert "Kein Artikel gefunden" in text_of(guest.get(HELP, {"q": "Elefant"}))
    assert "Diese Artikel" in text_of(guest.get(f"{HELP}suggest/?q=Kennwort"))


def test_guests_are_led_to_the_form_where_it_is_open(alice: TenantContext, guest: Client, world: World) -> None:
    published(alice, "Hours")
    for path in (HELP, f"{HELP}1/"):
        assert "Write to us" not in text_of(guest.get(path))
    open_form(world)
    for path in (HELP, f"{HELP}1/"):
        assert 'href="/forms/acme/">Write to us</a>' in text_of(guest.get(path))


def test_a_refused_form_comes_back_with_articles(alice: TenantContext, guest: Client, world: World) -> None:
    open_form(world)
    published(alice, "Reset your password")
    page = text_of(guest.post("/forms/acme/", {"subject": "My password"}))
    assert 'href="/help/acme/1-reset-your-password/"' in page
    assert 'data-suggest-articles="/help/acme/suggest/"' in page


def test_articles_are_suggested_while_somebody_writes(alice: TenantContext, guest: Client) -> None:
    published(alice, "Reset your password")
    page = text_of(guest.get(f"{HELP}suggest/", {"q": "I forgot the password!"}))
    assert 'href="/help/acme/1-reset-your-password/"' in page
    assert text_of(guest.get(f"{HELP}suggest/", {"q": "elephant"})).strip() == ""


def test_an_agent_publishes_and_a_guest_reads_it_at_once(world: World, guest: Client) -> None:
    bob: Browser = world.browser("bob", "acme")
    assert guest.get(HELP).status_code == 404  # as for a desk that there is not
    bob.send(f"{PAGE}new/", sent("Hours", "9 to 5", then="publish"))
    assert "9 to 5" in text_of(guest.get(HELP))
    bob.send(f"{PAGE}1/withdraw/")
    assert guest.get(HELP).status_code == 404


@pytest.mark.parametrize(("path", "trips"), [("", 2), ("1-hours/", 2), ("?q=hours", 3), ("suggest/?q=hours", 2)])
def test_a_page_costs_finding_the_desk_and_one_round_trip(alice: TenantContext, path: str, trips: int) -> None:
    """A search reads the texts of what it has found, too. The name of a desk that the process has not met costs one
    more."""
    published(alice, "Hours", "9 to 5")
    browser: Any = Browser()
    pages.forget()
    catalogue.forget()
    assert spent(browser, HELP + path).trips == trips + 1
    again = spent(browser, HELP + path)
    assert again.trips == trips
    assert again.read_units < 8


def test_a_name_that_another_desk_has_now_leads_to_that_one(world: World, alice: TenantContext, guest: Client) -> None:
    from tenants.audit_trail.recording import Actor
    from tenants.lifecycle import desk_settings

    published(alice, "Hours")
    assert guest.get(f"{HELP}1/").status_code == 200
    by = Actor(alice.user_id)
    desk_settings.rename(alice, name="Acme", slug="second", by=by)
    assert guest.get(f"{HELP}1/").status_code == 200  # the former name is its own still
    desk_settings.rename(world.context("alice", "acme"), name="Acme", slug="third", by=by)
    charlie = world.context("charlie", "globex")
    desk_settings.rename(charlie, name="Globex", slug="acme", by=Actor(charlie.user_id))
    assert guest.get(f"{HELP}1/").status_code == 404
    assert guest.get("/help/third/1/").status_code == 200


@pytest.mark.parametrize(
    ("body", "lead"),
    [
        ("## Begin\n\nOpen **Settings**, then [Printers](https://x.example/p).", "Begin Open Settings, then Printers."),
        ("Two ways:\n\n- this\n* that\n", "Two ways: this that"),
        ("1. Sign in.\n2) Choose 3. floor - left", "Sign in. Choose 3. floor - left"),
        ("-5 degrees, 1.5 litres", "-5 degrees, 1.5 litres"),
    ],
)
def test_a_list_shows_the_beginning_of_a_text_without_its_markup(body: str, lead: str) -> None:
    assert article_changes.lead_of(body) == lead
