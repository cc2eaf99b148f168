"""An operator lets one desk's deliveries wait, drain, go on or drop, and no other desk notices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from delivery.outbox import stored
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from delivery.outbox.stored import OutboxItem
from delivery.queues import holds
from delivery.queues.dispatcher import Dispatcher
from delivery.queues.holds import HoldApplier, HoldCache
from delivery.queues.message_handling import MessageHandler
from delivery.queues.sender import Sender
from portal import clock
from portal.errors import Conflict, Unavailable
from tenants.audit_trail.recording import SYSTEM
from tenants.operators.facades import AuditRow
from tests.support import deliveries, fakes
from tests.support.commands import run
from tests.support.queue_in_memory import QueuesInMemory
from tests.support.world import World

ENDPOINT = "test_receiver"


@pytest.fixture
def delivered() -> Iterator[list[str]]:
    """The ids of the tenants to whose receiver something was delivered."""
    tenants: list[str] = []

    def deliver(work: Work) -> Outcome:
        tenants.append(work.tenant_id)
        return Outcome("answered")

    with deliveries.destination(ENDPOINT, deliver):
        yield tenants


def offered(row: OutboxItem) -> str:
    """Hand a row's message to a worker that knows the holds of this moment."""
    told = deliveries.message(row, ENDPOINT)
    return MessageHandler(holds=HoldCache()).handle(deliveries.received(told)).did


def partition(row: OutboxItem) -> str | None:
    return deliveries.stored(row).pending


def test_what_is_paused_waits_and_no_other_tenant_does(world: World, delivered: list[str]) -> None:
    acme, globex = world.tenants["acme"], world.tenants["globex"]
    mine, theirs = deliveries.row(acme.tenant_id, ENDPOINT), deliveries.row(globex.tenant_id, ENDPOINT)
    holds.pause(acme, by=SYSTEM)
    assert [offered(mine), offered(theirs)] == ["held", "answered"]
    assert delivered == [globex.tenant_id]
    assert partition(mine) == stored.held(acme.tenant_id)


def test_what_waited_is_due_when_it_goes_on(world: World, delivered: list[str]) -> None:
    acme = world.tenants["acme"]
    row = deliveries.row(acme.tenant_id, ENDPOINT)
    holds.pause(acme, by=SYSTEM)
    offered(row)
    assert HoldApplier().step() == 0
    holds.resume(acme, by=SYSTEM)
    assert HoldApplier().step() == 1
    back = deliveries.stored(row)
    assert back.pending == stored.pending_of(stored.row_parts(row.event_id)[1])
    assert str(back.due_at) <= clock.stamp()
    assert offered(back) == "answered"


def test_while_it_drains_the_old_goes_out_and_the_new_waits(world: World, delivered: list[str]) -> None:
    acme = world.tenants["acme"]
    waited = deliveries.row(acme.tenant_id, ENDPOINT)
    holds.pause(acme, by=SYSTEM)
    offered(waited)
    holds.drain(acme, by=SYSTEM)
    new = deliveries.row(acme.tenant_id, ENDPOINT)
    assert HoldApplier().step() == 1
    assert [offered(deliveries.stored(waited)), offered(new)] == ["answered", "held"]


def test_what_is_dropped_is_gone_and_what_comes_later_is_not(world: World, delivered: list[str]) -> None:
    acme, globex = world.tenants["acme"], world.tenants["globex"]
    on_its_way, in_outbox = (deliveries.row(acme.tenant_id, ENDPOINT) for _ in range(2))
    theirs = deliveries.row(globex.tenant_id, ENDPOINT)
    holds.drop(acme, by=SYSTEM)
    new = deliveries.row(acme.tenant_id, ENDPOINT)
    assert offered(on_its_way) == "dropped"
    assert HoldApplier().step() == 1
    assert [partition(on_its_way), partition(in_outbox)] == [None, None]
    assert [offered(new), offered(theirs)] == ["answered", "answered"]


def test_what_waits_can_be_dropped_and_stays_paused(world: World, delivered: list[str]) -> None:
    acme = world.tenants["acme"]
    waited = deliveries.row(acme.tenant_id, ENDPOINT)
    holds.pause(acme, by=SYSTEM)
    offered(waited)
    holds.drop(acme, by=SYSTEM)
    assert HoldApplier().step() == 1
    assert partition(waited) is None
    assert offered(deliveries.row(acme.tenant_id, ENDPOINT)) == "held"


def test_the_dispatcher_puts_aside_what_is_paused_and_sends_the_rest(world: World) -> None:
    acme, globex = world.tenants["acme"], world.tenants["globex"]
    mine, theirs = deliveries.row(acme.tenant_id, ENDPOINT), deliveries.row(globex.tenant_id, ENDPOINT)
    holds.pause(acme, by=SYSTEM)
    queues = QueuesInMemory()
    dispatcher = Dispatcher(Sender(queues))
    dispatcher.send([mine, theirs])
    assert [message.tenant_id for message in queues.left()] == [globex.tenant_id]
    assert partition(mine) == stored.held(acme.tenant_id)
    holds.resume(acme, by=SYSTEM)
    HoldApplier().step()
    Dispatcher(Sender(queues)).send([deliveries.stored(mine)])
    assert [message.tenant_id for message in queues.left()] == [globex.tenant_id, acme.tenant_id]


def test_the_dispatcher_closes_what_is_dropped(world: World) -> None:
    acme = world.tenants["acme"]
    row = deliveries.row(acme.tenant_id, ENDPOINT)
    holds.drop(acme, by=SYSTEM)
    queues = QueuesInMemory()
    Dispatcher(Sender(queues)).send([row])
    assert (queues.left(), partition(row)) == ([], None)


def test_a_hold_that_is_over_is_forgotten_when_everybody_has_read_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme = world.tenants["acme"]
    holds.pause(acme, by=SYSTEM)
    holds.resume(acme, by=SYSTEM)
    HoldApplier().step()
    assert acme.tenant_id in holds.read()
    monkeypatch.setattr(holds, "_SETTLED", holds._SETTLED * 0)
    HoldApplier().step()
    assert acme.tenant_id not in holds.read()


def test_each_act_is_in_the_tenants_audit_trail_with_its_reason(world: World) -> None:
    acme = world.tenants["acme"]
    for act in (holds.pause, holds.drain, holds.resume, holds.drop):
        act(acme, by=SYSTEM, reason="A receiver that is down.")
    rows = [row for row in AuditRow.objects.filter(tenant_id=acme.tenant_id)[:20] if row.action.startswith("deliver")]
    assert [row.action.split(".")[1] for row in reversed(rows)] == ["paused", "drained", "resumed", "dropped"]
    assert {row.after for row in rows} == {"reason: A receiver that is down."}


def test_an_act_that_changes_nothing_is_refused(world: World) -> None:
    acme = world.tenants["acme"]
    with pytest.raises(Conflict, match="not paused"):
        holds.resume(acme, by=SYSTEM)
    holds.pause(acme, by=SYSTEM)
    with pytest.raises(Conflict, match="paused already"):
        holds.pause(acme, by=SYSTEM)


def test_without_the_database_the_last_known_holds_count_and_without_any_nothing_goes_out(world: World) -> None:
    acme = world.tenants["acme"]
    holds.pause(acme, by=SYSTEM)
    moment = [0.0]
    board = HoldCache(clock=lambda: moment[0])
    away = [fakes.refusal("InternalServerError", status=500)] * 20
    with fakes.answering("worker", "Query", *away), pytest.raises(Unavailable):
        board.verdict(acme.tenant_id, clock.stamp())
    assert board.verdict(acme.tenant_id, clock.stamp()) == "wait"
    moment[0] += 10 * holds.REFRESH_SECONDS
    with fakes.answering("worker", "Query", *away):
        assert board.verdict(acme.tenant_id, clock.stamp()) == "wait"


def test_many_events_cost_one_read_of_the_holds(world: World, bill: object) -> None:
    board = HoldCache(clock=lambda: 0.0)
    for number in range(50):
        board.verdict(f"{number:032x}", clock.stamp())
    assert bill.trips == 1  # type: ignore[attr-defined]


def test_the_command_says_how_it_stands(world: World) -> None:
    assert "Deliveries of Acme are going out." in run("delivery", "show", "--tenant", "acme").out
    assert "everything waits" in run("delivery", "pause", "--tenant", "acme").out
    assert "Drain" not in run("delivery", "drop", "--tenant", "acme").out
    assert (
        "Deliveries of Acme are going out; what was written until" in run("delivery", "resume", "--tenant", "acme").out
    )
    assert run("delivery", "resume", "--tenant", "nobody").status == 1
