"""The rehearsal of a rule: what it would have done in the last month, without doing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from portal import clock
from portal.dynamo import meter
from portal.errors import Conflict
from tenants.audit_trail.recording import Actor
from tenants.tenancy.context import TenantContext
from tests.rules.test_running_rules import carry
from tests.support.kills import Killed, killed_at
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.desk.changing import Wishes
from tickets.jobs import leased_job
from tickets.rules import rehearsal_job, rehearsal_requests, rule_changes
from tickets.rules.rehearsal_requests import RuleFinding
from tickets.rules.stored import RehearsalItem, RuleItem
from tickets.ticket.fields import Priority, Status
from tickets.time_machine import past_events

COUNTS = ("total", "met", "events", "would_act", "touched", "refused", "circles")
URGENT = {"when": {"event": "created"}, "if": {"priority": "urgent"}, "then": {"add_tags": ["wave"]}}


def rule(tenant: TenantContext, given: dict[str, Any], *, name: str = "A rule", is_on: bool = False) -> RuleItem:
    return rule_changes.create(tenant, name, given, is_on=is_on, by=Actor(tenant.user_id))


def ask(tenant: TenantContext, one: RuleItem) -> None:
    rehearsal_requests.ask(tenant, one, by=Actor(tenant.user_id))


def work(**how: Any) -> int:
    return rehearsal_job.follower(per_second=1e6, **how).turn()


def last(tenant: TenantContext) -> RehearsalItem:
    found = rehearsal_requests.last(tenant)
    assert found is not None
    return found


def findings(tenant: TenantContext) -> list[RuleFinding]:
    found, more = rehearsal_requests.findings(tenant, last(tenant))
    assert not more
    return found


def rehearsed(tenant: TenantContext, given: dict[str, Any]) -> tuple[dict[str, int], list[RuleFinding]]:
    ask(tenant, rule(tenant, given, name=str(given)))
    assert work() == 1
    item = last(tenant)
    assert item.state == "done"
    return {name: int(getattr(item, name)) for name in COUNTS}, findings(tenant)


def did(found: list[RuleFinding]) -> list[tuple[Any, ...]]:
    return [(one.number, one.on, *one.changes) for one in found]


# --- what it finds ---


def test_it_says_which_tickets_it_would_have_changed_and_how_and_changes_none(alice: TenantContext) -> None:
    creating.create(alice, title="One", priority=Priority.URGENT, tags=["a"])
    creating.create(alice, title="Two")
    changing.change(alice, 1, Wishes(priority=Priority.LOW))
    before = [changing.read(alice, number).serialize() for number in (1, 2)]
    counts, found = rehearsed(alice, URGENT)
    assert did(found) == [(1, "created", ("tags", "a", "a, wave"))]
    assert counts == {"total": 2, "met": 2, "events": 3, "would_act": 1, "touched": 1, "refused": 0, "circles": 0}
    assert [changing.read(alice, number).serialize() for number in (1, 2)] == before


def test_a_change_stays_in_effect_until_the_history_changes_that_field(alice: TenantContext) -> None:
    creating.create(alice, title="One")
    for body in ("One.", "Two."):
        commenting.comment(alice, 1, body=body)
    changing.change(alice, 1, Wishes(priority=Priority.LOW))
    commenting.comment(alice, 1, body="Three.")
    rule_ = {"when": {"event": "answered"}, "then": {"set": {"priority": "high"}}}
    counts, found = rehearsed(alice, rule_)
    assert did(found) == [
        (1, "answered", ("priority", "normal", "high")),
        (1, "answered", ("priority", "low", "high")),
    ]
    assert (counts["would_act"], counts["touched"]) == (2, 1)


def test_a_rule_before_it_changes_the_same_field_first_and_it_changes_that_back_once(world: World) -> None:
    alice, answered = world.context("alice", "acme"), {"when": {"event": "answered"}}
    first = rule(alice, answered | {"then": {"set": {"priority": "low"}}}, name="First")
    ours = rule(alice, answered | {"then": {"set": {"priority": "high"}}}, name="Ours")
    creating.create(alice, title="One")
    commenting.comment(alice, 1, body="One.")
    rule_changes.change(alice, first.rule_id, {}, is_on=True, by=Actor(alice.user_id))
    commenting.comment(world.context("alice", "acme"), 1, body="Two.")
    carry()
    commenting.comment(alice, 1, body="Three.")
    ask(alice, ours)
    work()
    assert did(findings(alice)) == [
        (1, "answered", ("priority", "normal", "high")),
        (1, "answered", ("priority", "low", "high")),
    ]


def test_a_rule_for_another_event_of_the_same_change_has_not_run_before_it(world: World) -> None:
    alice = world.context("alice", "acme")
    rule(alice, {"when": {"event": "changed"}, "then": {"set": {"priority": "low"}}}, name="First", is_on=True)
    ours = rule(alice, {"when": {"event": "answered"}, "if": {"priority": "normal"}, "then": {"add_tags": ["x"]}})
    creating.create(alice, title="One")
    commenting.comment(world.context("alice", "acme"), 1, body="Done.", then=Status.RESOLVED)
    carry()
    ask(alice, ours)
    work()
    assert did(findings(alice)) == [(1, "answered", ("tags", "", "x"))]


def test_what_the_rule_itself_did_in_another_version_is_no_event_for_it(world: World) -> None:
    alice = world.context("alice", "acme")
    ours = rule(alice, {"when": {"event": "answered"}, "then": {"add_tags": ["x"]}}, is_on=True)
    creating.create(alice, title="One")
    commenting.comment(world.context("alice", "acme"), 1, body="Hello")
    carry()
    assert changing.read(alice, 1).tags == ["x"]
    new = {"when": {"event": "changed"}, "then": {"set": {"priority": "low"}}}
    ask(alice, rule_changes.change(alice, ours.rule_id, new, by=Actor(alice.user_id)))
    work()
    assert findings(alice) == []


def test_tags_of_the_rule_and_of_people_are_kept_side_by_side(alice: TenantContext) -> None:
    creating.create(alice, title="One", tags=["a"])
    changing.change(alice, 1, Wishes(tags=["a", "b"]))
    changing.change(alice, 1, Wishes(tags=["b"]))
    changing.change(alice, 1, Wishes(priority=Priority.LOW))
    rule_ = {"when": {"event": "changed"}, "then": {"add_tags": ["x"], "remove_tags": ["b"]}}
    _, found = rehearsed(alice, rule_)
    assert did(found) == [(1, "changed", ("tags", "a, b", "a, x"))]


def test_what_it_could_not_have_done_is_counted_with_the_reason(alice: TenantContext) -> None:
    creating.create(alice, title="One")
    changing.change(alice, 1, Wishes(status=Status.CLOSED))
    counts, found = rehearsed(alice, {"when": {"event": "changed"}, "then": {"set": {"status": "pending"}}})
    assert [one.refused for one in found] == ["A closed ticket cannot become pending."]
    assert (counts["would_act"], counts["touched"], counts["refused"]) == (0, 0, 1)


def test_rules_that_would_call_each_other_are_told_as_a_circle(alice: TenantContext) -> None:
    other = rule(alice, {"when": {"event": "changed", "what": "priority"}, "if": {"priority": "high"},
                         "then": {"set": {"priority": "low"}}}, name="Down", is_on=True)  # fmt: skip
    creating.create(alice, title="One")
    changing.change(alice, 1, Wishes(priority=Priority.URGENT))
    up = {"when": {"event": "changed", "what": "priority"}, "then": {"set": {"priority": "high"}}}
    counts, found = rehearsed(alice, up)
    mine = last(alice).rule_id
    assert [one.circle for one in found] == [(mine, other.rule_id, mine)]
    assert counts["circles"] == 1


def test_a_rule_runs_once_for_a_comment_and_the_change_written_with_it(alice: TenantContext) -> None:
    creating.create(alice, title="One")
    commenting.comment(alice, 1, body="Done.", then=Status.RESOLVED)
    _, found = rehearsed(alice, {"when": {"event": "changed"}, "then": {"add_tags": ["done"]}})
    assert did(found) == [(1, "changed", ("tags", "", "done"))]


def test_what_happened_before_the_last_month_and_after_it_was_asked_is_left_out(
    alice: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    creating.create(alice, title="One", priority=Priority.URGENT)
    now = clock.stamp()
    creating.create(alice, title="Two", priority=Priority.URGENT)
    monkeypatch.setattr(past_events, "days_ago", lambda days: now)
    ask(alice, rule(alice, URGENT))
    creating.create(alice, title="Three", priority=Priority.URGENT)
    work()
    assert [one.number for one in findings(alice)] == [2]


# --- the job ---


def test_it_is_told_beforehand_what_it_will_read(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in (1, 2, 3):
        creating.create(alice, title="One")
        commenting.comment(alice, number, body="More.")
    with meter.measure() as bill:
        told = rehearsal_requests.extent(alice)
    assert (told.tickets, told.entries, told.is_more, told.seconds) == (3, 6, False, 0)
    assert bill.trips <= 3
    monkeypatch.setattr(rehearsal_requests, "COUNTED", 2)
    assert rehearsal_requests.extent(alice).is_more
    assert rehearsal_requests.extent(alice).seconds == 100


def test_it_goes_through_no_more_tickets_than_it_says(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal_requests, "MOST", 2)
    for _ in range(3):
        creating.create(alice, title="One", priority=Priority.URGENT)
    _, found = rehearsed(alice, URGENT)
    assert sorted(one.number for one in found) == [2, 3]
    assert int(last(alice).is_cut) == 1


def test_findings_are_read_in_pages(alice: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rehearsal_job, "PART", 1)
    monkeypatch.setattr(rehearsal_requests, "SHOWN", 2)
    for _ in range(3):
        creating.create(alice, title="One", priority=Priority.URGENT)
    ask(alice, rule(alice, URGENT))
    work()
    some, more = rehearsal_requests.findings(alice, last(alice))
    rest, _ = rehearsal_requests.findings(alice, last(alice), first=more)
    assert [[one.number for one in page] for page in (some, rest)] == [[3, 2], [1]]


def stopped_after(calls: int) -> Callable[[], bool]:
    left = [calls]

    def again() -> bool:
        left[0] -= 1
        return left[0] > 0

    return again


@pytest.mark.parametrize("calls", range(1, 12))
def test_a_stopped_rehearsal_goes_on_and_counts_each_event_once(
    alice: TenantContext, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    monkeypatch.setattr(rehearsal_job, "PART", 2)
    for number in range(1, 6):
        creating.create(alice, title="One", priority=Priority.URGENT)
        commenting.comment(alice, number, body="More.")
    ask(alice, rule(alice, URGENT))
    follower = rehearsal_job.follower(per_second=1e6)
    follower.turn(stopped_after(calls))
    work()
    item = last(alice)
    counts = {name: int(getattr(item, name)) for name in COUNTS}
    assert counts == {"total": 5, "met": 5, "events": 10, "would_act": 5, "touched": 5, "refused": 0, "circles": 0}
    assert sorted(one.number for one in findings(alice)) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("write", range(1, 17))
def test_a_killed_rehearsal_keeps_its_lease_until_another_worker_goes_on_and_counts_each_event_once(
    alice: TenantContext, monkeypatch: pytest.MonkeyPatch, write: int
) -> None:
    monkeypatch.setattr(rehearsal_job, "PART", 2)
    monkeypatch.setattr(leased_job, "_HEARTBEAT_SECONDS", 0)
    for _ in range(5):
        creating.create(alice, title="One", priority=Priority.URGENT)
    ask(alice, rule(alice, URGENT))
    with pytest.raises(Killed), killed_at(monkeypatch, write, writes_only=True):
        work()
    assert last(alice).holder
    assert work() == 0, "the dead one may be alive"
    monkeypatch.setattr(leased_job, "LEASE_SECONDS", 0)
    assert work() == 1
    item = last(alice)
    assert (item.state, int(item.events), int(item.would_act)) == ("done", 5, 5)
    assert sorted(one.number for one in findings(alice)) == [1, 2, 3, 4, 5]


def test_a_desk_has_one_rehearsal_at_a_time_and_it_can_be_cancelled(alice: TenantContext) -> None:
    one = rule(alice, URGENT)
    by = Actor(alice.user_id)
    ask(alice, one)
    with pytest.raises(Conflict):
        ask(alice, one)
    rehearsal_requests.cancel(alice, one, by=by)
    work()
    assert last(alice).state == "cancelled"
    with pytest.raises(Conflict):
        rehearsal_requests.cancel(alice, one, by=by)
    ask(alice, one)
    work()
    assert last(alice).state == "done"
