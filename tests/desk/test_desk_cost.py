"""What the desk's own pages cost, as counts, with ten rows and with a thousand; see test_cost.py."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import pytest

from portal import clock
from portal.dynamo import meter
from tenants.audit_trail import browsing
from tenants.audit_trail.stored import AuditItem, audit_actor_key, audit_entity_key, audit_row_key
from tenants.membership import members
from tenants.membership.invitations import link_key
from tenants.membership.stored import InviteItem, MemberItem
from tests.desk.test_cost import IDENTITY, fill, spent
from tests.support.stored import put_all
from tests.support.world import World

MANY = [10, 1000]


def of(call: meter.Call) -> float:
    """The units of one eventually consistent read of this size."""
    return max(1, math.ceil(call.size / 4096)) * 0.5


def people(world: World, count: int) -> Iterable[MemberItem]:
    for n in range(count):
        name, at = f"Person Number {n}", clock.stamp(offset=n)
        yield MemberItem(
            world.tenants["acme"].tenant_id,
            f"{n:032x}",
            name=name,
            email=f"p{n}@example.com",
            role="agent",
            created_at=at,
        )


def invitations(world: World, count: int) -> Iterable[InviteItem]:
    for n in range(count):
        at = clock.stamp(offset=n)
        yield InviteItem(
            world.tenants["acme"].tenant_id,
            f"{n:032x}",
            email=f"p{n}@example.com",
            role="agent",
            invited_by=world.users["alice"].id,
            invited_by_name="Alice Example",
            created_at=at,
            sent_at=at,
            expires_at="9999",
            link=link_key(f"{n}"),
        )


def events(world: World, count: int) -> Iterable[AuditItem]:
    tenant_id = world.tenants["acme"].tenant_id
    for n in range(count):
        yield AuditItem(
            tenant_id,
            audit_row_key(clock.stamp(offset=n), f"{n:032x}"),
            tenant_actor=audit_actor_key(tenant_id, "b" * 32),
            tenant_entity=audit_entity_key(tenant_id, "user", "c" * 32),
            action="member.role_changed",
            actor_id="b" * 32,
            actor_email="robert@example.com",
            entity_type="user",
            entity_id="c" * 32,
            before='{"role": "agent"}',
            after='{"role": "admin"}',
            partition="0",
            sequence=n,
            hash="f" * 64,
        )


@pytest.mark.parametrize("count", MANY)
def test_members_and_invitations_take_two_trips_and_half_a_unit_per_4_kb(world: World, count: int) -> None:
    put_all(people(world, count))
    put_all(invitations(world, count))
    alice = world.browser("alice", "acme")
    # The page of the invitations reads at the same time the members, for whether who invited still may, and whose
    # mails did not get through.
    pages = [("/desk/members/", 1), ("/desk/invitations/", 3)]
    if count < members.AT_HAND:  # more are sought as test_large_desks.py says
        pages.append(("/desk/members/?q=number+7", 1))
    for page, queries in pages:
        bill = spent(alice, page)
        assert [call.operation for call in bill.calls] == ["BatchGetItem", *["Query"] * queries], page
        assert (bill.trips, bill.read_units) == (2, IDENTITY + sum(map(of, bill.calls[1:])))
        # A member is some 200 bytes, an invitation some 500: a thousand of either is nowhere near a second Query.
        assert bill.read_units <= IDENTITY + queries * max(1, count * 600 / 8192)


def test_a_page_of_the_trail_costs_the_same_with_ten_times_a_hundred_rows(world: World) -> None:
    alice = world.browser("alice", "acme")
    asked = ("", f"?actor={'b' * 32}", f"?entity=user:{'c' * 32}", "?first=2020-01-01")
    bills = []
    for count in (100, 1000):
        put_all(events(world, count))
        bills.append([spent(alice, f"/desk/audit/{query}") for query in asked])
    for few, many in zip(*bills, strict=True):
        assert [call.operation for call in many.calls] == ["BatchGetItem", "Query"]
        assert many.calls[1].items == browsing.PAGE_SIZE + 1
        assert (many.trips, many.read_units) == (few.trips, few.read_units) == (2, IDENTITY + of(many.calls[1]))


def test_an_older_page_of_the_trail_and_the_way_back_cost_what_the_first_did(world: World) -> None:
    put_all(events(world, 1000))
    alice = world.browser("alice", "acme")
    older = alice.get("/desk/audit/").context["next_url"]
    newer = alice.get(f"/desk/audit/{older}").context["previous_url"]
    bills = [spent(alice, f"/desk/audit/{query}") for query in ("", older, newer)]
    assert all((a.trips, len(a.calls)) == (b.trips, len(b.calls)) == (2, 2) for a, b in pairwise(bills))
    assert max(bill.read_units for bill in bills) - min(bill.read_units for bill in bills) <= 0.5


@pytest.mark.parametrize("count", MANY)
def test_the_settings_take_two_trips_for_the_desk_and_the_members_at_hand(world: World, count: int) -> None:
    put_all(people(world, count))
    bill = spent(world.browser("alice", "acme"), "/desk/settings/")
    assert bill.trips == 2
    assert sorted(call.operation for call in bill.calls[1:]) == ["BatchGetItem", "Query"]
    (query,) = (call for call in bill.calls if call.operation == "Query")
    assert query.items == min(count + 3, members.AT_HAND)
    assert bill.read_units == IDENTITY + 1 + query.read_units  # the desk's own item is read consistently


@pytest.mark.parametrize("count", MANY)
def test_the_form_of_a_new_ticket_reads_the_members_in_one_query(world: World, count: int) -> None:
    put_all(people(world, count))
    bill = spent(world.browser("bob"), "/tickets/new/")
    assert [call.operation for call in bill.calls] == ["BatchGetItem", "Query"]
    assert (bill.trips, bill.read_units) == (2, IDENTITY + of(bill.calls[1]))


def test_a_default_of_new_tickets_costs_no_read(world: World) -> None:
    plain = spent(world.browser("bob"), "/tickets/new/")
    world.browser("alice", "acme").send("/desk/settings/defaults/", {"ticket_priority": "urgent"})
    preset = spent(world.browser("bob"), "/tickets/new/")
    assert (plain.trips, plain.read_units) == (preset.trips, preset.read_units) == (2, IDENTITY + 0.5)


@pytest.mark.parametrize("count", MANY)
def test_the_list_of_former_members_takes_three_trips_whatever_they_left(world: World, count: int) -> None:
    fill(world, "acme", count)
    bill = spent(world.browser("alice", "acme"), "/tickets/handover/")
    # Who has tickets, among the leaders and behind them; then which of them are members.
    assert (bill.trips, bill.read_units) == (3, IDENTITY + 2 * 0.5)


def test_asking_before_something_ends_takes_two_trips(world: World) -> None:
    alice = world.browser("alice", "acme")
    asked = {f"/desk/members/{world.users['bob'].id}/remove/": 1, "/desk/leave/": 0.5}  # consistent, or not
    for page, units in asked.items():
        bill = spent(alice, page)
        assert (bill.trips, bill.read_units) == (2, IDENTITY + units)
