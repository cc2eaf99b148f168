"""Who was a member at a time, and taking members in again."""

from __future__ import annotations

from typing import Any

import pytest

from portal import clock
from tenants.audit_trail.recording import Actor
from tenants.identity import accounts
from tenants.membership import member_changes, members, roster
from tenants.past_members import past_roster
from tenants.provisioning import tenant_lifecycle
from tenants.provisioning.tenant_lifecycle import TenantLimits
from tenants.tenancy.context import TenantContext
from tenants.tenancy.roles import Role
from tests.support.operators import text_of
from tests.support.world import World

BY = Actor("0" * 32, "alice@example.com", "test")


@pytest.fixture
def alice(world: World) -> TenantContext:
    return world.context("alice", "acme")


def roles(tenant: TenantContext) -> dict[str, Role]:
    return {m.email.split("@")[0]: m.role for m in members.members_of(tenant.repository, consistent=True)}


def then(tenant: TenantContext, moment: str) -> dict[str, Role]:
    return {one.email.split("@")[0]: one.role for one in past_roster.at(tenant, moment)}


def restored(tenant: TenantContext, world: World, moment: str, *who: str) -> list[str]:
    """The reasons why these people were not restored, "" for who was."""
    ids = [world.users[name].id for name in who]
    return [one.left for one in past_roster.restore(tenant, ids, moment, by=BY)]


def test_at_each_moment_the_members_are_those_who_were_stored(world: World, alice: TenantContext) -> None:
    bob, vera, dora = world.users["bob"].id, world.users["vera"].id, world.add_user("Dora")
    moments = [(clock.stamp(), roles(alice))]
    for change in (
        lambda: roster.change_role(alice, user_id=bob, to=Role.ADMIN, by=BY),
        lambda: member_changes.add(user=dora, tenant=world.tenants["acme"], role=Role.AGENT, by=BY),
        lambda: roster.remove(alice, user_id=vera, by=BY),
        lambda: roster.remove(world.context("dora", "acme"), user_id=dora.id, by=BY),
        lambda: member_changes.add(user=world.users["vera"], tenant=world.tenants["acme"], role=Role.OWNER, by=BY),
        lambda: roster.change_role(alice, user_id=bob, to=Role.VIEWER, by=BY),
    ):
        change()
        moments.append((clock.stamp(), roles(alice)))
    for moment, stored in moments:
        assert then(alice, moment) == stored


def test_a_removed_member_is_taken_in_again_with_the_role_of_then(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    roster.remove(alice, user_id=world.users["bob"].id, by=BY)
    assert restored(alice, world, moment, "bob") == [""]
    assert roles(alice)["bob"] is Role.AGENT
    assert world.browser("bob", "acme").get("/tickets/").status_code == 200


def test_a_role_is_given_back(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    roster.change_role(alice, user_id=world.users["bob"].id, to=Role.VIEWER, by=BY)
    assert restored(alice, world, moment, "bob", "vera") == ["", "vera@example.com is a viewer already."]
    assert roles(alice)["bob"] is Role.AGENT


def test_who_left_by_themselves_is_not_taken_in(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    roster.remove(world.context("bob", "acme"), user_id=world.users["bob"].id, by=BY)
    assert "has left the desk" in restored(alice, world, moment, "bob")[0]
    assert "bob" not in roles(alice)


def test_an_admin_makes_nobody_an_owner_again(world: World, alice: TenantContext) -> None:
    world.add_user("Ada")
    world.join("ada", "acme", Role.ADMIN)
    member_changes.add(user=world.users["charlie"], tenant=world.tenants["acme"], role=Role.OWNER, by=BY)
    moment = clock.stamp()
    roster.remove(alice, user_id=world.users["charlie"].id, by=BY)
    assert "Only an owner" in restored(world.context("ada", "acme"), world, moment, "charlie")[0]
    assert "charlie" not in roles(alice)


def test_a_full_desk_takes_nobody_in(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    roster.remove(alice, user_id=world.users["bob"].id, by=BY)
    seen = TenantLimits("standard", None, None)
    tenant_lifecycle.change_limits(alice.tenant_id, TenantLimits("standard", 2, None), seen=seen, by=BY)
    assert restored(alice, world, moment, "bob") != [""]
    assert "bob" not in roles(alice)


def test_a_disabled_account_is_not_taken_in(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    roster.remove(alice, user_id=world.users["bob"].id, by=BY)
    accounts.set_active(world.users["bob"].id, False, by=BY)
    assert "no account that can be used" in restored(alice, world, moment, "bob")[0]


def test_the_page_shows_then_and_now_and_restores(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    roster.remove(alice, user_id=world.users["bob"].id, by=BY)
    browser = world.browser("alice", "acme")
    page: Any = browser.get("/desk/members/past/", {"at": moment})
    assert "bob@example.com Agent no member" in text_of(page)
    form = {"at": moment, "members": [world.users["bob"].id]}
    assert "1 member was restored." in text_of(browser.send("/desk/members/past/", form, follow=True))
    assert roles(alice)["bob"] is Role.AGENT


def test_before_the_desk_was_created_there_is_no_member_and_the_page_says_why(world: World) -> None:
    browser = world.browser("alice", "acme")
    page: Any = browser.get("/desk/members/past/", {"at": "1999-01-01T00:00:00"})
    assert page.status_code == 400
    assert "The audit trail begins on" in text_of(page)
    assert page.context["rows"] == []
    form = {"at": "1999-01-01T00:00:00", "members": [world.users["alice"].id]}
    assert "Who was a member before that is not known." in text_of(
        browser.send("/desk/members/past/", form, follow=True)
    )
