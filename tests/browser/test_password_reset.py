"""A forgotten password, as a browser does it: what it says of where a form comes from decides whether it is taken."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage, sign_in
from tests.support.mailing import letter_to
from tests.support.world import World

pytestmark = pytest.mark.browser

NEW = "hay stack of needles"


def test_bob_forgets_his_password_and_chooses_a_new_one(world: World, browse: NewPage) -> None:
    page = browse()
    page.goto("/password/reset/")
    page.get_by_label("E-mail").fill("bob@example.com")
    page.get_by_role("button", name="Send the link").click()
    text = letter_to("bob@example.com").get_body(("plain",))
    assert text is not None
    link = re.search(r"http\S+/password/reset/\S+", text.get_content())
    assert link is not None
    page.goto(link[0])
    page.get_by_label("New password", exact=True).fill(NEW)
    page.get_by_label("Confirm password", exact=True).fill(NEW)
    page.get_by_role("button", name="Save the new password").click()
    expect(page.locator("#messages")).to_contain_text("Your password is changed.")
    sign_in(page, "bob@example.com", NEW)
    expect(page.locator("#switcher .tenant-name")).to_have_text("Acme")
