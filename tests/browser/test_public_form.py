"""The public form in a browser: its pages in German, the proof that the browser works out, and its settings."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tenants.audit_trail.recording import Actor
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit, audit_all
from tests.public_form.conftest import FORM, open_form
from tests.support import defined
from tests.support.world import World
from tickets.desk import timelines
from tickets.outside import looks
from tickets.public_form import challenges, form_settings

pytestmark = pytest.mark.browser

LONG = "Kundendienst-für-Donaudampfschifffahrtsgesellschaften-" * 2
EMPTY = {"name": "leer.txt", "mimeType": "text/plain", "buffer": b""}


def dress(world: World, language: str, **values: str) -> None:
    alice = world.context("alice", "acme")
    given = {"name": "", "colour": "", "language": language, **values}
    looks.change(alice, values=given, version=looks.looks_of(alice).version, by=Actor(alice.user_id))


def test_somebody_outside_writes_to_a_desk(world: World, browse: NewPage, witness: Witness) -> None:
    witness.accepts(422, 404)  # the desk has no help centre to suggest from
    own = defined.one_of_each_type(world)
    open_form(
        world,
        asks_priority=True,
        own_fields=own,
        needed_fields=own[2:3],
        intro=f"Hello {LONG}\nMonday to Friday",
        next_steps=LONG,
    )
    dress(world, "de", name=LONG[:80], colour="#ffee00")
    page = browse()
    page.goto(FORM)
    assert page.locator("html").get_attribute("lang") == "de"
    subject = page.get_by_label("Betreff", exact=True)
    found = audit_all(page, "the form")
    page.get_by_label("Nachricht", exact=True).fill("It stands still.")
    subject.fill("The engine")
    page.get_by_label("Ihre E-Mail-Adresse").fill("ada")
    page.get_by_role("button", name="Senden", exact=True).click()
    expect(page.locator(".error-summary")).to_contain_text("Geben Sie eine")
    expect(page.get_by_label("Nachricht", exact=True)).to_have_value("It stands still.")
    found += audit_all(page, "the form, refused")
    page.locator("#id_attached").set_input_files(
        [{"name": "plan.txt", "mimeType": "text/plain", "buffer": b"a plan"}, EMPTY]
    )
    expect(page.locator(".file").first).to_contain_text("angehängt")
    expect(page.locator(".file-problem")).to_contain_text("ist leer. Sie ist nicht angehängt.")
    found += audit(page, "the form, files")
    page.get_by_role("button", name="leer.txt entfernen").click()
    page.get_by_label("Ihre E-Mail-Adresse").fill("ada@example.org")
    page.get_by_label("Own choice").select_option("Red one")
    page.get_by_label("Own checkbox").check()
    subject.press("Enter")
    expect(page.get_by_role("heading", name="Ihre Nachricht ist angekommen")).to_be_visible()
    found += audit_all(page, "the form, sent")
    assert not found
    made = timelines.ticket(world.context("bob", "acme"), 1)
    assert (made.summary.title, made.description) == ("The engine", "It stands still.")
    assert dict(made.summary.custom) == {"choice_3": "Red one", "checkbox_5": "yes"}
    assert [file.name for file in made.files or ()] == ["plan.txt"]


def test_a_browser_works_out_the_proof_that_a_busy_desk_asks_for(
    world: World, browse: NewPage, witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    witness.accepts(404)
    monkeypatch.setattr(challenges, "UNPROVED_OF_NETWORK", 0)
    monkeypatch.setattr(challenges, "UNPROVED_SECONDS", 3600)
    open_form(world)
    page = browse()
    page.goto(FORM)
    page.get_by_label("Your email address").fill("ada@example.org")
    page.get_by_label("Subject").fill("The engine")
    page.get_by_label("Message").fill("It stands still.")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", name="Your message has arrived")).to_be_visible()


def test_an_admin_sets_the_form_up(world: World, person: NewPage, witness: Witness) -> None:
    witness.accepts(422)
    defined.add_field(world, "Serial number")
    page = person("alice", "acme")
    page.goto("/acme/desk/settings/public/")
    page.get_by_label("Serial number").select_option("Required")
    found = audit_all(page, "public form, nothing set", within="#main")
    page.get_by_label("The form is open to everybody").check()
    page.get_by_label("What happens next").fill("We ring you.")
    page.get_by_label("Sites that may show the form").fill("http://insecure.example.com")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Preview").click()
    expect(opened.value.locator("[data-error-summary]")).to_contain_text("Only sites with https")
    page.get_by_role("button", name="Save the form").click()
    expect(page.locator("[data-error-summary]")).to_contain_text("Only sites with https")
    expect(page.get_by_label("What happens next")).to_have_value("We ring you.")
    found += audit(page, "public form, refused", within="#main")
    page.get_by_label("Sites that may show the form").fill("https://www.example.com/contact")
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Preview").click()
    expect(opened.value.get_by_text("This is a preview. It cannot be sent.")).to_be_visible()
    page.get_by_role("button", name="Save the form").click()
    expect(page.get_by_text("Settings saved.")).to_be_visible()
    expect(page.locator(".embed")).to_contain_text('/forms/acme/" title="Acme"')
    page.get_by_label("Colour").fill("teal")
    page.get_by_role("button", name="Save the looks").click()
    expect(page.locator("[data-error-summary]")).to_contain_text("six digits")
    page.get_by_label("Colour").fill("#0A6A7B")
    page.get_by_role("button", name="Save the looks").click()
    expect(page.get_by_text("Looks saved.")).to_be_visible()
    found += audit_all(page, "public form, open", within="#main")
    page.set_extra_http_headers({"Accept-Language": "de"})
    page.reload()
    found += audit_all(page, "public form, open, de", within="#main")
    assert not found
    alice = world.context("alice", "acme")
    assert form_settings.read(alice).origins == ("https://www.example.com",)
    assert form_settings.read(alice).needed_fields == ("text_1",)
    assert looks.looks_of(alice).colour == "#0a6a7b"
