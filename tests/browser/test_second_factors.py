"""Signing in by a browser: passkeys with Chromium's virtual authenticator, and the pages of second factors."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tenants.audit_trail.recording import Actor
from tenants.lifecycle import desk_settings
from tests.browser.conftest import NewPage, Witness, sign_in
from tests.browser.page_audit import audit
from tests.support.factors import code, give_app
from tests.support.world import PASSWORD, World

pytestmark = pytest.mark.browser

AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


class Device:
    """Gives a page's browser an authenticator, such as the fingerprint reader of a laptop."""

    def __init__(self, page: Page) -> None:
        self.session = page.context.new_cdp_session(page)
        self.session.send("WebAuthn.enable")
        self.id = self.session.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})["authenticatorId"]

    def credentials(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.session.send("WebAuthn.getCredentials", {"authenticatorId": self.id})[
            "credentials"
        ]
        return found

    def refuses(self, refuses: bool = True) -> None:
        """Let the person fail at the fingerprint, or succeed again."""
        self.session.send("WebAuthn.setUserVerified", {"authenticatorId": self.id, "isUserVerified": not refuses})


def confirm(page: Page) -> None:
    page.goto("/account/security/")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Confirm", exact=True).click()


def sign_out(page: Page) -> None:
    page.locator("#user-menu > summary").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def with_passkey(page: Page, name: str) -> None:
    confirm(page)
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_role("heading", name="Your recovery codes")).to_be_visible()
    page.get_by_role("link", name="I have kept them").click()
    expect(page.get_by_text(name, exact=True)).to_be_visible()


def test_a_passkey_is_added_and_signs_in_without_the_password(world: World, person: NewPage) -> None:
    page = person("bob", "acme", is_given_up=True)
    page.add_init_script("PublicKeyCredential.isConditionalMediationAvailable = async () => false")
    device = Device(page)
    with_passkey(page, "Laptop")
    assert len(device.credentials()) == 1
    sign_out(page)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page).to_have_url(re.compile("/acme/tickets/"))


def test_the_browser_offers_passkeys_beside_the_address(world: World, person: NewPage) -> None:
    page = person("bob", "acme", is_given_up=True)
    Device(page)  # which takes the offer at once
    with_passkey(page, "Laptop")
    page.locator("#user-menu > summary").click()
    page.get_by_role("button", name="Sign out", exact=True).click()
    expect(page).to_have_url(re.compile("/acme/tickets/"))


def test_a_passkey_is_the_second_step_after_the_password(world: World, person: NewPage, witness: Witness) -> None:
    witness.accepts(422)
    page = person("bob", "acme", is_given_up=True)
    device = Device(page)
    with_passkey(page, "Laptop")
    device.refuses()
    sign_out(page)
    page.get_by_label("E-mail").fill("bob@example.com")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("button", name="Use a passkey").click()
    expect(page.get_by_role("alert")).to_contain_text("No passkey was used")
    device.refuses(False)
    page.get_by_role("button", name="Use a passkey").click()
    expect(page).to_have_url(re.compile("/acme/tickets/"))


def test_the_pages_of_second_factors(world: World, person: NewPage, browse: NewPage, witness: Witness) -> None:
    witness.accepts(403, 422)
    found: list[str] = []

    def look(page: Page, name: str, path: str | None = None) -> None:
        if path:
            page.goto(path)
        found.extend(audit(page, name))

    page = person("bob", "acme", is_given_up=True)
    Device(page)
    look(page, "security, to be confirmed", "/account/security/")
    confirm(page)
    page.goto("/account/security/authenticator/")
    page.get_by_label("Code", exact=True).fill("12")
    page.get_by_role("button", name="Add the app").click()
    expect(page.get_by_text("not the code that the app shows").first).to_be_visible()
    look(page, "authenticator, refused")
    page.get_by_label("Code", exact=True).fill(code(page.locator("code.desk-secret").inner_text().replace(" ", "")))
    page.get_by_role("button", name="Add the app").click()
    look(page, "recovery codes")
    page.goto("/account/security/")
    page.get_by_label("Name").fill("A device with quite a long name, by which it is known again")
    page.get_by_role("button", name="Add a passkey").click()
    expect(page.get_by_text("used yet")).to_be_visible()
    look(page, "security, with everything")
    page.get_by_role("link", name="Remove the authenticator app").click()
    look(page, "the question before an app is removed")
    page.goto("/account/security/codes/")
    page.get_by_role("button", name="Replace the codes").click()
    look(page, "recovery codes again")
    give_app(world, "alice")
    alice = world.users["alice"]
    assert desk_settings.demand_second_factor(
        world.context("alice", "acme"), demanded=True, by=Actor(alice.id, alice.email)
    )
    owner = person("alice", "acme")
    look(owner, "settings, signing in", "/desk/settings/sign-in/")
    stranger = browse()
    sign_in(stranger, "alice@example.com")
    expect(stranger.get_by_role("heading", name="One more step")).to_be_visible()
    look(stranger, "second step")
    look(person("vera", "acme"), "led to security", "/tickets/")
    assert not found
