"""Operators never leave a tenant without an owner, neither in a form nor at the same moment as somebody else."""

from __future__ import annotations

from functools import partial

from tenants.audit_trail.recording import SYSTEM, Actor
from tenants.membership import member_changes, members
from tenants.tenancy.context import Role
from tests.support.operators import Operator, calls, membership_url, text_of
from tests.support.racing import succeed, which_succeed
from tests.support.world import World

LAST = "Only owner. Add another owner first."


def owners(world: World) -> set[str]:
    found = members.members_of(world.context("bob", "acme").repository, consistent=True)
    return {m.email.split("@")[0] for m in found if m.role is Role.OWNER}


def test_the_last_owner_cannot_be_demoted_and_the_form_says_why_at_the_role(world: World, root: Operator) -> None:
    refused = root.fill(membership_url(world, "alice", "acme"), role="admin", why="She asked.")
    assert refused.status_code == 409
    assert LAST in str(refused.context["adminform"].form.errors["role"])
    assert owners(world) == {"alice"}


def test_the_last_owner_cannot_be_removed_and_the_page_says_so_before_and_after(world: World, root: Operator) -> None:
    url = membership_url(world, "alice", "acme", "delete/")
    assert LAST in root.says(url)
    page = root.post(url, {"post": "yes"}, follow=True)
    assert (page.redirect_chain[-1][0], LAST in text_of(page)) == (url, True)
    assert owners(world) == {"alice"}


def test_an_owner_beside_another_one_can_be_removed_or_demoted(world: World, root: Operator) -> None:
    root.fill(membership_url(world, "bob", "acme"), role="owner", why="She asked.")
    url = membership_url(world, "alice", "acme", "delete/")
    assert "Owners are then: Bob Example (bob@example.com)." in root.says(url)
    assert root.fill(membership_url(world, "alice", "acme"), role="agent", why="She asked.").status_code == 302
    assert owners(world) == {"bob"}


def test_the_page_that_asks_says_where_the_person_is_at_this_moment(world: World, root: Operator) -> None:
    world.browser("bob", "acme")
    url = membership_url(world, "bob", "acme", "delete/")
    with calls() as made:
        assert "They are in it now in 1 browser." in root.says(url)
    assert [c.operation for c in made] == ["BatchGetItem", "GetItem", "Query"]


def test_an_operator_and_the_owners_themselves_never_leave_a_desk_without_one(world: World) -> None:
    acme = world.tenants["acme"].tenant_id
    for number in range(8):
        who = f"owner{number}"
        world.add_user(who)
        world.join(who, "acme", Role.OWNER)
        alice, other = world.context("alice", "acme"), world.context(who, "acme")

        by_root = partial(member_changes.remove, user_id=alice.user_id, tenant_id=acme, by=SYSTEM)
        by_owner = partial(member_changes.remove_member, other, user_id=other.user_id, by=Actor(other.user_id))
        assert succeed([by_root, by_owner]) == 1
        assert len(owners(world)) == 1
        if "alice" not in owners(world):
            world.join("alice", "acme", Role.OWNER)
            member_changes.remove(user_id=other.user_id, tenant_id=acme, by=SYSTEM)


def test_of_two_operators_who_demote_the_two_owners_at_the_same_moment_one_is_refused(world: World) -> None:
    acme, alice, bob = world.tenants["acme"].tenant_id, world.users["alice"].id, world.users["bob"].id
    member_changes.set_role(user_id=bob, tenant_id=acme, role=Role.OWNER, seen=Role.AGENT, by=SYSTEM)

    demote = partial(member_changes.set_role, tenant_id=acme, role=Role.AGENT, seen=Role.OWNER, by=SYSTEM)
    for _ in range(8):
        done = which_succeed([partial(demote, user_id=alice), partial(demote, user_id=bob)])
        assert sum(done) == 1
        demoted = alice if done[0] else bob
        member_changes.set_role(user_id=demoted, tenant_id=acme, role=Role.OWNER, seen=Role.AGENT, by=SYSTEM)
