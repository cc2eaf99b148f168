"""Every page of API keys, found by its route, in light and dark, wide and narrow; and the way to a key by keyboard."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from portal import clock
from tenants.api_keys import key_authentication
from tenants.api_keys.scopes import Scope
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import WAYS, audit, audit_all, turn
from tests.isolation.test_outsider import DESK_ROUTES
from tests.support.api_keys import alter, make_key
from tests.support.waiting import wait_until
from tests.support.world import World

pytestmark = pytest.mark.browser

ROUTES = [route for route in DESK_ROUTES if "/settings/api-keys/" in route]
PAGES = "/acme/desk/settings/api-keys/"
LONG = "Synchronising-the-warehouse-with-the-desk-every-few-minutes-"


def test_no_page_of_api_keys_is_hard_to_read_or_to_reach(world: World, person: NewPage, witness: Witness) -> None:
    witness.accepts(422)
    page, found = person("alice", "acme"), []
    page.goto(PAGES)
    found += audit(page, "no keys", within="#main")
    alice = world.context("alice", "acme")
    networks = tuple(f"2001:db8:{number:x}:ffff:ffff:ffff:ffff:0/112" for number in range(1, 9))
    origins = tuple(f"https://a-rather-long-name-{number}.of-a-page.example.com:8443" for number in range(5))
    key, _ = make_key(alice, *Scope, name=LONG, addresses=networks, origins=origins)
    alter(key, last_used_at=clock.stamp(), last_used_from="2001:db8:ffff:ffff:ffff:ffff:ffff:ffff")
    alter(make_key(alice, name="Revoked")[0], revoked_at=clock.stamp())
    tomorrow = clock.stamp(clock.now() + timedelta(days=1))
    alter(make_key(alice, name="Old")[0], expires_at=tomorrow, replaced_by=key.api_key_prefix)
    names = {"desk": "acme", "api_key": key.api_key_prefix}
    for route in ROUTES:
        path = "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda m: names[m[1]], route)
        page.goto(path)
        found += audit_all(page, path, within="#main")
    turn(page, *WAYS[0])
    page.goto(f"{PAGES}new/")
    page.get_by_role("button", name="Make the key").click()
    expect(page.locator("[data-error-summary]")).to_be_focused()
    found += audit(page, "a form that is refused", within="#main")
    assert not found


def test_a_key_is_made_copied_and_revoked_by_keyboard_alone(world: World, person: NewPage) -> None:
    page = person("alice", "acme", permissions=["clipboard-read", "clipboard-write"])
    page.goto(PAGES)
    page.get_by_role("link", name="Make a key").first.focus()
    page.keyboard.press("Enter")
    page.get_by_label("Name", exact=True).focus()
    page.keyboard.type("Billing")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Key made")).to_be_visible()
    text = page.locator("[data-secret]").inner_text()
    assert key_authentication.authenticate(text, address="").scopes == {Scope.TICKETS_READ}
    found = audit(page, "a new key", within="#main")
    page.get_by_role("button", name="Copy the key").focus()
    page.keyboard.press("Enter")
    copied = "navigator.clipboard.readText()"
    wait_until(lambda: page.evaluate(copied) == text, working=lambda: page.wait_for_timeout(20))
    page.get_by_role("link", name="I have copied it").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Billing")).to_be_visible()
    assert text not in page.content()
    page.goto(PAGES)
    page.get_by_role("link", name="Billing").click()
    page.get_by_role("link", name="Revoke").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Revoke the key").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("The key Billing was revoked.")).to_be_visible()
    assert not found
