"""The rehearsal and the engine decide the same: what rules did to a ticket is what their rehearsal finds afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from portal import clock
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy.context import TenantContext
from tests.rules.test_running_rules import carry
from tests.support import embedded
from tests.support.world import World
from tickets.desk import changing, commenting, creating, timelines
from tickets.desk.changing import Wishes
from tickets.rules import rehearsal, rule_changes, runs
from tickets.rules.stored import RuleItem
from tickets.ticket.fields import MOVES, Priority, Status
from tickets.ticket.stored import entry_id
from tickets.time_machine import past_events

Did = list[tuple[str, Any]]

TAGS = st.lists(st.sampled_from(["a", "b"]), unique=True, max_size=2)
EVENTS = st.sampled_from(
    [{"event": "created"}, {"event": "answered"}, {"event": "changed"}, {"event": "changed", "what": "priority"},
     {"event": "changed", "what": "tags"}, {"event": "changed", "by": "desk"}]
)  # fmt: skip
LISTS = st.sampled_from(
    [{}, {"priority": "high"}, {"status": "unresolved"}, {"tag": "a"}, {"commented": "2020-01-01.."}]
)
ACTIONS = st.fixed_dictionaries(
    {
        "set": st.sampled_from([{}, {"priority": "high"}, {"priority": "low"}, {"status": "pending"}]),
        "add_tags": TAGS,
        "remove_tags": TAGS,
    }
).filter(lambda then: any(then.values()) and not {*then["add_tags"]} & {*then["remove_tags"]})
RULES = st.fixed_dictionaries({"when": EVENTS, "if": LISTS, "then": ACTIONS})
ACTS = st.one_of(
    st.tuples(st.just("priority"), st.sampled_from(Priority)),
    st.tuples(st.just("tags"), TAGS),
    st.tuples(st.just("status"), st.sampled_from(Status)),
    st.tuples(st.just("comment"), st.sampled_from([None, *Status])),
    st.tuples(st.just("note"), st.none()),
)


@pytest.fixture(scope="module")
def lasting() -> World:
    """One world for all examples: each begins with rules and a ticket of its own."""
    embedded.make_empty()
    return embedded.world(shards=1)


def act(tenant: TenantContext, number: int, what: str, value: Any) -> None:
    allowed = MOVES[Status(changing.read(tenant, number).status)]
    if what in ("comment", "note"):
        then = value if value in allowed else None
        commenting.comment(tenant, number, body="Hello", internal=what == "note", then=then)
    elif what != "status" or value in allowed:
        changing.change(tenant, number, Wishes(**{what: value}))


def did(tenant: TenantContext, rule: RuleItem, number: int) -> Did:
    """What the engine did with a ticket by a rule, oldest first."""
    entries = {entry_id(one.sk): one for one in timelines.ticket(tenant, number).activity}
    ran = [run for run in runs.listed(tenant, rule.rule_id)[0] if run.number == number]
    return [
        (run.event, run.why or sorted((one.field, one.before, one.after) for one in entries[run.entry].changes))
        for run in sorted(ran, key=lambda run: run.at)
    ]


def would_do(tenant: TenantContext, rule: RuleItem, number: int) -> Did:
    past = past_events.of_ticket(tenant, number, since=past_events.days_ago(1), until=clock.stamp())
    found = [one for one in rehearsal.of_ticket(rule_changes.of_item(rule), past, rule_changes.active(tenant)) if one]
    return [(one.on.value, one.plan.refused or sorted(one.plan.changes)) for one in found]


LOWER: Any = {"when": {"event": "changed"}, "if": {}, "then": {"set": {"priority": "low"}}}
HIGHER: Any = {"when": {"event": "changed"}, "if": {}, "then": {"set": {"priority": "high"}}}


@example(given=[LOWER, HIGHER], acts=[("tags", ["b"])])  # each would follow from the other
@settings(max_examples=6, deadline=None)
@given(given=st.lists(RULES, min_size=1, max_size=2), acts=st.lists(ACTS, max_size=5))
def test_a_rehearsal_finds_what_the_engine_did(lasting: World, given: list[Any], acts: list[Any]) -> None:
    tenant = lasting.context("alice", "acme")
    rules = [
        rule_changes.create(tenant, f"{place} {clock.stamp()}", one, by=SYSTEM, is_on=True)
        for place, one in enumerate(given)
    ]
    tenant = lasting.context("alice", "acme")  # its item says for which events there are rules
    try:
        number = creating.create(tenant, title="It", tags=["a"])
        carry()
        for what, value in acts:
            act(tenant, number, what, value)
            carry()
        assert [would_do(tenant, one, number) for one in rules] == [did(tenant, one, number) for one in rules]
    finally:
        for one in rules:
            rule_changes.delete(tenant, one.rule_id, by=SYSTEM)
