"""Tickets are spread over another number of partitions on each engine, in the same order and at the same places."""

from __future__ import annotations

from tests.sharding.test_resharding import SOME, numbers, reshard, shelves, sorted_shelves, spread
from tests.support.world import World
from tickets.desk import changing
from tickets.ticket.fields import Status

pytest_plugins = ["tests.support.engines"]


def test_each_engine_spreads_tickets_over_more_partitions_and_fewer(any_world: World) -> None:
    any_world.tickets("acme", 9)
    changing.change_status(any_world.context("alice", "acme"), 3, to=Status.PENDING, version=1)
    before = numbers(any_world.context("alice", "acme"), SOME)
    for shards in (4, 3):
        moved = reshard(any_world, shards).item
        assert sorted_shelves(shelves(any_world)) == sorted_shelves(spread(9, shards))
        assert numbers(any_world.context("alice", "acme"), SOME, size=4) == before
        assert (moved.state, int(moved.moved) > 0) == ("done", True)
