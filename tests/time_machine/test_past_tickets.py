"""Tickets as they were: what is taken back from the history is what was there, and what is restored is there again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal import clock
from portal.dynamo.meter import Meter
from portal.errors import Invalid, NotFound
from tenants.audit_trail.recording import Actor
from tenants.membership import member_changes
from tenants.sign_in import accounts
from tenants.tenancy.context import Role, TenantContext
from tests.support import embedded
from tests.support.world import World
from tickets.desk import bulk, changing, commenting, creating, timelines
from tickets.desk.changing import TicketState, Wishes
from tickets.ticket import stored
from tickets.ticket.fields import MOVES, Priority, Status
from tickets.ticket.stored import ActivityItem
from tickets.time_machine import past_tickets, restoring
from tickets.time_machine.past_tickets import PastTicket

BY = Actor("0" * 32, "alice@example.com", "test")


def now_of(tenant: TenantContext, number: int) -> PastTicket:
    return PastTicket.of(*timelines.head(tenant, number))


def state(tenant: TenantContext, number: int) -> TicketState:
    return TicketState.of(changing.read(tenant, number))


@pytest.fixture(scope="module")
def lasting() -> World:
    """One world for all examples: each begins with tickets of its own."""
    embedded.make_empty()
    return embedded.world(shards=1)


WORDS = st.sampled_from(["", "One", "It *broke*.", "Löwe, 🦁", "a" * 5000])
TAGS = st.lists(st.sampled_from(["vpn", "löwe", "a-b"]), unique=True)
ACTS = st.one_of(
    st.tuples(st.just("edit"), WORDS.map(lambda w: w[:200] or "Title"), WORDS, st.sampled_from(Priority), TAGS),
    st.tuples(st.just("assign"), st.sampled_from(["alice", "bob", ""])),
    st.tuples(st.just("move"), st.sampled_from(Status)),
    st.tuples(st.just("bulk"), st.sampled_from(Status)),
    st.tuples(st.just("comment"), st.booleans(), st.sampled_from([None, *Status])),
    st.tuples(st.just("restore"), st.integers(0, 20)),
)


def act(world: World, tenant: TenantContext, number: int, step: tuple, moments: list[str]) -> None:  # type: ignore[type-arg]
    kind, *rest = step
    present = changing.read(tenant, number)
    allowed = MOVES[Status(present.status)]
    if kind == "edit":
        title, description, priority, tags = rest
        wishes = Wishes(title=title, description=description, priority=priority, tags=tags)
        changing.change(tenant, number, wishes)
    elif kind == "assign":
        changing.change(tenant, number, Wishes(resolver=world.users[rest[0]].id if rest[0] else ""))
    elif kind == "move" and rest[0] in allowed:
        changing.change(tenant, number, Wishes(status=rest[0]))
    elif kind == "bulk" and rest[0] in allowed:
        bulk.change_status(tenant, [TicketState.of(present)], to=rest[0])
    elif kind == "comment":
        then = rest[1] if rest[1] in allowed else None
        commenting.comment(tenant, number, body="Hello", internal=rest[0], then=then)
    elif kind == "restore":
        restoring.restore(tenant, [TicketState.of(present)], moments[rest[0] % len(moments)], by=BY)


@settings(max_examples=8)
@given(steps=st.lists(ACTS, min_size=1, max_size=9))
def test_at_each_moment_the_past_is_what_was_stored_then(lasting: World, steps: list[tuple]) -> None:  # type: ignore[type-arg]
    tenant = lasting.context("alice", "acme")
    number = creating.create(tenant, title="Title", description="It broke.", tags=["vpn"])
    moments, snapshots = [clock.stamp()], [now_of(tenant, number)]
    for step in steps:
        act(lasting, tenant, number, step, moments)
        moments.append(clock.stamp())
        snapshots.append(now_of(tenant, number))
    for moment, snapshot in zip(moments, snapshots, strict=True):
        assert past_tickets.read(tenant, number, moment).then == snapshot
        (listed,) = past_tickets.many(tenant, [number], moment)
        assert listed.then is not None
        values = {**snapshot.values, "description": listed.then.values["description"]}
        assert listed.then == replace(snapshot, values=values)


def test_a_ticket_did_not_exist_before_it_was_opened(alice: TenantContext) -> None:
    before = clock.stamp()
    number = creating.create(alice, title="Title")
    assert past_tickets.read(alice, number, before).then is None
    assert past_tickets.many(alice, [number], before)[0].then is None
    with pytest.raises(NotFound):
        past_tickets.read(alice, number + 1, before)


def test_what_was_not_kept_is_not_made_up(world: World, alice: TenantContext) -> None:
    number = creating.create(alice, title="Title", description="Long ago")
    changing.assign(alice, number, to=world.users["bob"].id, version=1)
    then = clock.stamp()
    changing.change(alice, number, Wishes(resolver="", description="Now"))
    without_what_was_kept(alice, number)
    found = past_tickets.read(alice, number, then).then
    assert found is not None
    assert (found.values["description"], found.values["resolver"], found.resolver_name) == (None, None, "Bob Example")
    (one,) = restoring.restore(alice, [state(alice, number)], then, by=BY)
    assert one.why == (
        "description not restored: only its length was kept; "
        "assignee not restored: of Bob Example only the name was kept"
    )
    assert now_of(alice, number).values["description"] == "Now"


def test_two_assignees_of_one_name_are_two_and_one_whose_id_was_not_kept_is_who_has_the_name(
    world: World, alice: TenantContext
) -> None:
    number, bob = creating.create(alice, title="Title"), world.users["bob"]
    other = accounts.seed(email="bob@example.org", name=bob.name, password_hash=bob.password)
    member_changes.add(user=other, tenant=world.tenants["acme"], role=Role.AGENT, by=BY)
    changing.change(alice, number, Wishes(resolver=bob.id))
    then = clock.stamp()
    changing.change(alice, number, Wishes(resolver=other.id))
    assert past_tickets.read(alice, number, then).differing == {"resolver"}
    without_what_was_kept(alice, number)
    assert past_tickets.read(alice, number, then).differing == frozenset()


def without_what_was_kept(tenant: TenantContext, number: int) -> None:
    """Make the last entry what it was when entries kept less."""
    last = timelines.ticket(tenant, number).activity[-1]
    entry = ActivityItem(tenant.repository.key(stored.ticket, number), last.sk)
    former = [ActivityItem.former_description.remove(), ActivityItem.former_resolver.remove()]
    tenant.repository.update(entry, former)


# --- restoring ---


def test_a_ticket_goes_back_to_nobody_who_cannot_have_it_now(world: World, alice: TenantContext) -> None:
    number = creating.create(alice, title="Title")
    changing.assign(alice, number, to=world.users["bob"].id, version=1)
    then = clock.stamp()
    changing.change(alice, number, Wishes(resolver="", title="Other"))
    member_changes.change_role(alice, user_id=world.users["bob"].id, to=Role.VIEWER, by=BY)
    (one,) = restoring.restore(alice, [state(alice, number)], then, by=BY)
    assert (one.is_changed, one.why) == (True, "assignee not restored: Bob Example is a viewer now")
    assert (now_of(alice, number).title, now_of(alice, number).values["resolver"]) == ("Title", "")


def test_more_than_fifty_are_refused(alice: TenantContext) -> None:
    some = [TicketState(n, 1, Status.OPEN, "") for n in range(1, 52)]
    for tickets in (some, []):
        with pytest.raises(Invalid):
            restoring.restore(alice, tickets, clock.stamp(), by=BY)


# --- what it costs ---


def test_one_ticket_costs_two_queries_at_the_same_time(world: World, alice: TenantContext, bill: Meter) -> None:
    (number,) = world.tickets("acme", 1)
    then = clock.stamp()
    changing.change(alice, number, Wishes(title="Other"))
    bill.calls.clear()
    past_tickets.read(alice, number, then)
    assert [call.operation for call in bill.calls] == ["Query", "Query"]


def test_a_page_costs_two_reads_and_a_query_for_each_ticket_that_has_changed_since(
    world: World, alice: TenantContext, bill: Meter
) -> None:
    numbers = world.tickets("acme", 5)
    then = clock.stamp()
    for number in numbers[:2]:
        changing.change(alice, number, Wishes(title="Other"))
    bill.calls.clear()
    page = past_tickets.page(alice, then)
    assert [t.then.title for t in page.tickets if t.then] == [f"Ticket {n}" for n in reversed(numbers)]
    assert sorted(call.operation for call in bill.calls) == ["BatchGetItem", "GetItem", "Query", "Query"]


def test_pages_go_down_the_numbers_from_where_the_moment_lies(
    world: World, alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past_tickets, "PAGE_SIZE", 3)
    monkeypatch.setattr(past_tickets, "PROBES", 2)
    before = world.tickets("acme", 7)
    then = clock.stamp()
    world.tickets("acme", 13)
    found, first = [], None
    while True:
        page = past_tickets.page(alice, then, first=first)
        found += [t.now.number for t in page.tickets]
        if page.lower is None:
            break
        first = page.lower
    assert found == before[::-1]
    assert past_tickets.page(alice, then).higher is not None
