"""Going through the past of a desk: each event comes once, with the ticket as it was stored after it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portal import clock
from portal.dynamo import meter
from tenants.tenancy.context import TenantContext
from tests.support.world import World
from tests.time_machine.test_past_tickets import ACTS, act, lasting  # noqa: F401  # fixtures
from tickets.desk import changing, commenting, creating, filters
from tickets.desk.changing import Wishes
from tickets.ticket.fields import FIELDS, Priority, Status
from tickets.time_machine import past_events
from tickets.time_machine.past_events import PastEvent

ALWAYS = "2000-01-01T00:00:00.000000Z"
ASKED = [field.name for field in FIELDS if field.name != "description"]
MOMENTS = [f"{name}_at" for name in filters.EVENTS]


def events(tenant: TenantContext, number: int, *, since: str = ALWAYS, until: str = "") -> list[PastEvent]:
    return list(past_events.of_ticket(tenant, number, since=since, until=until or clock.stamp()))


def asked(summary: Any) -> dict[str, Any]:
    """What filters ask of a ticket."""
    return {name: getattr(summary, name) for name in [*ASKED, *MOMENTS]}


@settings(max_examples=15, deadline=None)
@given(steps=st.lists(ACTS, max_size=8))
def test_after_each_event_the_ticket_is_what_was_stored_then(lasting: World, steps: list[Any]) -> None:  # noqa: F811
    tenant = lasting.context("alice", "acme")
    number = creating.create(tenant, title="It", description="Broke", tags=["new"])
    stored, moments = [changing.read(tenant, number)], [clock.stamp()]
    for step in steps:
        act(lasting, tenant, number, step, moments)
        stored.append(changing.read(tenant, number))
        moments.append(clock.stamp())
    found = events(tenant, number)
    assert found[0].entry.verb == "opened the ticket"
    seen = {one.updated_at if one.raised_at is None else one.raised_at: asked(one) for one in stored}
    for event in found:
        at = event.ticket.raised_at or event.ticket.updated_at
        assert asked(event.ticket) == seen[at]


def test_a_comment_that_closes_its_ticket_is_seen_with_the_closed_ticket(world: World) -> None:
    tenant = world.context("alice", "acme")
    creating.create(tenant, title="One")
    commenting.comment(tenant, 1, body="Done.", then=Status.CLOSED)
    commenting.comment(tenant, 1, body="Really.")
    assert [(one.entry.kind, one.entry.body, one.ticket.status, len(one.written)) for one in events(tenant, 1)] == [
        ("event", "", "open", 1),
        ("comment", "Done.", "closed", 2),
        ("event", "", "closed", 2),
        ("comment", "Really.", "closed", 1),
    ]


def test_events_outside_of_the_two_moments_are_left_out(world: World) -> None:
    tenant = world.context("alice", "acme")
    creating.create(tenant, title="One")
    since = clock.stamp()
    changing.change(tenant, 1, Wishes(priority=Priority.HIGH))
    until = clock.stamp()
    changing.change(tenant, 1, Wishes(priority=Priority.LOW))
    (event,) = events(tenant, 1, since=since, until=until)
    assert event.ticket.priority == "high"
    assert events(tenant, 9) == []


def test_each_ticket_that_has_changed_since_comes_once_newest_first(
    sharded_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = sharded_world.context("alice", "acme")
    monkeypatch.setattr(past_events, "PAGE", 2)
    sharded_world.tickets("acme", 7)
    since = clock.stamp()
    for number, status in ((2, Status.CLOSED), (5, Status.PENDING), (3, Status.CLOSED)):
        changing.change(tenant, number, Wishes(status=status))
    commenting.comment(tenant, 6, body="A note.", internal=True)
    met = [int(row.number) for row in past_events.changed_since(tenant, since)]
    assert met == [6, 3, 5, 2]


def test_a_ticket_that_changes_while_the_list_is_read_still_comes_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant = world.context("alice", "acme")
    monkeypatch.setattr(past_events, "PAGE", 2)
    world.tickets("acme", 6)
    changes = iter([(1, "high"), (6, "low")])

    def change() -> None:
        if (one := next(changes, None)) is not None:
            changing.change(tenant, one[0], Wishes(priority=Priority(one[1])))

    met = [int(row.number) for row in past_events.changed_since(tenant, ALWAYS, look_up=change)]
    assert sorted(met) == [1, 2, 3, 4, 5, 6]


def test_going_through_a_ticket_costs_one_query(world: World) -> None:
    tenant = world.context("alice", "acme")
    creating.create(tenant, title="One")
    commenting.comment(tenant, 1, body="More.")
    with meter.measure() as bill:
        events(tenant, 1)
    assert [call.operation for call in bill.calls] == ["Query"]
