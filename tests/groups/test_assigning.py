"""Tickets of a group go to its members: in turn, or to who has the fewest, exactly, whoever is away or full."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from portal.dynamo import meter
from portal.errors import Throttled
from tenants.membership import member_changes
from tenants.tenancy.context import Role, TenantContext
from tests.support import defined
from tests.support.world import World
from tickets.desk import changing, creating, many, timelines
from tickets.desk.changing import Wishes
from tickets.desk.many import TicketEdit
from tickets.desk_setup.setup import Assigning
from tickets.groups import agent_changes, assigning, roster
from tickets.ticket.fields import Status

FAR: str = "2999-01-01"
TEAM = ("bob", "dora", "erik", "fay")


@pytest.fixture
def alice(world: World) -> TenantContext:
    for name in ("Dora", "Erik", "Fay"):
        world.add_user(name)
        world.join(name.lower(), "acme", Role.AGENT)
    return world.context("alice", "acme")


def add_group(world: World, alice: TenantContext, name: str, *args: Any, **named: Any) -> str:
    """Make a group, of which the next request of Alice knows."""
    alice.items.clear()
    return defined.add_group(world, name, *args, **named)


def who(world: World, user_id: str) -> str:
    return next((name for name, user in world.users.items() if user.id == user_id), "")


def in_turn(world: World, *names: str) -> list[str]:
    """These people in the order of their turns."""
    return sorted(names, key=lambda one: world.users[one].id)


def assignees(world: World, tenant: TenantContext, group: str, count: int) -> list[str]:
    """Open tickets in a group one after the other, and say who got each."""
    numbers = [creating.create(tenant, title=f"Ticket {n}", group=group) for n in range(count)]
    return [who(world, changing.read(tenant, number).resolver) for number in numbers]


def away(world: World, name: str, *, until: str = FAR, to: str = "", capacity: int | None = None) -> None:
    tenant, by = defined.admin_of(world, "acme")
    user_id = world.users[name].id
    agent_changes.set_availability(
        tenant,
        user_id,
        away_until=until,
        stand_in=world.users[to].id if to else "",
        capacity=capacity,
        version=roster.read(tenant).agent(user_id).version,
        by=by,
    )


def test_tickets_are_assigned_in_turn_and_the_history_says_so(world: World, alice: TenantContext) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=TEAM)
    ring = in_turn(world, *TEAM)
    assert assignees(world, alice, group, 9) == [*ring, *ring, ring[0]]
    summary, _ = timelines.head(alice, 1)
    assert (summary.resolver_name, summary.version) == (f"{ring[0].capitalize()} Example", 2)


def test_a_group_by_hand_and_one_without_members_leave_tickets_to_be_taken(world: World, alice: TenantContext) -> None:
    by_hand = add_group(world, alice, "By hand", members=TEAM)
    empty = add_group(world, alice, "Empty", Assigning.TURN)
    assert assignees(world, alice, by_hand, 2) == ["", ""]
    assert assignees(world, alice, empty, 1) == [""]
    chosen = creating.create(alice, title="Chosen", group=by_hand, resolver=alice.user_id)
    assert changing.read(alice, chosen).resolver == alice.user_id


@pytest.mark.parametrize("assigns", [Assigning.TURN, Assigning.LOAD])
def test_many_at_once_are_shared_out_exactly(world: World, alice: TenantContext, assigns: Assigning) -> None:
    group = add_group(world, alice, "Billing", assigns, members=TEAM)
    with ThreadPoolExecutor(6) as pool:
        numbers = list(pool.map(lambda n: creating.create(alice, title=f"Ticket {n}", group=group), range(16)))
    got = Counter(who(world, changing.read(alice, number).resolver) for number in numbers)
    assert got == Counter(dict.fromkeys(TEAM, 4))


def test_who_has_the_fewest_open_tickets_gets_the_next_one(world: World, alice: TenantContext) -> None:
    group = add_group(world, alice, "Billing", Assigning.LOAD, members=("bob", "dora", "erik"))
    for name, count in (("bob", 3), ("dora", 1)):
        for n in range(count):
            creating.create(alice, title=f"{name} {n}", resolver=world.users[name].id)
    waiting = creating.create(alice, title="Waits for an answer", resolver=world.users["erik"].id)
    changing.change(alice, waiting, Wishes(status=Status.PENDING))  # no work for anybody now
    got = assignees(world, alice, group, 5)
    assert got[0] == "erik"
    assert Counter(got) == {"erik": 3, "dora": 2}


def test_who_has_as_many_as_they_can_take_gets_no_more(world: World, alice: TenantContext) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=("bob", "dora"))
    away(world, "bob", until="", capacity=2)
    away(world, "dora", until="", capacity=3)
    with ThreadPoolExecutor(4) as pool:
        numbers = list(pool.map(lambda n: creating.create(alice, title=f"Ticket {n}", group=group), range(8)))
    got = Counter(who(world, changing.read(alice, number).resolver) for number in numbers)
    assert got == {"bob": 2, "dora": 3, "": 3}


def test_a_limit_holds_beyond_what_is_counted_of_a_person_without_one(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assigning, "_COUNTED", 1)
    monkeypatch.setattr(assigning, "LATEST", 0)  # the index alone says what they have
    group = add_group(world, alice, "Billing", Assigning.TURN, members=("bob",))
    away(world, "bob", until="", capacity=3)
    assert assignees(world, alice, group, 4) == ["bob", "bob", "bob", ""]


def test_who_is_away_gives_their_turn_to_their_stand_in_until_they_are_back(world: World, alice: TenantContext) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=("bob", "dora"))
    away(world, "bob", until="2999-01-04", to="erik")
    away(world, "erik", until="2999-01-03", to="fay")
    assert sorted(assignees(world, alice, group, 4)) == ["dora", "dora", "fay", "fay"]
    found, bob = roster.read(alice), world.users["bob"].id
    for day, expected in (("2999-01-02", "fay"), ("2999-01-03", "erik"), ("2999-01-04", "bob")):
        assert who(world, found.acting_for(bob, day)) == expected
    assert who(world, roster.read(alice).acting_for(bob, roster.today(alice))) == "fay"


def test_stand_ins_in_a_circle_and_those_without_one_are_passed_over(world: World, alice: TenantContext) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=("bob", "dora", "erik"))
    away(world, "bob", to="dora")
    away(world, "dora", to="bob")
    assert assignees(world, alice, group, 2) == ["erik", "erik"]
    away(world, "erik")
    assert assignees(world, alice, group, 1) == [""]


def test_who_is_no_agent_any_more_is_passed_over(world: World, alice: TenantContext) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=("bob", "dora"))
    by = defined.admin_of(world, "acme")[1]
    member_changes.change_role(alice, user_id=world.users["dora"].id, to=Role.VIEWER, by=by)
    assert assignees(world, alice, group, 2) == ["bob", "bob"]


def test_a_ticket_is_created_even_where_no_turn_can_be_had(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=TEAM)

    def fails(*args: Any, **named: Any) -> None:
        raise Throttled("The database is busy.")

    monkeypatch.setattr(assigning, "_store", fails)
    assert assignees(world, alice, group, 1) == [""]


# --- tickets that come into a group later ---


def test_a_ticket_that_comes_into_a_group_goes_to_a_member_or_stays_with_one(
    world: World, alice: TenantContext
) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=("bob", "dora"))
    by_hand = add_group(world, alice, "By hand", members=("erik",))
    ring = in_turn(world, "bob", "dora")
    numbers = {name: creating.create(alice, title=name, resolver=world.users[name].id) for name in ("bob", "erik")}
    unassigned = creating.create(alice, title="Nobody's")
    for number in (unassigned, *numbers.values()):
        changing.change(alice, number, Wishes(group=group))
    got = {name: who(world, changing.read(alice, number).resolver) for name, number in numbers.items()}
    assert got == {"bob": "bob", "erik": ring[1]}
    assert who(world, changing.read(alice, unassigned).resolver) == ring[0]
    changing.change(alice, unassigned, Wishes(group=by_hand))
    assert changing.read(alice, unassigned).resolver == ""
    changing.change(alice, unassigned, Wishes(group=group, resolver=alice.user_id))
    assert changing.read(alice, unassigned).resolver == alice.user_id


def test_resolved_tickets_and_those_that_are_restored_keep_their_assignee(world: World, alice: TenantContext) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=("bob",))
    number = creating.create(alice, title="Done", resolver=alice.user_id)
    changing.change(alice, number, Wishes(status=Status.RESOLVED))
    changing.change(alice, number, Wishes(group=group))
    assert changing.read(alice, number).resolver == alice.user_id
    changing.change(alice, number, Wishes(group="", status=Status.OPEN))
    changing.change(alice, number, Wishes(group=group, restoring="restored:"))
    assert changing.read(alice, number).resolver == alice.user_id


def test_tickets_that_come_in_together_are_shared_out_and_taken_back_as_they_were(
    world: World, alice: TenantContext
) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=("bob", "dora"))
    numbers = [creating.create(alice, title=f"Ticket {n}", resolver=alice.user_id) for n in range(4)]
    outcomes = many.edit(alice, dict.fromkeys(numbers), TicketEdit.of({"group": group}))
    got = Counter(who(world, changing.read(alice, number).resolver) for number in numbers)
    assert got == {"bob": 2, "dora": 2}
    many.take_back(alice, [one.entry for one in outcomes if one.entry])
    for number in numbers:
        summary = changing.read(alice, number)
        assert (summary.group, summary.resolver) == ("", alice.user_id)


def test_a_form_that_leaves_the_group_alone_assigns_nobody(world: World, alice: TenantContext) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=("bob",))
    number = creating.create(alice, title="One", resolver=alice.user_id)
    changing.change(alice, number, Wishes(group=group, resolver=alice.user_id))  # by somebody else meanwhile
    changing.edit(alice, number, version=2, title="Two", group="")
    summary = changing.read(alice, number)
    assert (summary.title, summary.group, summary.resolver) == ("Two", group, alice.user_id)


def test_new_tickets_come_into_the_default_group(world: World, alice: TenantContext) -> None:
    add_group(world, alice, "First", is_default=True)
    second = add_group(world, alice, "Second", Assigning.TURN, members=("bob",), is_default=True)
    number = creating.create(alice, title="One")
    summary = changing.read(alice, number)
    assert (summary.group, who(world, summary.resolver)) == (second, "bob")


def test_the_same_form_sent_twice_makes_one_ticket(world: World, alice: TenantContext) -> None:
    group = add_group(world, alice, "Billing", Assigning.TURN, members=TEAM)
    request_id = changing.new_request_id()
    made = {creating.create(alice, title="One", group=group, request_id=request_id) for _ in range(2)}
    assert made == {1}


@pytest.mark.parametrize(
    ("assigns", "reads", "writes"),
    [(Assigning.HAND, 0, 0), (Assigning.TURN, 2, 1), (Assigning.LOAD, 2 + len(TEAM), 1)],
)
def test_what_an_assignment_costs(
    world: World, alice: TenantContext, assigns: Assigning, reads: int, writes: int
) -> None:
    group = add_group(world, alice, "Billing", assigns, members=TEAM)
    for name in ("", group):
        creating.create(alice, title="Before", group=name)  # the first one makes the items
    bills = []
    for name in ("", group):
        with meter.measure() as bill:
            creating.create(alice, title="One", group=name)
        bills.append(bill.calls)
    plain, grouped = (Counter(call.operation for call in calls) for calls in bills)
    more = grouped - plain
    assert more["Query"] + more["BatchGetItem"] == reads
    assert more["UpdateItem"] == writes
    assert more.total() == reads + writes
