"""An operator acts as a member: the pages on the way there and back, in light and dark, wide and narrow."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import NewPage, sign_in
from tests.browser.page_audit import audit
from tests.support.operators import make_operator, membership_url
from tests.support.world import World

pytestmark = pytest.mark.browser


def test_an_operator_acts_as_a_member_and_stops(world: World, browse: NewPage, person: NewPage) -> None:
    make_operator()
    world.tickets("acme", 2)
    page = browse()
    sign_in(page, "root@example.com")
    page.goto(membership_url(world, "bob", "acme"))
    assert audit(page, "a member in the admin") == []
    page.get_by_role("button", name="Act as this member and change tickets").click()
    assert audit(page, "the reason") == []
    page.get_by_label("Reason").fill("They cannot see ticket 1." + "x" * 250)
    page.get_by_role("button", name="Act as this member and change tickets").click()
    expect(page.get_by_text("They cannot see ticket 1.")).to_be_visible()
    assert audit(page, "the question before changes") == []
    page.get_by_role("button", name="Act as this member and change tickets").click()
    banner = page.get_by_role("complementary", name="Acting as a member")
    expect(banner).to_contain_text("you act as Bob Example in Acme")
    assert audit(page, "the queue of somebody else") == []

    page.goto("/admin/")
    visit = page.get_by_role("complementary", name="Acting as a member")
    expect(visit).to_contain_text("Your changes to tickets are real.")
    assert audit(page, "the admin during a visit") == []
    page.go_back()

    alice = person("alice", "acme")
    alice.goto("/acme/desk/settings/access/")
    expect(alice.get_by_text("goes on")).to_be_visible()
    assert audit(alice, "access by the platform") == []

    banner.get_by_role("button", name="Stop").click()
    expect(page).to_have_url(f"{page.url.split('/admin')[0]}{membership_url(world, 'bob', 'acme')}")
