"""What was changed at the new place is told from what is in the old copy alone."""

from __future__ import annotations

import pytest

from portal.errors import Conflict
from tests.moving.moves import BRIDGE, POOL, id_of, is_equal, move, ticket
from tests.moving.test_old_copies import discard
from tests.sharding.test_resharding import reshard
from tests.support.commands import run
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.moving import copy_check
from tickets.moving.placed_store import PlacedStore
from tickets.ticket import keys

ANNA = "anna@example.net"


def known(world: World) -> None:
    """One ticket has the address in its description, one in a comment."""
    alice = world.context("alice", "acme")
    creating.create(alice, title="The door", description=f"Of {ANNA}")
    commenting.comment(alice, creating.create(alice, title="The lift"), body=f"Ask {ANNA}.")


def late(world: World, sort: str, name: str) -> None:
    """Somebody writes into the old copy of the second ticket, where no later version tells of it."""
    store = PlacedStore(id_of(world), POOL)
    store.update(keys.ticket(id_of(world), 2), sort, f"SET #{name} = :late", values={"late": {"S": "late"}})


def wrong(world: World) -> list[int]:
    return copy_check.check(id_of(world), left=POOL, present=BRIDGE).wrong


def test_an_erasure_at_the_new_place_lets_the_old_copy_be_discarded(world: World) -> None:
    known(world)
    move(world, BRIDGE)
    assert run("erase_person", "acme", ANNA, "--texts").status == 0
    assert ANNA not in repr(ticket(world, 2, BRIDGE))
    discard(world)
    assert [ticket(world, number, POOL) for number in (1, 2)] == [[], []]


def test_a_resharding_at_the_new_place_lets_the_desk_go_back(world: World) -> None:
    world.tickets("acme", 6)
    move(world, BRIDGE)
    reshard(world, 4)
    assert not is_equal(world, POOL, BRIDGE, tickets=6)
    move(world, POOL)
    assert is_equal(world, POOL, BRIDGE, tickets=6)


def test_what_was_written_late_is_told_after_a_resharding_as_well(world: World) -> None:
    world.tickets("acme", 6)
    move(world, BRIDGE)
    late(world, keys.DETAIL, "description")
    reshard(world, 4)
    with pytest.raises(Conflict, match=r"in tickets: 2\."):
        discard(world)


@pytest.mark.parametrize(("sort", "name"), [(keys.DETAIL, "description"), (keys.SUMMARY, "title")])
def test_what_was_written_late_is_told_although_somebody_has_commented_since(
    world: World, sort: str, name: str
) -> None:
    world.tickets("acme", 2)
    move(world, BRIDGE)
    commenting.comment(world.context("alice", "acme"), 2, body="Later.")
    assert wrong(world) == []
    late(world, sort, name)
    assert wrong(world) == [2]


def test_entries_of_the_history_are_the_same_unless_somebody_was_erased(world: World) -> None:
    known(world)
    move(world, BRIDGE)
    (comment,) = [raw["sk"]["S"] for raw in ticket(world, 2, POOL) if raw.get("body", {}).get("S")]
    late(world, comment, "body")
    commenting.comment(world.context("alice", "acme"), 2, body="Later.")
    assert wrong(world) == [2]
    assert run("erase_person", "acme", ANNA, "--texts").status == 0
    assert wrong(world) == []
    late(world, comment, "verb")
    assert wrong(world) == [2]
