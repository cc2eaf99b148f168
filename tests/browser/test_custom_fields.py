"""Custom fields and kinds in a browser: settings, a form that changes with the kind, and where values are shown."""

from __future__ import annotations

import os

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit, audit_all
from tests.support import defined
from tests.support.world import World
from tickets.custom_fields.definitions import REQUIRED, SHOWN
from tickets.desk import creating
from tickets.ticket.custom_values import FieldType

pytestmark = pytest.mark.browser

FIELDS = "/acme/desk/settings/fields/"
LONG = "Rather long name of a field, with words"


@pytest.fixture
def page(person: NewPage) -> Page:
    return person("alice", "acme")


@pytest.fixture
def number(world: World) -> int:
    """A ticket of a desk that has fields of each type, long names and values."""
    defined.add_kind(world, "Question", is_default=True)
    defined.add_kind(world, "Problem", template="**What happened?**\n\nAnd when?")
    forms = {"kind_2": SHOWN}
    defined.add_field(world, LONG, forms=forms | {"kind_1": SHOWN}, help="As it stands on the machine " * 5)
    defined.add_field(world, "Machine", FieldType.CHOICE, choices=["Desk", "Lamp"], forms={"kind_2": REQUIRED})
    defined.add_field(world, "Cost", FieldType.NUMBER, forms=forms, is_column=True)
    defined.add_field(world, "Bought on", FieldType.DATE, forms=forms, is_column=True)
    defined.add_field(world, "Under warranty", FieldType.CHECKBOX, forms=forms)
    defined.add_kind(world, "W" * 40)
    defined.add_field(world, "W" * 39, FieldType.CHECKBOX, forms=forms, help="h" * 200)
    defined.add_field(world, "W" * 38, forms=forms, help="h" * 200)
    values = {"text_1": "Anunbrokenvaluewithoutspaces" * 7, "choice_2": "Lamp", "number_3": "12.5", "checkbox_5": "on"}
    number = creating.create(world.context("bob", "acme"), title="It burns", kind="kind_2", custom=values)
    defined.change_field(world, "choice_2", "Machine", choices=["Desk"], forms={"kind_2": REQUIRED})
    return number


def shoot(page: Page, name: str) -> None:
    if folder := os.environ.get("SHOTS"):
        for wide, scheme in ((1280, "light"), (390, "dark")):
            page.set_viewport_size({"width": wide, "height": 900})
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.screenshot(path=f"{folder}/{name}-{wide}-{scheme}.png", full_page=True)


def test_an_admin_defines_a_field(page: Page, witness: Witness) -> None:
    witness.accepts(422)
    page.goto(FIELDS)
    found = audit_all(page, "no fields", within="#main")
    page.get_by_role("link", name="New field").click()
    page.get_by_label("Name", exact=True).fill("Priority")
    page.get_by_role("button", name="Add the field").click()
    expect(page.locator(".errorlist", has_text="is a field that every ticket has")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_have_value("Priority")
    shoot(page, "field-refused")
    found += audit(page, "a field, refused", within="#main")
    page.get_by_label("Name", exact=True).fill("Order number")
    page.get_by_role("button", name="Add the field").click()
    expect(page.get_by_role("link", name="Order number")).to_be_visible()
    assert not found


def test_what_is_defined_and_what_tickets_have(page: Page, number: int) -> None:
    found = []
    for name, path in {
        "definitions": FIELDS,
        "field": f"{FIELDS}choice_2/",
        "kind": f"{FIELDS}kinds/kind_2/",
        "queue": "/acme/tickets/",
        "ticket": f"/acme/tickets/{number}/",
        "edit": f"/acme/tickets/{number}/edit/",
        "search": "/acme/search/?q=machine:lamp",
    }.items():
        page.goto(path)
        found += audit_all(page, name, within="#main")
        shoot(page, name)
    page.goto("/acme/tickets/?number_3=1..20")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.locator("#filter-menu > summary").click()
    shoot(page, "filters")
    assert not found


def test_the_form_follows_the_kind_at_once_and_keeps_what_was_typed(page: Page, number: int) -> None:
    page.goto("/acme/tickets/new/")
    page.get_by_label("Title").fill("Typed already")
    page.get_by_label(LONG).fill("the old one")
    expect(page.get_by_label("Cost")).to_have_count(0)
    page.get_by_label("Kind").select_option("Problem")
    page.get_by_label("Cost").fill("7")
    expect(page.get_by_label("Description")).to_have_value("**What happened?**\n\nAnd when?")
    expect(page.get_by_label(LONG)).to_have_value("the old one")
    page.get_by_label("Kind").select_option("Question")
    expect(page.get_by_label("Cost")).to_have_count(0)
    expect(page.get_by_label("Description")).to_have_value("")
    page.get_by_label("Kind").select_option("Problem")
    expect(page.get_by_label("Cost")).to_have_value("7")
    page.get_by_label("Machine").select_option("Desk")
    shoot(page, "new")
    page.get_by_role("button", name="Create ticket").click()
    expect(page.get_by_text("Ticket #2 created.")).to_be_visible()
    expect(page.locator("#ticket")).to_contain_text("the old one")
