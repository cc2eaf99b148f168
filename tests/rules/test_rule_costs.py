"""The cost of rules, as counts: nothing where no rule is for an event, and little where one is."""

from __future__ import annotations

from collections import Counter

from portal.dynamo import meter
from tests.rules.conftest import AddRule
from tests.support import deliveries
from tests.support.outbox import rows
from tests.support.world import World
from tickets.desk import changing
from tickets.desk.changing import Wishes
from tickets.rules import engine


def calls(bill: meter.Meter) -> dict[str, int]:
    return dict(Counter(call.operation for call in bill.calls))


def changed(world: World, number: int, priority: str = "high") -> meter.Meter:
    tenant = world.context("alice", "acme")
    with meter.measure() as bill:
        changing.change(tenant, number, Wishes(priority=priority))
    return bill


def delivered(world: World) -> meter.Meter:
    (row,) = [row for row in rows() if row.open]
    work = deliveries.work(deliveries.message(row, "rules"), row)
    with meter.measure() as bill:
        assert engine.deliver(work).state == "answered"
    return bill


def test_an_event_that_no_rule_is_for_costs_nothing_more(world: World, rule: AddRule) -> None:
    world.tickets("acme", 2)
    usual = changed(world, 1)
    rule("answered", add_tags=["seen"])
    bill = changed(world, 2)
    assert (calls(bill), bill.write_units) == (calls(usual), usual.write_units)
    assert rows() == []


def test_an_event_that_a_rule_may_be_for_writes_one_row_more_in_its_transaction(world: World, rule: AddRule) -> None:
    world.tickets("acme", 2)
    usual = changed(world, 1)
    rule("changed", {"priority": "low"}, add_tags=["seen"])
    bill = changed(world, 2)
    assert calls(bill) == calls(usual)
    assert bill.write_units - usual.write_units == 4  # a row of up to 1 KB in a transaction, and two indexes


def test_the_worker_reads_the_desk_its_rules_and_the_ticket_however_many_rules_there_are(
    world: World, rule: AddRule
) -> None:
    world.tickets("acme", 1)
    for _ in range(5):
        rule("changed", {"priority": "low"}, add_tags=["seen"])
    changed(world, 1)
    bill = delivered(world)
    assert calls(bill) == {"BatchGetItem": 1, "GetItem": 1, "Query": 1}
    assert bill.trips == 2


def test_a_rule_that_does_something_costs_two_counts_and_one_transaction(world: World, rule: AddRule) -> None:
    world.tickets("acme", 1)
    for place in range(2):
        rule("changed", {"priority": "high"}, add_tags=[f"seen-{place}"])
    changed(world, 1)
    assert calls(delivered(world)) == {
        "BatchGetItem": 1,
        "GetItem": 1,
        "Query": 1,
        "UpdateItem": 4,
        "TransactWriteItems": 2,
    }
