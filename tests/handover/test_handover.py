"""What somebody who has left had to do, and how it is handed on."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils.html import strip_tags

from tenants.audit_trail import browsing
from tenants.membership import member_changes
from tenants.tenancy.context import Role
from tests.support import folding
from tests.support.world import World
from tickets.desk import changing
from tickets.handover import handover
from tickets.ticket.fields import Status


@pytest.fixture
def left(world: World) -> World:
    """Bob has left Acme with ticket 1 open, 2 pending and 3 resolved; 4 is nobody's."""
    world.tickets("acme", 4)
    alice = world.context("alice", "acme")
    for number in (1, 2, 3):
        changing.assign(alice, number, to=world.users["bob"].id, version=1)
    changing.change_status(alice, 2, to=Status.PENDING, version=2)
    changing.change_status(alice, 3, to=Status.RESOLVED, version=2)
    world.browser("alice", "acme").send(f"/desk/members/{world.users['bob'].id}/remove/")
    return world


def path(world: World, who: str = "bob") -> str:
    return f"/tickets/handover/{world.users[who].id}/"


def resolvers(world: World) -> list[str]:
    alice = world.context("alice", "acme")
    names = {user.id: name for name, user in world.users.items()}
    return [names.get(changing.read(alice, number).resolver, "") for number in (1, 2, 3, 4)]


def said(answer: Any) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def test_removing_somebody_with_tickets_leads_to_handing_them_on(world: World) -> None:
    world.tickets("acme", 1)
    bob, vera = world.users["bob"].id, world.users["vera"].id
    changing.assign(world.context("alice", "acme"), 1, to=bob, version=1)
    alice = world.browser("alice", "acme")
    with_tickets = alice.send(f"/desk/members/{bob}/remove/", follow=True)
    assert with_tickets.redirect_chain[-1][0] == f"/acme/tickets/handover/{bob}/"
    without = alice.send(f"/desk/members/{vera}/remove/", follow=True)
    assert without.redirect_chain[-1][0] == f"/acme/tickets/handover/?of={vera}"


@pytest.mark.parametrize(
    ("to", "whose", "address"), [("alice", "Alice Example", "alice@example.com"), ("none", "", "nobody")]
)
def test_what_is_unresolved_is_handed_on_and_each_ticket_and_the_trail_tell_to_whom(
    left: World, to: str, whose: str, address: str
) -> None:
    alice = left.browser("alice", "acme")
    answer = alice.send(path(left), {"to": left.users[to].id if whose else to}, follow=True)
    assert ("2 tickets were reassigned" if whose else "2 tickets were unassigned") in said(answer)
    assert resolvers(left) == [to if whose else ""] * 2 + ["bob", ""]
    if whose:
        assert f"to {whose}." in said(answer)
        page = strip_tags(alice.get("/tickets/2/").content.decode())
        assert f"reassigned it from Bob Example to {whose}" in " ".join(page.split())
    row = browsing.page(left.context("alice", "acme").repository, only=browsing.TrailFilter()).rows[0]
    assert (row.action, row.entity, row.actor) == ("tickets.handed_on", "bob@example.com", "alice@example.com")
    assert row.after == {"tickets": "2", "to": address}


@pytest.mark.parametrize("to", ["vera", "bob", "charlie", "nobody at all"])
def test_nobody_gets_them_who_cannot_have_tickets(left: World, to: str) -> None:
    who = left.users[to].id if to in left.users else "x"
    answer = left.browser("alice", "acme").send(path(left), {"to": who})
    assert answer.status_code == 422
    assert answer.context["form"].errors["to"]
    assert resolvers(left) == ["bob", "bob", "bob", ""]


def test_tickets_are_not_handed_on_to_who_has_them(world: World) -> None:
    world.tickets("acme", 1)
    changing.assign(world.context("alice", "acme"), 1, to=world.users["bob"].id, version=1)
    answer = world.browser("alice", "acme").send(path(world), {"to": world.users["bob"].id})
    assert answer.status_code == 422
    assert changing.read(world.context("alice", "acme"), 1).version == 2


def test_more_than_one_request_takes_is_shown_again(left: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handover, "LIMIT", 1)
    monkeypatch.setattr("tickets.desk.bulk.limit", lambda tenant: 1)
    alice = left.browser("alice", "acme")
    assert b"1 or more unresolved ticket" in alice.get(path(left)).content
    answer = alice.send(path(left), {"to": left.users["alice"].id}, follow=True)
    assert answer.redirect_chain[-1][0] == f"/acme{path(left)}"
    alice.send(path(left), {"to": left.users["alice"].id})
    assert resolvers(left) == ["alice", "alice", "bob", ""]


def test_what_somebody_changes_meanwhile_is_not_lost(left: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between reading the list and moving its tickets, Alice closes one: it stays closed, the other moves."""
    move = handover._move

    def late(tenant: Any, rows: Any, to: str, name: str) -> int:
        monkeypatch.setattr(handover, "_move", move)
        changing.change_status(left.context("alice", "acme"), 1, to=Status.CLOSED, version=2)
        return move(tenant, rows, to, name)

    monkeypatch.setattr(handover, "_move", late)
    left.browser("alice", "acme").send(path(left), {"to": left.users["alice"].id})
    assert resolvers(left) == ["bob", "alice", "bob", ""]
    assert changing.read(left.context("alice", "acme"), 1).status == "closed"


def test_former_members_are_listed_by_what_the_trail_calls_them(left: World) -> None:
    world = left
    world.add_user("Nora")
    world.join("nora", "acme", Role.AGENT)
    changing.assign(world.context("alice", "acme"), 4, to=world.users["nora"].id, version=1)
    member_changes.unseed_member(world.users["nora"].id, world.tenants["acme"].tenant_id)  # by a command: no row
    folding.Follower().fold()
    loads = world.browser("alice", "acme").get("/tickets/handover/").context["loads"]
    assert [(load.name, load.count) for load in loads] == [("bob@example.com", 2), ("", 1)]


def test_handing_on_takes_an_admin_and_somebody_who_was_here(left: World) -> None:
    alice = left.browser("alice", "acme")
    assert alice.get(path(left, "charlie")).status_code == 404
    assert alice.get("/tickets/handover/nobody/").status_code == 404
    assert left.browser("charlie").get(path(left)).status_code == 404
    left.add_user("Nora")
    left.join("nora", "acme", Role.AGENT)
    for who in ("nora", "vera"):
        browser = left.browser(who)
        assert browser.get("/tickets/handover/").status_code == 403
        assert browser.send(path(left), {"to": left.users["alice"].id}).status_code == 403
    assert resolvers(left)[0] == "bob"
