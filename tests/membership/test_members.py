"""Members of a desk: roles, removal, leaving, and the owner who is always there."""

from __future__ import annotations

from functools import partial

import pytest

from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes, members
from tenants.membership.stored import MemberItem
from tenants.tenancy.context import Role
from tests.support.racing import succeed
from tests.support.stored import put_all
from tests.support.world import World
from tickets.desk import changing


def roles(world: World) -> dict[str, Role]:
    found = members.members_of(world.context("alice", "acme").repository, consistent=True)
    return {m.email.split("@")[0]: m.role for m in found}


def path(world: World, who: str, what: str) -> str:
    return f"/desk/members/{world.users[who].id}/{what}/"


def test_an_owner_changes_a_role_and_it_counts_at_the_next_click(world: World) -> None:
    bob = world.browser("bob", "acme")
    assert bob.get("/desk/members/").status_code == 403
    world.browser("alice", "acme").send(path(world, "bob", "role"), {"role": "admin"})
    assert roles(world)["bob"] is Role.ADMIN
    assert bob.get("/desk/members/").status_code == 200


@pytest.mark.parametrize("form", [{}, {"role": ""}, {"role": "king"}, {"role": "OWNER"}])
def test_a_role_that_does_not_exist_changes_nothing(world: World, form: dict[str, object]) -> None:
    alice = world.browser("alice", "acme")
    alice.send(path(world, "bob", "role"), form)
    assert "Choose a role from the list." in alice.get("/desk/members/").content.decode()
    assert roles(world)["bob"] is Role.AGENT


def test_an_admin_touches_nobody_above(world: World) -> None:
    world.add_user("Ada")
    world.join("ada", "acme", Role.ADMIN)
    ada = world.browser("ada", "acme")
    ada.send(path(world, "alice", "remove"))
    ada.send(path(world, "alice", "role"), {"role": "viewer"})
    ada.send(path(world, "bob", "role"), {"role": "owner"})
    assert roles(world) == {"alice": Role.OWNER, "bob": Role.AGENT, "vera": Role.VIEWER, "ada": Role.ADMIN}


def test_the_only_owner_is_told_what_to_do_instead_of_being_asked(world: World) -> None:
    alice = world.browser("alice", "acme")
    alice.send("/desk/leave/")
    alice.send(path(world, "alice", "role"), {"role": "agent"})
    assert roles(world)["alice"] is Role.OWNER
    page = alice.get("/desk/leave/").content.decode()
    assert "You are the only owner. Add another owner first." in page
    assert '/desk/leave/"' not in page
    for other in ("/desk/members/", "/account/"):
        assert "/desk/leave/" not in alice.get(other).content.decode()
    world.join("charlie", "acme", Role.OWNER)
    assert '/desk/leave/"' in alice.get("/desk/leave/").content.decode()
    for other in ("/desk/members/", "/account/"):
        assert "/desk/leave/" in alice.get(other).content.decode()


@pytest.mark.parametrize("each_removes", ["themselves", "the other"])
def test_of_two_owners_who_go_at_the_same_moment_one_stays(world: World, each_removes: str) -> None:
    for number in range(8):
        who = f"owner{number}"
        world.add_user(who)
        world.join(who, "acme", Role.OWNER)
        pair = [world.context("alice", "acme"), world.context(who, "acme")]
        targets = [tenant.user_id for tenant in pair]
        if each_removes == "the other":
            targets.reverse()
        gone = succeed(
            [
                partial(member_changes.remove_member, tenant, user_id=target, by=Actor(tenant.user_id))
                for tenant, target in zip(pair, targets, strict=True)
            ]
        )
        assert gone == 1 if each_removes == "themselves" else gone <= 1
        left = {m.id for m in members.owners_of(pair[0].repository)}
        assert left
        if pair[0].user_id not in left:
            world.join("alice", "acme", Role.OWNER)
        if pair[1].user_id in left:
            member_changes.unseed_member(pair[1].user_id, pair[0].tenant_id)


def test_what_a_removed_member_had_is_handed_on_in_one_step(world: World) -> None:
    numbers = world.tickets("acme", 3)
    alice = world.context("alice", "acme")
    for number in numbers:
        changing.assign(alice, number, to=world.users["bob"].id, version=1)
    browser = world.browser("alice", "acme")
    browser.send(path(world, "bob", "remove"))
    bob = world.users["bob"].id
    assert browser.get(f"/tickets/handover/{bob}/").status_code == 200
    browser.send(f"/tickets/handover/{bob}/", {"to": world.users["alice"].id})
    assert {changing.read(alice, n).resolver for n in numbers} == {world.users["alice"].id}


def test_handing_on_to_a_field_that_is_missing_takes_nothing_from_anybody(world: World) -> None:
    (number,) = world.tickets("acme", 1)
    alice, bob = world.context("alice", "acme"), world.users["bob"].id
    changing.assign(alice, number, to=bob, version=1)
    browser = world.browser("alice", "acme")
    browser.send(f"/tickets/handover/{bob}/")
    assert browser.send(f"/tickets/{number}/assign/", {"version": 2}).status_code == 400
    assert changing.read(alice, number).resolver == bob


def test_removing_asks_first_and_a_second_time_there_is_nobody(world: World) -> None:
    alice = world.browser("alice", "acme")
    assert b"Remove Bob Example?" in alice.get(path(world, "bob", "remove")).content
    assert "bob" in roles(world)
    assert alice.send(path(world, "bob", "remove")).status_code == 302
    assert alice.send(path(world, "bob", "remove")).status_code == 404
    assert alice.get(path(world, "charlie", "remove")).status_code == 404, "nor anybody of another desk"


def test_who_is_out_is_told_so_and_a_form_that_was_open_writes_nothing(world: World) -> None:
    world.tickets("acme", 1)
    bob, alice = world.browser("bob", "acme"), world.browser("alice", "acme")
    mark = bob.mark()
    alice.send(path(world, "bob", "role"), {"role": "admin"})
    alice.send(path(world, "bob", "remove"))
    page = bob.get("/tickets/", follow=True)
    assert b"You no longer have access to this desk" in page.content
    assert b"Acme" not in page.content
    assert bob.post("/tickets/1/comment/", {"_page": mark, "body": "Me again"}).status_code == 409
    assert int(changing.read(world.context("alice", "acme"), 1).comment_count) == 0
    world.join("bob", "acme", Role.VIEWER)
    assert roles(world)["bob"] is Role.VIEWER, "somebody invited back has the new role alone"
    assert world.browser("bob").get("/desk/members/").status_code == 403


def test_who_is_out_of_one_desk_goes_on_in_another(world: World) -> None:
    world.join("charlie", "acme", Role.AGENT)
    charlie = world.browser("charlie", "acme")
    world.browser("alice", "acme").send(path(world, "charlie", "remove"))
    page = charlie.get("/tickets/", follow=True)
    assert b"no longer have access to the desk you used last" in page.content
    charlie.enter(world.tenants["globex"].tenant_id)
    assert charlie.get("/tickets/").status_code == 200
    assert b"no longer" not in charlie.get("/tenants/").content


def test_leaving_asks_first_and_then_shows_the_other_desks(world: World) -> None:
    vera = world.browser("vera", "acme")
    assert b"Leave Acme?" in vera.get("/desk/leave/").content
    alice = world.browser("alice", "acme")
    assert alice.get(path(world, "alice", "remove"))["Location"] == "/acme/desk/leave/", "nobody removes themselves"
    assert "vera" in roles(world)
    page = vera.send("/desk/leave/", follow=True)
    assert b"You have left Acme." in page.content
    assert vera.get("/tickets/").status_code == 302
    assert "vera" not in roles(world)


def test_an_owner_beside_another_may_step_down_and_leave(world: World) -> None:
    world.join("charlie", "acme", Role.OWNER)
    alice = world.browser("alice", "acme")
    alice.send(path(world, "alice", "role"), {"role": "agent"})
    assert roles(world)["alice"] is Role.AGENT
    assert alice.get("/desk/members/").status_code == 403
    alice.send("/desk/leave/")
    assert [m.name for m in members.memberships_of(world.users["alice"].id)] == ["Globex"]


def test_of_two_who_change_one_role_at_the_same_moment_both_sides_of_it_agree(world: World) -> None:
    tenant = world.context("alice", "acme")
    bob = world.users["bob"].id

    change = partial(member_changes.change_role, tenant, user_id=bob, by=Actor(tenant.user_id))
    for _ in range(6):
        succeed([partial(change, to=role) for role in (Role.ADMIN, Role.VIEWER, Role.AGENT)])
        (membership,) = members.memberships_of(bob)
        assert membership.role is roles(world)["bob"]


def test_a_long_list_of_members_is_searched(world: World) -> None:
    at = "2026-01-01T00:00:00.000000Z"
    tenant_id = world.tenants["acme"].tenant_id
    put_all(
        MemberItem(tenant_id, f"{n:032x}", name=f"Person {n}", email=f"p{n}@example.com", role="agent", created_at=at)
        for n in range(150)
    )
    alice = world.browser("alice", "acme")
    page = alice.get("/desk/members/")
    assert len(page.context["people"]) == members.AT_HAND
    assert b"Next page" in page.content
    found = alice.get("/desk/members/?q=PERSON+149").context["people"]
    assert [person["email"] for person in found] == ["p149@example.com"]
    assert "No results for “nobody”".encode() in alice.get("/desk/members/?q=nobody").content
