"""Whatever rules a desk has, and whatever dies and is delivered again: each rule runs once for what began, all of it
ends, and the numbers are those of a recount."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as profile
from hypothesis import strategies as st

from delivery.outbox import destinations
from delivery.outbox.publisher import member_parts
from portal.dynamo.store import Store
from tenants.audit_trail.recording import SYSTEM
from tests.bulk_jobs.test_bulk_jobs import counted
from tests.support import deliveries, embedded
from tests.support.outbox import rows
from tests.support.world import World
from tickets.desk import changing, commenting, timelines
from tickets.desk.changing import Wishes
from tickets.ready_answers import answer_changes
from tickets.ready_answers.answer_reading import Given
from tickets.rules import definition, engine, rule_changes, runs
from tickets.ticket.causes import Cause
from tickets.ticket.ticket_events import RULE_ANSWER

TAGS, PRIORITIES, STATUSES = ("a", "b", "c"), ("low", "high"), ("open", "pending", "closed")
ONLY = st.fixed_dictionaries(
    {},
    optional={
        "tag": st.sampled_from(TAGS),
        "priority": st.sampled_from(PRIORITIES),
        "status": st.sampled_from(STATUSES),
    },
)
THEN = st.fixed_dictionaries(
    {
        "set": st.fixed_dictionaries(
            {}, optional={"priority": st.sampled_from(PRIORITIES), "status": st.sampled_from(STATUSES)}
        ),
        "add_tags": st.lists(st.sampled_from(TAGS), max_size=1),
        "remove_tags": st.lists(st.sampled_from(TAGS), max_size=1),
        "answers": st.booleans(),
    }
).filter(lambda then: any(then.values()) and not {*then["add_tags"]} & {*then["remove_tags"]})
RULES = st.lists(st.tuples(st.sampled_from(["changed", "answered"]), ONLY, THEN), min_size=2, max_size=5)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("priority"), st.sampled_from(PRIORITIES)),
        st.tuples(st.just("tags"), st.sampled_from(TAGS)),
        st.tuples(st.just("comment"), st.just("Hello")),
    ),
    min_size=1,
    max_size=3,
)
ALIVE, BEFORE, BEHIND, TWICE = "alive", "killed before", "killed behind", "delivered twice"
FATES = st.lists(st.sampled_from([ALIVE, ALIVE, ALIVE, BEFORE, BEHIND, TWICE]), max_size=40)


class Killed(BaseException):
    """The worker died."""


class Worker:
    """Delivers what is for rules, in an order and with deaths that a test chooses."""

    def __init__(self, fates: list[str], places: list[int]) -> None:
        self.fates, self.places, self.done = [*fates], [*places], set[tuple[str, str]]()

    def open(self) -> list[tuple[Any, str]]:
        ours = ("rules", RULE_ANSWER)
        found = [(row, one) for row in rows() for one in sorted(row.open or ()) if member_parts(one)[1] in ours]
        return [(row, one) for row, one in found if (row.event_id, one) not in self.done]

    def run(self, patched: pytest.MonkeyPatch, *, most: int = 150) -> None:
        """Deliver until nothing is left."""
        whole, fate = Store.transact, [ALIVE]

        def transact(store: Store, transaction: Any, **how: Any) -> None:
            now, fate[0] = fate[0], ALIVE
            if now == BEFORE:
                raise Killed
            whole(store, transaction, **how)
            if now == BEHIND:
                raise Killed

        patched.setattr(Store, "transact", transact)
        for _ in range(most):
            if not (waiting := self.open()):
                return
            row, one = waiting[self.places.pop() % len(waiting) if self.places else 0]
            fate[0] = self.fates.pop() if self.fates else ALIVE
            again = fate[0] == TWICE
            index, to = member_parts(one)
            work = deliveries.work(deliveries.message(row, to, index=index), row)
            try:
                for _ in range(1 + again):
                    assert destinations.deliver_for(to)(work).state == "answered"
            except Killed:
                continue
            self.done.add((row.event_id, one))
        raise AssertionError("rules run in circles")


@profile(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=RULES, steps=STEPS, fates=FATES, places=st.lists(st.integers(0, 9), max_size=20))
def test_each_rule_runs_once_for_what_began_and_all_ends(
    clean_process: None, wanted: list[Any], steps: list[Any], fates: list[str], places: list[int]
) -> None:
    world = embedded.world(shards=1)
    tenant = world.context("alice", "acme")
    world.tickets("acme", 1)
    answer = answer_changes.create(tenant, Given("Hello", "hello", "Hello"), shared=True, by=SYSTEM).answer_id
    for place, (event, only, then) in enumerate(wanted):
        parts = {"when": {"event": event}, "if": only, "then": {**then, "answer": answer if then["answers"] else ""}}
        rule_changes.create(tenant, f"Rule {place}", parts, by=SYSTEM, is_on=True)
    tenant = world.context("alice", "acme")
    for name, value in steps:
        if name == "comment":
            commenting.comment(tenant, 1, body=value)
        else:
            changing.change(tenant, 1, Wishes(**{name: [value] if name == "tags" else value}))
    with pytest.MonkeyPatch.context() as patched:
        Worker(fates, places).run(patched)

    ran = [run for item in rule_changes.listed(tenant) for run in runs.listed(tenant, item.rule_id)[0]]
    history = timelines.ticket(tenant, 1).activity
    caused = Counter((entry.kind, entry.cause) for entry in history if entry.cause)
    # What a run says is in the history, once, and nothing else is.
    assert caused == Counter(("event", run.cause) for run in ran if run.entry) + Counter(
        ("comment", run.cause) for run in ran if run.answer
    )
    answers = {item.rule_id for item in rule_changes.listed(tenant) if json.loads(item.definition)["then"]["answer"]}
    assert all(run.answer for run in ran if run.rule_id in answers and not run.why)
    # Each rule at most once for each step of a person.
    assert len({(run.rule_id, Cause.parse(run.cause).event) for run in ran}) == len(ran) <= len(wanted) * len(steps)  # type: ignore[union-attr]
    assert all(Cause.parse(run.cause).depth <= definition.MOST_DEPTH for run in ran)  # type: ignore[union-attr]
    counted(tenant)


def test_a_rule_that_would_run_on_what_it_did_itself_would_go_on_for_ever(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test above finds circles: with a run of its own for each event there is one."""
    tenant = world.context("alice", "acme")
    world.tickets("acme", 1)
    for low, high in (("low", "high"), ("high", "low")):
        parts = {"when": {"event": "changed"}, "if": {"priority": low}, "then": {"set": {"priority": high}}}
        rule_changes.create(tenant, f"To {high}", parts, by=SYSTEM, is_on=True)
    changing.change(world.context("alice", "acme"), 1, Wishes(priority="low"))
    monkeypatch.setattr(engine.Cause, "parse", classmethod(lambda cls, text: None))
    with pytest.MonkeyPatch.context() as patched, pytest.raises(AssertionError, match="circles"):
        Worker([], []).run(patched, most=15)
