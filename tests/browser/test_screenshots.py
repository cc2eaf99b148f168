"""Writes the pictures of the README, from the sample data. Only where it is asked for: SCREENSHOTS=1."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import LazySettings, settings
from playwright.sync_api import Page, expect

from portal import clock
from portal.streams import watermark
from tenants.membership import members
from tenants.sign_in import accounts
from tenants.tenancy import context
from tests.browser.conftest import NewPage, Witness, sign_in
from tests.browser.page_audit import NARROW
from tests.support import commands, folding
from tests.support.searching import index_all
from tickets.desk import changing
from tickets.ticket import fields
from tickets.ticket.stored import TICKETS

pytestmark = pytest.mark.browser

FOLDER = Path(settings.BASE_DIR) / "docs" / "screenshots"
LARGEST = 250_000  # bytes
TICKET = "SSO with Entra ID fails after the certificate was renewed"
CONTESTED = "Signature of webhook does not match"


@pytest.fixture
def page(engine: None, browse: NewPage, settings: LazySettings) -> Page:
    """Alice at the queue of Acme, the largest of the sample tenants."""
    settings.DEBUG = True  # the sample accounts exist nowhere else
    assert commands.run("seed").status == 0
    page = browse()
    sign_in(page, "alice@example.com", settings.DEMO_PASSWORD)
    page.get_by_role("button", name="Acme").click()
    expect(page.locator("[data-row]")).to_have_count(49)
    return page


def shoot(page: Page, name: str) -> None:
    path = FOLDER / f"{name}.png"
    page.mouse.move(0, 0)
    page.screenshot(path=path)
    assert path.stat().st_size < LARGEST


def in_both_schemes(page: Page, name: str) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        shoot(page, f"{name}-{scheme}")
    page.emulate_media(color_scheme="light")


def bob_changes(number: int) -> None:
    """In another browser, after Alice opened the form."""
    bob = accounts.find_by_email("bob@example.com")
    assert bob is not None
    tenant = context.enter(bob, members.memberships_of(bob.id)[0].tenant_id)
    assert tenant is not None
    ticket = changing.read(tenant, number)
    changing.edit(
        tenant,
        number,
        version=int(ticket.version),
        title=ticket.title,
        description=f"{changing.read_description(tenant, number)}\n\nThe customer waits for an answer.",
        priority=fields.Priority.URGENT,
        tags=[*ticket.tags, "customer-waits"],
    )


def test_the_pictures_of_the_readme(page: Page, browse: NewPage, witness: Witness) -> None:
    witness.accepts(409)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for row in (1, 3, 4):
        page.locator("input[name=tickets]").nth(row).check()
    in_both_schemes(page, "queue")
    page.get_by_role("button", name="Clear selection").click()
    phone = browse(viewport=NARROW, has_touch=True, is_mobile=True)
    phone.context.add_cookies(page.context.cookies())  # type: ignore[arg-type]
    phone.goto("/tickets/")
    shoot(phone, "queue-390")
    index_all()
    page.locator("#search-box").fill("certificate")
    expect(page.locator("#suggested-tickets")).to_be_visible()
    page.keyboard.press("ArrowDown")
    shoot(page, "search-typing")
    page.goto("/search/?q=certificate+renewed")
    in_both_schemes(page, "search")
    page.goto("/tickets/")
    page.get_by_role("link", name=TICKET).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TICKET)
    in_both_schemes(page, "ticket")
    folding.Follower().fold()
    watermark.write(TICKETS, clock.stamp())
    page.goto("/tickets/dashboard/")
    in_both_schemes(page, "dashboard")
    phone.goto("/tickets/dashboard/")
    shoot(phone, "dashboard-390")
    page.goto("/desk/members/")
    shoot(page, "members-light")
    page.get_by_role("row", name="Bob").get_by_role("combobox").select_option("admin")
    page.get_by_role("row", name="Bob").get_by_role("button", name="Save").click()
    expect(page.locator("#messages")).to_contain_text("is now an admin")
    page.goto("/desk/invitations/")
    page.get_by_label("E-mail addresses").fill("dana@example.com, erik@example.com")
    page.get_by_role("button", name="Send invitations").click()
    expect(page.locator("#messages")).to_contain_text("was sent to")
    page.goto("/desk/audit/")
    shoot(page, "audit-light")
    page.goto("/tickets/")
    page.get_by_role("link", name=CONTESTED).first.click()
    number = int(urlsplit(page.url).path.rstrip("/").rsplit("/", 1)[1])
    page.get_by_role("link", name="Edit", exact=True).click()
    text = page.get_by_label("Description")
    text.fill(text.input_value() + "\n\nOnly deliveries after the upgrade are concerned.")
    bob_changes(number)
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Bob Okafor changed this ticket")
    shoot(page, "conflict")
