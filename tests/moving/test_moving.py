"""What a desk holds moves to another place while people work: nothing is lost, nothing is doubled, nobody notices."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from portal.dynamo import client, fencing, retry
from portal.dynamo.store import Store
from portal.errors import ConditionFailed, Conflict
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tests.moving.moves import (
    BRIDGE,
    POOL,
    begin,
    bodies,
    id_of,
    is_equal,
    last,
    move,
    mover,
    ticket,
    tried,
)
from tests.support.kills import Killed, killed_at, one_by_one
from tests.support.world import World
from tickets.desk import bulk, changing, commenting, creating, lists, timelines
from tickets.desk.changing import TicketState, read
from tickets.desk.letter_texts import FromLetter
from tickets.jobs.leased_job import TakenOver
from tickets.moving import copy_check, move_requests, place_changes, tenant_mover, ticket_copies, write_hold
from tickets.moving.tenant_mover import TenantMover
from tickets.moving.ticket_copies import TicketCopies
from tickets.sharding import reshard_requests
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import DetailItem, SummaryItem

FAR = 60  # seconds that only a failure reaches


def alice(world: World) -> TenantContext:
    return world.context("alice", "acme")


def titles(world: World) -> list[str]:
    return sorted(row.title for row in lists.page(alice(world), status=list(Status), size=100).rows)


def test_a_desk_moves_to_tables_of_its_own_and_back_with_all_that_was_changed_since(world: World) -> None:
    world.tickets("acme", 3)
    commenting.comment(alice(world), 2, body="Before.")
    moved = move(world, BRIDGE)
    assert (moved.state, moved.phase, int(moved.holds), moved.trouble) == ("kept", "verifying", 1, "")
    assert is_equal(world, POOL, BRIDGE, tickets=3)
    there = alice(world)
    assert there.placement == BRIDGE
    changing.change_status(there, 1, to=Status.PENDING, version=1)
    assert creating.create(there, title="Made there") == 4
    assert ticket(world, 4, POOL) == []
    move(world, POOL)
    assert is_equal(world, BRIDGE, POOL, tickets=4)
    assert read(alice(world), 1).status == Status.PENDING
    assert creating.create(alice(world), title="Made here") == 5


def test_whatever_somebody_does_at_any_step_is_there_once_in_the_end(world: World) -> None:
    world.tickets("acme", 4)
    begin(world, BRIDGE)
    from_before, seen = alice(world), []

    def work(phase: str) -> None:
        seen.append(phase)
        for number, person in enumerate((alice(world), from_before) if phase == "preparing" else (alice(world),), 1):
            commenting.comment(person, number, body=f"{phase} {number}")
            creating.create(person, title=f"{phase} {number}")

    mover(world, work).run()
    assert seen == ["preparing", "announcing", "copying", "catching", "holding", "verifying"]
    expected = sorted([f"{phase} 1" for phase in seen] + ["preparing 2"])
    assert titles(world) == sorted([*expected, *(f"Ticket {n}" for n in range(1, 5))])
    assert sorted(bodies(world, range(1, 3))) == expected


def test_after_kills_at_any_call_everything_acknowledged_is_at_the_new_place_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 6)
    rng, kills = random.Random(3), 0  # noqa: S311  # it has to be repeatable
    for module in (client, ticket_copies, write_hold):
        monkeypatch.setattr(module, "fan_out", one_by_one)
    monkeypatch.setattr(fencing, "HOLD_SECONDS", 0)
    monkeypatch.setattr(retry, "sleep", lambda seconds: None)
    acknowledged: list[str] = []
    for to in (BRIDGE, POOL):
        begin(world, to)
        while last(world).state == "running":
            try:
                with killed_at(monkeypatch, rng.randint(10, 120), sent=rng.random() < 0.5):
                    mover(world).run()
            except Killed:
                kills += 1
            body = f"To {to}, {kills}"
            if tried(lambda: commenting.comment(alice(world), rng.randint(1, 6), body=body)):  # noqa: B023
                acknowledged.append(body)
        assert read(alice(world), 1).number == 1
    assert sorted(bodies(world, range(1, 7))) == sorted(acknowledged)
    assert kills > 4
    assert last(world).trouble == ""


def test_who_dies_between_the_last_copy_and_the_switch_is_followed_though_nobody_writes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 2)
    begin(world, BRIDGE)
    close = TicketCopies.close

    def die_behind(copies: TicketCopies) -> None:
        close(copies)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(TicketCopies, "close", die_behind)
        with pytest.raises(Killed):
            mover(world).run()
    assert mover(world).run()
    assert (last(world).state, last(world).trouble) == ("kept", "")
    assert is_equal(world, POOL, BRIDGE, tickets=2)


def test_a_comparison_that_was_killed_goes_on_behind_what_it_noted_and_keeps_what_it_found(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 9)
    monkeypatch.setattr(tenant_mover, "BLOCK", 3)
    monkeypatch.setattr(copy_check, "_AT_ONCE", 1)
    begin(world, BRIDGE)
    compared: list[int] = []
    compare = copy_check._compare

    def noted(found: copy_check.CopyCheck, number: int, *items: Any) -> None:
        if len(compared) == 7:
            raise Killed
        compared.append(number)
        compare(found, number, *items)

    def lose(phase: str) -> None:
        if phase == "verifying":
            store = Store("lifecycle", id_of(world), BRIDGE)
            store.delete(DetailItem(store.key(stored.ticket, 2), stored.DETAIL))

    with monkeypatch.context() as patch:
        patch.setattr(copy_check, "_compare", noted)
        with pytest.raises(Killed):
            mover(world, lose).run()
        assert (last(world).state, int(last(world).done)) == ("running", 6)
        compared.clear()
        assert mover(world).run()
    assert compared == [7, 8, 9]
    whole = copy_check.check(id_of(world), left=POOL, present=BRIDGE)
    assert whole.wrong == [2]
    assert (last(world).digest, last(world).trouble) == (whole.digest, whole.trouble())


def test_who_writes_during_the_switch_waits_and_has_written_at_the_new_place(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 2)
    waits, made = {"comment": threading.Event(), "ticket": threading.Event()}, []
    writers: list[threading.Thread] = []
    current = threading.local()

    def write(name: str, do: Callable[[], object]) -> threading.Thread:
        def run() -> None:
            current.name = name
            do()
            made.append(name)

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def sleep(seconds: float) -> None:
        waits[current.name].set()
        threading.Event().wait(0.001)

    close = ticket_copies.TicketCopies.close

    def held(copies: ticket_copies.TicketCopies) -> None:
        person = alice(world)
        writers.append(write("comment", lambda: commenting.comment(person, 1, body="Held.")))
        writers.append(write("ticket", lambda: creating.create(person, title="Held")))
        assert all(one.wait(FAR) for one in waits.values())
        assert made == []
        close(copies)

    monkeypatch.setattr(fencing, "HOLD_SECONDS", FAR)
    monkeypatch.setattr(fencing, "WAIT_SECONDS", FAR)
    monkeypatch.setattr(fencing.retry, "sleep", sleep)
    monkeypatch.setattr(ticket_copies.TicketCopies, "close", held)
    moved = move(world, BRIDGE)
    for thread in writers:
        thread.join(FAR)
    assert sorted(made) == ["comment", "ticket"]
    assert (moved.state, int(moved.holds)) == ("kept", 1)
    assert (len(ticket(world, 3, POOL)), len(ticket(world, 3, BRIDGE))) == (0, 3)
    assert len(ticket(world, 1, BRIDGE)) == len(ticket(world, 1, POOL)) + 1


def test_who_waits_for_a_dead_mover_breaks_its_hold_and_nothing_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 2)
    begin(world, BRIDGE)

    def dead(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ticket_copies.TicketCopies, "close", dead)
        with pytest.raises(Killed):
            mover(world).run()
    monkeypatch.setattr(fencing, "HOLD_SECONDS", 0)
    person = alice(world)
    commenting.comment(person, 1, body="I did not wait long.")
    assert creating.create(person, title="Nor I") == 3
    assert person.placement == POOL
    assert mover(world).run()
    assert is_equal(world, POOL, BRIDGE, tickets=3)
    assert titles(world) == ["Nor I", "Ticket 1", "Ticket 2"]


def test_a_switch_whose_hold_was_broken_does_not_happen_and_the_next_one_has_all(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 2)
    switch, broken = place_changes.switch, []

    def late(*args: Any, **how: Any) -> None:
        if not broken:
            broken.append(True)
            commenting.comment(alice(world), 2, body="Through the broken hold.")
        switch(*args, **how)

    monkeypatch.setattr(fencing, "HOLD_SECONDS", 0)
    monkeypatch.setattr(place_changes, "switch", late)
    moved = move(world, BRIDGE)
    assert int(moved.holds) == 2
    assert is_equal(world, POOL, BRIDGE, tickets=2)
    assert len(ticket(world, 2, BRIDGE)) == 4


def test_who_stood_still_while_another_carried_on_writes_nothing_over_what_is_newer(world: World) -> None:
    world.tickets("acme", 1)
    begin(world, BRIDGE)
    stale = mover(world)

    def stand_still(phase: str) -> None:
        if phase == "catching":
            mover(world).run()
            changing.edit(alice(world), 1, priority=Priority.URGENT, version=1)

    stale._say = stand_still
    with pytest.raises(TakenOver):
        stale.run()
    with pytest.raises(ticket_copies.GateClosed):
        stale._copies.sync_tickets([1])
    with pytest.raises(ticket_copies.GateClosed):
        stale._copies.open(0)
    assert read(alice(world), 1).priority == Priority.URGENT


def test_a_form_that_is_sent_again_after_the_move_makes_no_second_ticket(world: World) -> None:
    request = changing.new_request_id()
    first = creating.create(alice(world), title="Once", request_id=request)
    commenting.comment(alice(world), first, body="Once.", request_id=request)
    move(world, BRIDGE)
    assert creating.create(alice(world), title="Once", request_id=request) == first
    commenting.comment(alice(world), first, body="Once.", request_id=request)
    assert titles(world) == ["Once"]
    assert bodies(world, [first]) == ["Once."]


def test_half_of_a_hundred_is_one_less_while_a_desk_moves_and_more_in_bulk_waits(world: World) -> None:
    world.tickets("acme", 48)
    begin(world, BRIDGE)
    counts: list[int] = []

    def change(phase: str) -> None:
        if phase == "copying":
            person = alice(world)
            counts.append(bulk.limit(person))
            some = [TicketState.of(row) for row in lists.page(person, status=Status.OPEN, size=48).rows]
            counts.append(bulk.change_status(person, some, to=Status.PENDING).count)
            with pytest.raises(Conflict, match="Write in bulk when that has ended"):
                person.repository.put_all([])

    mover(world, change).run()
    assert counts == [48, 48]
    assert bulk.limit(alice(world)) == 49
    assert is_equal(world, POOL, BRIDGE, tickets=48)


def test_a_move_and_a_resharding_keep_out_of_each_others_way(world: World) -> None:
    tenant = tenant_directory.get(id_of(world))
    reshard_requests.begin(tenant, shards=4, by=SYSTEM)
    with pytest.raises(Conflict, match="moved or resharded by somebody else"):
        begin(world, BRIDGE)
    world.tickets("globex", 1)
    refused: list[str] = []

    def reshard(phase: str) -> None:
        if phase == "copying":
            with pytest.raises(Conflict) as caught:
                reshard_requests.begin(tenant_directory.get(id_of(world, "globex")), shards=4, by=SYSTEM)
            refused.append(str(caught.value))

    begin(world, BRIDGE, "globex")
    item = last(world, "globex")
    TenantMover(item, settle_seconds=0, say=reshard, caught_up=lambda repository: None).run()
    assert refused == ["Globex is being moved to another place. Wait for the end of that."]


def test_a_move_that_is_ended_before_its_switch_leaves_everything_as_it_was(world: World) -> None:
    world.tickets("acme", 2)
    begin(world, BRIDGE)

    def end(phase: str) -> None:
        if phase == "holding":
            assert move_requests.roll_back(tenant_directory.get(id_of(world)), by=SYSTEM) is False

    from_before = alice(world)
    mover(world, end).run()
    assert last(world).state == "cancelled"
    tenant = tenant_directory.get(id_of(world))
    assert (tenant.move, tenant.placement, tenant.former_placement) == (None, None, None)
    for person in (alice(world), from_before):
        creating.create(person, title="Still here")
    assert len(titles(world)) == 4
    move(world, BRIDGE)
    assert is_equal(world, POOL, BRIDGE, tickets=4)


def test_a_rebuild_of_the_numbers_meanwhile_is_copied_too(world: World) -> None:
    world.tickets("acme", 2)
    begin(world, BRIDGE)

    def raise_epoch(phase: str) -> None:
        if phase == "catching":
            repository = alice(world).repository
            how: Any = {"actions": [SummaryItem.epoch.set(1)], "condition": SummaryItem.epoch < 1}
            first, second = (SummaryItem(repository.key(stored.ticket, n), stored.SUMMARY) for n in (1, 2))
            assert repository.update(first, **how).epoch == 1
            touch = repository.updating(SummaryItem, stored.SUMMARY, **how)
            touch(second.pk)
            for again in (partial(repository.update, first, **how), partial(touch, second.pk)):
                with pytest.raises(ConditionFailed):
                    again()

    mover(world, raise_epoch).run()
    assert is_equal(world, POOL, BRIDGE, tickets=2)
    assert [int(read(alice(world), number).epoch) for number in (1, 2)] == [1, 1]


def test_a_letter_that_is_filed_meanwhile_is_copied_whole(world: World) -> None:
    world.tickets("acme", 1)
    begin(world, BRIDGE)
    text = FromLetter("0" * 48, folded="> quoted\n" * 500, comes_again=True)

    def file(phase: str) -> None:
        if phase == "catching":
            creating.create(alice(world), title="By mail", description="Hello", letter=text)
            creating.complete(alice(world), 2, letter=text, description="Hello", acknowledge=False)

    mover(world, file).run()
    assert is_equal(world, POOL, BRIDGE, tickets=2)
    found = timelines.ticket(alice(world), 2)
    assert found.letter.as_dict()["folded"] == text.folded
    assert [entry.verb for entry in found.activity] == ["opened the ticket"]
