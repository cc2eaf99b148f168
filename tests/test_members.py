"""Members of a desk: roles, removal, leaving, and the owner who is always there."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from portal.errors import Conflict, Forbidden
from tenants import members, roster
from tenants.audit import Actor
from tenants.roles import Role
from tests.world import World
from tickets import lifecycle


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
    assert "That is not a role." in alice.get("/desk/members/").content.decode()
    assert roles(world)["bob"] is Role.AGENT


def test_a_removed_member_is_out_at_the_next_click(world: World) -> None:
    bob = world.browser("bob", "acme")
    assert bob.get("/tickets/").status_code == 200
    world.browser("alice", "acme").send(path(world, "bob", "remove"))
    assert "bob" not in roles(world)
    assert bob.get("/tickets/").status_code != 200


def test_an_admin_touches_nobody_above(world: World) -> None:
    world.add_user("Ada")
    world.join("ada", "acme", Role.ADMIN)
    ada = world.browser("ada", "acme")
    ada.send(path(world, "alice", "remove"))
    ada.send(path(world, "alice", "role"), {"role": "viewer"})
    ada.send(path(world, "bob", "role"), {"role": "owner"})
    assert roles(world) == {"alice": Role.OWNER, "bob": Role.AGENT, "vera": Role.VIEWER, "ada": Role.ADMIN}


def test_the_last_owner_cannot_leave_or_step_down(world: World) -> None:
    alice = world.browser("alice", "acme")
    alice.send("/desk/leave/")
    alice.send(path(world, "alice", "role"), {"role": "agent"})
    assert roles(world)["alice"] is Role.OWNER


def test_of_two_owners_who_leave_at_the_same_moment_one_stays(world: World) -> None:
    for number in range(8):
        who = f"owner{number}"
        world.add_user(who)
        world.join(who, "acme", Role.OWNER)
        pair = [world.context("alice", "acme"), world.context(who, "acme")]

        def leave(tenant: object) -> bool:
            try:
                roster.remove(tenant, user_id=tenant.user_id, by=Actor(tenant.user_id))  # type: ignore[attr-defined, arg-type]
            except (Conflict, Forbidden):
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            assert sum(pool.map(leave, pair)) == 1
        if members.member(pair[1].repository, world.users["alice"].id) is None:
            world.join("alice", "acme", Role.OWNER)
            members.remove(user_id=world.users[who].id, tenant_id=pair[0].tenant_id)


def test_of_two_owners_who_remove_each_other_at_the_same_moment_one_stays(world: World) -> None:
    for number in range(8):
        who = f"owner{number}"
        world.add_user(who)
        world.join(who, "acme", Role.OWNER)
        alice, other = world.context("alice", "acme"), world.context(who, "acme")
        duel = [(alice, other.user_id), (other, alice.user_id)]

        def remove(both: tuple[object, str]) -> bool:
            actor, target = both
            try:
                roster.remove(actor, user_id=target, by=Actor(actor.user_id))  # type: ignore[attr-defined, arg-type]
            except (Conflict, Forbidden):
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            assert sum(pool.map(remove, duel)) <= 1
        left = {m.id for m in members.members_of(alice.repository, consistent=True) if m.role is Role.OWNER}
        assert left
        if alice.user_id not in left:
            world.join("alice", "acme", Role.OWNER)
        if other.user_id in left:
            members.remove(user_id=other.user_id, tenant_id=alice.tenant_id)


def test_anybody_else_may_leave(world: World) -> None:
    world.browser("vera", "acme").send("/desk/leave/")
    assert "vera" not in roles(world)


def test_what_a_removed_member_had_is_handed_on_in_one_step(world: World) -> None:
    numbers = world.tickets("acme", 3)
    alice = world.context("alice", "acme")
    for number in numbers:
        lifecycle.assign(alice, number, to=world.users["bob"].id, version=1)
    browser = world.browser("alice", "acme")
    browser.send(path(world, "bob", "remove"))
    bob = world.users["bob"].id
    assert browser.get(f"/tickets/handover/{bob}/").status_code == 200
    browser.send(f"/tickets/handover/{bob}/", {"to": world.users["alice"].id})
    assert {lifecycle.read(alice, n).resolver for n in numbers} == {world.users["alice"].id}


def test_handing_on_to_a_field_that_is_missing_takes_nothing_from_anybody(world: World) -> None:
    (number,) = world.tickets("acme", 1)
    alice, bob = world.context("alice", "acme"), world.users["bob"].id
    lifecycle.assign(alice, number, to=bob, version=1)
    browser = world.browser("alice", "acme")
    browser.send(f"/tickets/handover/{bob}/")
    assert browser.send(f"/tickets/{number}/assign/", {"version": 2}).status_code == 400
    assert lifecycle.read(alice, number).resolver == bob


@pytest.mark.parametrize("who", ["bob", "vera", "charlie"])
def test_the_members_page_takes_an_admin(world: World, who: str) -> None:
    browser = world.browser(who, "globex" if who == "charlie" else "acme")
    assert browser.get("/desk/members/").status_code == (200 if who == "charlie" else 403)
    browser.send(path(world, "alice", "remove"))
    assert roles(world)["alice"] is Role.OWNER
