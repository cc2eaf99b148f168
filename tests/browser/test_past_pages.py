"""The pages of the past, in light and dark, wide and narrow: from a ticket back in time, and restored."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from portal import clock
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import member_changes
from tests.browser.conftest import NewPage
from tests.browser.page_audit import audit
from tests.support.world import World
from tickets.desk import changing
from tickets.desk.changing import Wishes
from tickets.ticket.fields import Priority, Status

pytestmark = pytest.mark.browser


def test_an_admin_goes_back_in_time_and_restores_a_ticket(world: World, person: NewPage) -> None:
    world.tickets("acme", 4)
    alice = world.context("alice", "acme")
    changing.change(alice, 4, Wishes(resolver=world.users["bob"].id))
    then = clock.stamp()
    wishes = Wishes(title="Printer on fire", description="It works.", priority=Priority.URGENT, status=Status.CLOSED)
    changing.change(alice, 2, wishes)
    changing.change(alice, 3, Wishes(resolver=world.users["bob"].id))
    changing.change(alice, 4, Wishes(resolver=""))
    for name in ("bob", "vera"):
        member_changes.remove_member(alice, user_id=world.users[name].id, by=SYSTEM)

    page = person("alice", "acme")
    page.goto(f"/acme/tickets/past/?at={then}")
    expect(page.get_by_text("You are looking at the past")).to_be_visible()
    assert audit(page, "tickets as they were") == []
    for number in (2, 4):
        page.get_by_role("checkbox", name=f"#{number}").check()
    page.get_by_role("button", name="Restore the selected tickets").click()
    expect(page.get_by_text("1 of the 2 selected tickets will change.")).to_be_visible()
    assert audit(page, "before tickets are restored, of which one cannot be") == []
    page.get_by_role("link", name="Restore the member first").click()
    expect(page.get_by_role("row", name="Bob Example")).to_contain_text("No member")

    page.get_by_role("link", name="Members", exact=True).last.click()
    expect(page.get_by_role("row", name="Vera Example")).to_contain_text("No member")
    assert audit(page, "members as they were") == []
    page.get_by_role("checkbox", name="Vera Example").check()
    page.get_by_role("button", name="Restore the selected members").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Restore 1 member to")
    assert audit(page, "before members are restored") == []
    page.get_by_role("button", name="Restore", exact=True).click()
    expect(page.get_by_text("1 member was restored: Vera Example is a viewer.")).to_be_visible()

    page.goto("/acme/tickets/2/")
    page.get_by_role("link", name="Version history").click()
    page.get_by_role("link", name="Before").first.click()
    expect(page.get_by_text("Ticket #2 as it was on")).to_be_visible()
    assert audit(page, "a ticket as it was") == []

    page.get_by_role("button", name="Restore this ticket").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Restore 1 ticket")
    assert audit(page, "before a restoration") == []
    page.get_by_role("button", name="Restore", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Ticket 2")
    assert audit(page, "a restored ticket") == []
