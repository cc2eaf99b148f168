"""A move copies what is new, the records of its forms first, and keeps its requests few and its transactions short."""

from __future__ import annotations

from typing import Any

import pytest

from tests.moving.moves import BRIDGE, begin, last, mover
from tests.support.world import World
from tickets.desk import commenting
from tickets.jobs import leased_job
from tickets.moving import tenant_mover
from tickets.moving.ticket_copies import TicketCopies
from tickets.ticket import stored

Written = list[list[str]]  # the partition keys of each transaction at the destination


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Written:
    found: Written = []
    write = TicketCopies._write

    def noted(self: TicketCopies, changes: Any, gate: int) -> None:
        found.append([raw["pk"]["S"] for _, raw in changes])
        write(self, changes, gate)

    monkeypatch.setattr(TicketCopies, "_write", noted)
    return found


def records(keys_written: list[str]) -> int:
    return sum(map(stored.is_request, keys_written))


def test_a_ticket_is_copied_behind_the_records_of_its_forms_and_later_only_what_is_new(
    world: World, written: Written
) -> None:
    world.tickets("acme", 1)
    for number in range(5):
        commenting.comment(world.context("alice", "acme"), 1, body=f"Early {number}.")
    begin(world, BRIDGE)
    early: Written = []

    def say(phase: str) -> None:
        if phase == "catching":
            early.extend(written)
            written.clear()
            commenting.comment(world.context("alice", "acme"), 1, body="Late.")

    mover(world, say).run()
    # Whoever goes on after a kill between the two finds the ticket missing, and asks for its records again.
    assert [(len(some), records(some)) for some in early] == [(6, 6), (8, 0)]
    # The comment, the summary, and the record of the form; then, in the hold, the counter.
    assert [(len(some), records(some)) for some in written] == [(3, 1), (1, 0)]


def test_no_transaction_of_a_move_is_long_enough_to_hold_others_up(world: World, written: Written) -> None:
    world.tickets("acme", 20)
    begin(world, BRIDGE)
    mover(world).run()
    assert sum(map(len, written)) >= 80
    assert max(map(len, written)) == 25


def test_while_a_slow_place_takes_what_is_copied_whoever_copies_is_seen_at_work(
    world: World, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 20)
    begin(world, BRIDGE)
    monkeypatch.setattr(leased_job, "_HEARTBEAT_SECONDS", 0)
    seen: list[int] = []
    write = TicketCopies._write

    def slow(self: TicketCopies, changes: Any, gate: int) -> None:
        seen.append(int(last(world).counter))
        write(self, changes, gate)

    monkeypatch.setattr(TicketCopies, "_write", slow)
    mover(world).run()
    # Two writes at a time; all of these belong to one step, behind which the progress is noted.
    assert len(set(seen[:5])) >= 3


def test_where_people_write_faster_than_is_copied_gently_the_copying_makes_haste_until_it_is_not_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 1)
    begin(world, BRIDGE)
    monkeypatch.setattr(tenant_mover, "PAGE", 2)
    monkeypatch.setattr(tenant_mover, "SHORT", 1)
    late = iter([2, 2, 1])  # changes that come while those before are copied
    hurries: list[bool] = []
    sync = TicketCopies.sync

    def comments(count: int) -> None:
        for number in range(count):
            commenting.comment(world.context("alice", "acme"), 1, body=f"Late {number}.")

    def noted(self: TicketCopies, partitions: list[str], *, hurried: bool = False) -> int:
        hurries.append(hurried)
        comments(next(late, 0))
        return sync(self, partitions, hurried=hurried)

    def say(phase: str) -> None:
        if phase == "catching":
            comments(2)
            monkeypatch.setattr(TicketCopies, "sync", noted)

    mover(world, say).run()
    # Three full pages, and a single change behind them; then the hold, in which nobody is to be kept waiting.
    assert hurries == [False, True, True, True, True]
