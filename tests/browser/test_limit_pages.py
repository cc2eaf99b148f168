"""What people see of their desk's limits: its usage, and a page that keeps what was typed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.conf import LazySettings
from playwright.sync_api import expect

from portal import clock
from portal.load import usage
from portal.load.measurement import NoiseTally
from portal.load.tenant_limiter import TenantLimiter
from tenants.tenancy import admission
from tests.browser.conftest import NewPage, Witness
from tests.browser.page_audit import audit
from tests.limits.test_token_bucket import HandClock
from tests.support.world import World

pytestmark = pytest.mark.browser

TEXT = "An hour of work"


@pytest.fixture
def hand(settings: LazySettings, monkeypatch: pytest.MonkeyPatch) -> HandClock:
    """Each desk may ask for four units a second, forty at once; how late it is, the test says."""
    settings.TENANT_RATES = "standard=4"
    hand = HandClock()
    monkeypatch.setattr(admission, "limiter", TenantLimiter(clock=hand))
    return hand


def test_a_refused_form_shows_what_was_typed_and_goes_through_a_moment_later(
    world: World, hand: HandClock, person: NewPage, witness: Witness
) -> None:
    witness.accepts(429)
    world.tickets("acme", 1)
    page, vera = person("bob"), world.browser("vera", "acme")
    page.goto("/tickets/1/")
    page.get_by_label("Comment", exact=True).fill(TEXT)
    while vera.get("/tickets/").status_code != 429:
        pass
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Too much at once")
    expect(page.get_by_role("region", name="What you typed")).to_contain_text(TEXT)
    assert not audit(page, "429")
    hand.now += 10
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_role("article", name="Comment by Bob Example")).to_contain_text(TEXT)


def test_the_page_of_a_desks_usage(world: World, hand: HandClock, person: NewPage) -> None:
    acme, now = world.tenants["acme"].tenant_id, clock.now()
    for minute, (units, refused) in {1: (30, 0), 2: (140, 0), 4: (236, 1208), 9: (12, 0)}.items():
        usage.add(acme, NoiseTally(units, units, refused), at=now - timedelta(minutes=minute))
    page = person("alice", "acme")
    page.goto("/desk/settings/usage/")
    expect(page.get_by_role("link", name="Usage")).to_have_attribute("aria-current", "page")
    expect(page.get_by_text("1208 requests were refused")).to_be_visible()
    assert not audit(page, "usage")
