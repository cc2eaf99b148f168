"""What the proof withholds is refused at once: rules wait for the end of a move, and for nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from portal.dynamo import retry
from portal.dynamo.placement import Location, Move, Placement, StatedLocation
from portal.dynamo.store import Store, Transaction
from portal.errors import TransactionRefused
from proofs.isolation.oracle import Oracle
from proofs.isolation.walk.watch import Watch
from tests.support.commands import everything
from tests.support.world import World
from tickets.ticket import stored
from tickets.ticket.stored import CounterItem, SummaryItem

MOVES = {"nothing moves": None, "a move is under way": Move("m", Placement("bridge"))}


@pytest.fixture
def watch(world: World) -> Iterator[Watch]:
    acme = world.tenants["acme"].tenant_id
    watch = Watch({acme: Oracle(acme)}, homes=frozenset({acme}))
    before = everything()
    with watch.watching():
        yield watch
    assert watch.withheld == 1
    assert watch.crossing == ""
    assert everything() == before


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of whoever waits, none of which takes place."""
    found: list[float] = []
    monkeypatch.setattr(retry, "sleep", found.append)
    return found


def repository(world: World, move: Move | None) -> Store:
    return Store("tenant", world.tenants["acme"].tenant_id, StatedLocation(Location(move=move)))


@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_a_number_is_drawn_without_a_wait(world: World, waits: list[float], move: Move | None) -> None:
    counter = repository(world, move).increment(CounterItem, stored.counter, sort=stored.COUNTER_TICKET)
    assert counter.last > 0
    assert waits == []


@pytest.mark.usefixtures("watch")
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES)
def test_a_transaction_is_refused_without_a_wait(world: World, waits: list[float], move: Move | None) -> None:
    acme, transaction = repository(world, move), Transaction()
    item = SummaryItem(acme.key(stored.ticket, 1), stored.SUMMARY)
    transaction.update(item, [SummaryItem.title.set("Proof")], name="it", condition=SummaryItem.pk.exists())
    with pytest.raises(TransactionRefused) as caught:
        acme.transact(transaction)
    assert caught.value.reason("it") is not None
    assert waits == []
