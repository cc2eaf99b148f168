"""`torture_delivery` sees each event that is missing, made up or renamed. A small one runs in test_tortures.py."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from delivery.outbox.stored import OUTBOX
from proofs.scenarios import delivery
from proofs.scenarios.delivery import Delivery, EventReceiver, key_of
from tests.support.outbox import subscribe, told
from tests.support.stored import send
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.ticket.fields import Priority, Status


def test_what_must_arrive_follows_from_the_timelines(world: World) -> None:
    subscribe(world, "acme")
    alice = world.context("alice", "acme")
    number = creating.create(alice, title="Printer")
    changing.change_status(alice, number, to=Status.PENDING, version=1)
    changing.edit(alice, number, version=2, title="Printer 3", description="New.", priority=Priority.LOW, tags=["a"])
    commenting.comment(alice, number, body="Done.", then=Status.RESOLVED)
    commenting.comment(alice, number, body="Between us.", internal=True)
    changing.assign(alice, number, to=alice.user_id, version=4)
    assert delivery.expected(alice.tenant_id) == {key_of(event) for event in told()}
    assert len(told()) == 7


def test_a_missing_a_made_up_and_a_renamed_event_are_seen(world: World, tmp_path: Path) -> None:
    subscribe(world, "acme")
    alice = world.context("alice", "acme")
    for title in ("One", "Two"):
        creating.create(alice, title=title)
    run = Delivery(Namespace(seed=1), tmp_path, lambda *_: pytest.fail("no stage"))
    run.receiver, run.pending, run.expected = EventReceiver(), 0, delivery.expected(alice.tenant_id)
    one, _ = told()
    run.receiver._chance.random = lambda: 1.0  # type: ignore[method-assign]  # refuses none
    made_up = {**one, "id": "evt_0", "sequence": 9}
    for event in (one, one, {**one, "id": "evt_1"}, made_up):
        run.receiver.take(event)
    found = run.figures()
    assert [key[1] for key in found["lost"]] == [2]
    assert found["unexpected"] == [list(key_of(made_up))]
    assert found["under_two_ids"] == [list(key_of(one))]
    assert (found["doubles"], found["doubles_too_many"]) == (1, 1)
    assert run.broken(found) == ["lost", "unexpected", "under_two_ids", "doubles_too_many"]


def test_a_change_without_its_row_in_the_outbox_would_be_seen(world: World) -> None:
    subscribe(world, "acme")
    alice = world.context("alice", "acme")
    creating.create(alice, title="Printer")
    for raw in send("Scan", TableName=OUTBOX.full_name)["Items"]:
        key = {name: raw[name] for name in ("event_id", "timestamp")}
        send("DeleteItem", TableName=OUTBOX.full_name, Key=key)
    assert delivery.expected(alice.tenant_id) - {key_of(event) for event in told()}
