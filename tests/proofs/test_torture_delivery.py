"""`torture_delivery`, a small one for real, where it is refused, and that it sees what it is there to see."""

from __future__ import annotations

import json
from pathlib import Path

from delivery.outbox.tables import OUTBOX
from proofs.delivery import told_events
from proofs.delivery.delivery_torture import DeliveryPlan, DeliveryTorture
from proofs.delivery.event_receiver import EventReceiver, key_of
from tests.support import commands
from tests.support.outbox import subscribe, told
from tests.support.stored import send
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.ticket.fields import Priority, Status


def test_a_small_torture_loses_nothing_and_leaves_nothing(world: World, tmp_path: Path) -> None:
    before, figures = commands.of_tenants(), tmp_path / "figures.json"
    of_all = {"events": 40, "kills": 3, "tenants": 1, "writers": 1, "dispatchers": 1, "consumers": 1, "seed": 3}
    options = [f"--{name}={value}" for name, value in of_all.items()]
    ended = commands.finish(commands.start("torture_delivery", *options, "--json", figures), timeout=880)
    assert ended.status == 0, ended.out + ended.err
    assert "Each event has arrived, and nothing is pending." in ended.out
    found = json.loads(figures.read_text())
    assert found["events"] >= 40
    assert found["kills"] == {"writer": 1, "dispatcher": 1, "consumer": 1}
    assert commands.of_tenants() == before


def test_it_is_refused_in_production(engine: None) -> None:
    ended = commands.run("torture_delivery", "--events", 1)
    assert (ended.status, "DEBUG=1" in ended.err) == (1, True)


def test_what_must_arrive_follows_from_the_timelines(world: World) -> None:
    subscribe(world, "acme")
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="Printer")
    changing.change_status(alice, number, to=Status.PENDING, version=1)
    changing.edit(alice, number, version=2, title="Printer 3", description="New.", priority=Priority.LOW, tags=["a"])
    commenting.comment(alice, number, body="Done.", then=Status.RESOLVED)
    commenting.comment(alice, number, body="Between us.", internal=True)
    changing.assign(alice, number, to=alice.user_id, version=4)
    assert told_events.expected(alice.tenant_id) == {key_of(event) for event in told()}
    assert len(told()) == 7


def test_a_missing_a_made_up_and_a_renamed_event_are_seen(world: World, tmp_path: Path) -> None:
    subscribe(world, "acme")
    alice = world.context("alice", "acme")
    for title in ("One", "Two"):
        creating.create(alice, title=title)
    receiver = EventReceiver()
    one, _ = told()
    receiver._chance.random = lambda: 1.0  # type: ignore[method-assign]  # refuses none
    made_up = {**one, "id": "evt_0", "sequence": 9}
    for event in (one, one, {**one, "id": "evt_1"}, made_up):
        receiver.take(event)
    run = DeliveryTorture(DeliveryPlan(2, 0, 1, 1, 1, 1, 1), tmp_path, receiver, "")
    run.expected = told_events.expected(alice.tenant_id)
    assert [key[1] for key in run.lost] == [2]
    assert run.unexpected == {key_of(made_up)}
    assert run.unrecognisable == {key_of(one)}
    assert receiver.doubles == 1


def test_a_change_without_its_row_in_the_outbox_would_be_seen(world: World) -> None:
    subscribe(world, "acme")
    alice = world.context("alice", "acme")
    creating.create(alice, title="Printer")
    for raw in send("Scan", TableName=OUTBOX.full_name)["Items"]:
        key = {name: raw[name] for name in ("event_id", "timestamp")}
        send("DeleteItem", TableName=OUTBOX.full_name, Key=key)
    assert told_events.expected(alice.tenant_id) - {key_of(event) for event in told()}
