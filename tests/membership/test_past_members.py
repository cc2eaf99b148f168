"""Who was a member at a time, and taking members in again."""

from __future__ import annotations

from typing import Any

from portal import clock
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.lifecycle import tenant_lifecycle
from tenants.lifecycle.tenant_lifecycle import TenantLimits
from tenants.membership import member_changes, members, past_roster
from tenants.sign_in import accounts
from tenants.tenancy.context import Role, TenantContext
from tests.desk.test_cost import spent
from tests.support.commands import run
from tests.support.operators import text_of
from tests.support.world import World

ADDRESS = "/desk/members/past/"
BY = Actor("0" * 32, "alice@example.com", "test")


def roles(tenant: TenantContext) -> dict[str, Role]:
    return {m.email.split("@")[0]: m.role for m in members.members_of(tenant.repository, consistent=True)}


def then(tenant: TenantContext, moment: str) -> dict[str, Role]:
    return {one.email.split("@")[0]: one.then for one in past_roster.at(tenant, moment) if one.then}


def restored(tenant: TenantContext, world: World, moment: str, *who: str) -> list[str]:
    """The reasons why these people were not restored, "" for who was."""
    now = {m.id: m.role for m in members.members_of(tenant.repository, consistent=True)}
    seen = {world.users[name].id: now.get(world.users[name].id) for name in who}
    return [one.left for one in past_roster.restore(tenant, seen, moment, by=BY)]


def restore(world: World, moment: str, *who: str, by: str = "alice") -> Any:
    """The page that asks before these people are restored."""
    ids = [world.users[name].id for name in who]
    return world.browser(by, "acme").send(ADDRESS + "restore/", {"at": moment, "members": ids}, follow=True)


def confirm(world: World, asked: Any, by: str = "alice") -> Any:
    """Press the button of that page, and follow to what it says then."""
    form = {"at": asked.context["at"], "members": [value for _, value in asked.context["chosen"]], "confirmed": "yes"}
    return world.browser(by, "acme").send(ADDRESS + "restore/", form, follow=True)


def test_what_the_trail_tells_of_a_member_by_the_id_that_they_had_elsewhere_is_theirs(
    world: World, alice: TenantContext
) -> None:
    """As in a desk that was exported where Bob's account had another id, and brought in here."""
    elsewhere = "e" * 32
    rows = (
        (AuditAction.MEMBER_ADDED, {}, {"role": "viewer"}),
        (AuditAction.MEMBER_ROLE_CHANGED, {"role": "viewer"}, {"role": "agent"}),
    )
    moments = [clock.stamp()]
    for action, before, after in rows:
        recording.record(AuditEntry(alice.tenant_id, action, BY, "user", elsewhere, "bob@example.com", before, after))
        moments.append(clock.stamp())
    assert [then(alice, moment).get("bob") for moment in moments] == [None, Role.VIEWER, Role.AGENT]


def test_at_each_moment_the_members_are_those_who_were_stored(world: World, alice: TenantContext) -> None:
    bob, vera, dora = world.users["bob"].id, world.users["vera"].id, world.add_user("Dora")
    moments = [(clock.stamp(), roles(alice))]
    for change in (
        lambda: member_changes.change_role(alice, user_id=bob, to=Role.ADMIN, by=BY),
        lambda: member_changes.add(user=dora, tenant=world.tenants["acme"], role=Role.AGENT, by=BY),
        lambda: member_changes.remove_member(alice, user_id=vera, by=BY),
        lambda: member_changes.remove_member(world.context("dora", "acme"), user_id=dora.id, by=BY),
        lambda: member_changes.add(user=world.users["vera"], tenant=world.tenants["acme"], role=Role.OWNER, by=BY),
        lambda: member_changes.change_role(alice, user_id=bob, to=Role.VIEWER, by=BY),
    ):
        change()
        moments.append((clock.stamp(), roles(alice)))
    for moment, stored in moments:
        assert then(alice, moment) == stored


def test_a_removed_member_is_taken_in_again_with_the_role_of_then(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    member_changes.remove_member(alice, user_id=world.users["bob"].id, by=BY)
    assert restored(alice, world, moment, "bob") == [""]
    assert roles(alice)["bob"] is Role.AGENT
    assert world.browser("bob", "acme").get("/tickets/").status_code == 200


def test_a_role_is_given_back(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    member_changes.change_role(alice, user_id=world.users["bob"].id, to=Role.VIEWER, by=BY)
    assert restored(alice, world, moment, "bob", "vera") == ["", "They are a viewer, as they were then."]
    assert roles(alice)["bob"] is Role.AGENT


def test_who_left_by_themselves_is_not_taken_in(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    member_changes.remove_member(world.context("bob", "acme"), user_id=world.users["bob"].id, by=BY)
    assert "left the desk by themselves. Invite them instead." in restored(alice, world, moment, "bob")[0]
    assert "bob" not in roles(alice)


def test_an_admin_makes_nobody_an_owner_again(world: World, alice: TenantContext) -> None:
    world.add_user("Ada")
    world.join("ada", "acme", Role.ADMIN)
    member_changes.add(user=world.users["charlie"], tenant=world.tenants["acme"], role=Role.OWNER, by=BY)
    moment = clock.stamp()
    member_changes.remove_member(alice, user_id=world.users["charlie"].id, by=BY)
    assert "Only an owner" in restored(world.context("ada", "acme"), world, moment, "charlie")[0]
    assert "charlie" not in roles(alice)


def test_a_full_desk_takes_nobody_in(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    member_changes.remove_member(alice, user_id=world.users["bob"].id, by=BY)
    seen = TenantLimits("standard", None, None)
    tenant_lifecycle.change_limits(alice.tenant_id, TenantLimits("standard", 2, None), seen=seen, by=BY)
    assert restored(alice, world, moment, "bob") != [""]
    assert "bob" not in roles(alice)


def test_a_disabled_account_is_not_taken_in(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    member_changes.remove_member(alice, user_id=world.users["bob"].id, by=BY)
    accounts.set_active(world.users["bob"].id, False, by=BY)
    assert "account is disabled" in restored(alice, world, moment, "bob")[0]


# --- the pages ---


def test_who_was_removed_stands_there_by_name_and_after_the_restoration_as_a_member(
    world: World, alice: TenantContext
) -> None:
    moment = clock.stamp()
    member_changes.remove_member(alice, user_id=world.users["bob"].id, by=BY)
    browser = world.browser("alice", "acme")
    assert "Bob Example bob@example.com Agent No member Different" in text_of(browser.get(ADDRESS, {"at": moment}))
    asked = restore(world, moment, "bob")
    assert "Restore 1 member to" in text_of(asked)
    assert "Bob Example bob@example.com Role: No member → Agent" in text_of(asked)
    assert "bob" not in roles(alice)
    assert "1 member was restored: Bob Example is an agent." in text_of(confirm(world, asked))
    assert roles(alice)["bob"] is Role.AGENT
    page = browser.get(ADDRESS, {"at": moment})
    assert "Bob Example bob@example.com Agent Agent" in text_of(page)
    assert 'name="members"' not in page.content.decode()
    assert "Restore the selected" not in text_of(page)


def test_who_was_erased_is_not_offered_and_not_taken_in(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    member_changes.remove_member(alice, user_id=world.users["bob"].id, by=BY)
    run("erase_person", "acme", "bob@example.com")
    page = world.browser("alice", "acme").get(ADDRESS, {"at": moment})
    assert "Agent No member Different They were erased from the desk. Invite them instead." in text_of(page)
    assert "Bob" not in text_of(page)
    assert "Nobody can be restored" in text_of(restore(world, moment, "bob"))
    form = {"at": moment, "members": [f"{world.users['bob'].id}.none"], "confirmed": "yes"}
    said = text_of(world.browser("alice", "acme").send(ADDRESS + "restore/", form, follow=True))
    assert "was not restored. They were erased from the desk." in said
    assert "bob" not in roles(alice)


def test_who_became_a_member_later_is_shown_and_not_offered(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    dora = world.add_user("Dora")
    member_changes.add(user=dora, tenant=world.tenants["acme"], role=Role.AGENT, by=BY)
    page = world.browser("alice", "acme").get(ADDRESS, {"at": moment})
    assert "Dora Example dora@example.com No member Agent Different They became a member later." in text_of(page)
    assert dora.id not in page.content.decode()  # type: ignore[attr-defined]
    member_changes.remove_member(alice, user_id=dora.id, by=BY)
    assert "Dora" not in text_of(world.browser("alice", "acme").get(ADDRESS, {"at": moment}))


def test_the_page_that_asks_tells_who_will_change_and_why_others_will_not(world: World, alice: TenantContext) -> None:
    world.add_user("Ada")
    world.join("ada", "acme", Role.ADMIN)
    moment = clock.stamp()
    member_changes.change_role(alice, user_id=world.users["vera"].id, to=Role.AGENT, by=BY)
    member_changes.remove_member(world.context("bob", "acme"), user_id=world.users["bob"].id, by=BY)
    member_changes.change_role(alice, user_id=world.users["ada"].id, to=Role.OWNER, by=BY)
    member_changes.change_role(alice, user_id=world.users["alice"].id, to=Role.ADMIN, by=BY)
    asked = restore(world, moment, "vera", "bob", "ada", "alice")
    page = text_of(asked)
    assert "Restore 1 member to" in page
    assert "1 of the 4 selected will change." in page
    assert "Role: Agent → Viewer" in page
    assert "Bob Example (bob@example.com): Agent then, no member now. They left the desk by themselves. Invite" in page
    assert "Ada Example (ada@example.com): Admin then, Owner now. Only an owner can change this." in page
    assert "Alice Example (alice@example.com): Owner then, Admin now. Only an owner can change this." in page
    assert [one.email for one, _ in asked.context["chosen"]] == ["vera@example.com"]
    none = restore(world, moment, "bob")
    assert "Nobody can be restored" in text_of(none)
    assert 'name="confirmed"' not in none.content.decode()


def test_whose_role_is_changed_after_the_page_was_shown_is_left(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    vera = world.users["vera"].id
    member_changes.change_role(alice, user_id=vera, to=Role.AGENT, by=BY)
    asked = restore(world, moment, "vera")
    member_changes.change_role(alice, user_id=vera, to=Role.ADMIN, by=BY)
    said = text_of(confirm(world, asked))
    assert "Nobody was restored." in said
    assert "Vera Example was not restored. Somebody else has just changed this membership." in said
    assert roles(alice)["vera"] is Role.ADMIN


def test_who_gives_up_their_own_rights_restores_the_others_first(world: World, alice: TenantContext) -> None:
    bob, vera = world.users["bob"].id, world.users["vera"].id
    moment = clock.stamp()  # when Bob was an agent
    member_changes.change_role(alice, user_id=bob, to=Role.ADMIN, by=BY)
    member_changes.change_role(alice, user_id=vera, to=Role.AGENT, by=BY)
    asked = restore(world, moment, "bob", "vera", by="bob")
    done = confirm(world, asked, by="bob")
    assert done.redirect_chain[-1][0].endswith("/tickets/")
    assert (roles(alice)["bob"], roles(alice)["vera"]) == (Role.AGENT, Role.VIEWER)


def test_the_only_owner_stays_one(world: World, alice: TenantContext) -> None:
    member_changes.add(user=world.users["charlie"], tenant=world.tenants["acme"], role=Role.OWNER, by=BY)
    charlie = world.context("charlie", "acme")
    member_changes.change_role(charlie, user_id=alice.user_id, to=Role.AGENT, by=BY)
    moment = clock.stamp()
    member_changes.change_role(charlie, user_id=alice.user_id, to=Role.OWNER, by=BY)
    member_changes.remove_member(charlie, user_id=charlie.user_id, by=BY)
    assert "Agent then, Owner now. Only owner. Add another owner first." in text_of(restore(world, moment, "alice"))


def test_nobody_selected_and_a_damaged_selection_are_said(world: World, alice: TenantContext) -> None:
    moment = clock.stamp()
    assert "Select members first." in text_of(restore(world, moment))
    form = {"at": moment, "members": [f"{alice.user_id}.king"], "confirmed": "yes"}
    page = world.browser("alice", "acme").send(ADDRESS + "restore/", form, follow=True)
    assert "The selection is damaged." in text_of(page)


def test_the_page_takes_two_trips_and_a_third_for_the_names_of_those_who_are_gone(
    world: World, alice: TenantContext
) -> None:
    moment, browser = clock.stamp(), world.browser("alice", "acme")
    bill = spent(browser, f"{ADDRESS}?at={moment}")
    assert (bill.trips, len(bill.calls)) == (2, 3)  # who calls; members beside the trail
    member_changes.remove_member(alice, user_id=world.users["bob"].id, by=BY)
    member_changes.remove_member(alice, user_id=world.users["vera"].id, by=BY)
    bill = spent(browser, f"{ADDRESS}?at={moment}")
    assert (bill.trips, len(bill.calls), bill.calls[-1].operation) == (3, 4, "BatchGetItem")


def test_before_the_desk_was_created_there_is_no_member_and_the_page_says_why(world: World) -> None:
    browser = world.browser("alice", "acme")
    page: Any = browser.get("/desk/members/past/", {"at": "1999-01-01T00:00:00"})
    assert page.status_code == 400
    assert "The audit trail begins on" in text_of(page)
    assert page.context["people"] == []
    form = {"at": "1999-01-01T00:00:00", "members": [world.users["alice"].id]}
    assert "Who was a member before that is not known." in text_of(
        browser.send(ADDRESS + "restore/", form, follow=True)
    )
