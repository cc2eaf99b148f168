"""What the pages of the search cost, as counts: sequential round trips beside the one for identity."""

from __future__ import annotations

from unittest import mock

import pytest

from tests.desk.test_cost import IDENTITY, fill, spent
from tests.support import embedded
from tests.support.searching import index_all
from tests.support.world import Browser, World
from tickets.desk import lists
from tickets.search import index_lookup
from tickets.search.index import indexing
from tickets.ticket import stored
from tickets.ticket.stored import CounterItem


def indexed_world(count: int) -> World:
    """The world with so many tickets in Acme, all of them in one segment of the index."""

    def make() -> World:
        world = World.create()
        fill(world, "acme", count)
        counter = CounterItem, stored.counter
        world.context("alice", "acme").repository.increment(*counter, sort=stored.COUNTER_TICKET, by=count)
        with mock.patch.object(indexing, "LARGE", 1):
            index_all()
        return world

    world = embedded.prepared(f"searched-{count}", make)
    index_lookup.forget()
    return world


@pytest.fixture(params=[20, 1000])
def bob(request: pytest.FixtureRequest, engine: None) -> Browser:
    return indexed_world(request.param).browser("bob")


def test_a_search_takes_three_trips_beside_identity_and_two_where_the_headers_are_known(bob: Browser) -> None:
    bills = [spent(bob, "/search/?q=ticket") for _ in range(2)]
    assert [bill.trips for bill in bills] == [1 + 3, 1 + 2]
    texts = [call for call in bills[0].calls if call.table.endswith("Support.Tickets")]
    assert sum(call.items for call in texts) <= 2 * lists.PAGE_SIZE
    assert bills[0].read_units <= IDENTITY + 18
    assert bills[1].read_units <= IDENTITY + 17  # the watermark included, which a process reads now and then
    assert sum(bill.write_units for bill in bills) == 0
    before = spent(bob, "/search/")
    assert (before.trips, before.read_units) == (1, IDENTITY)


def test_typing_takes_two_trips_beside_identity_once_the_box_has_had_focus_else_three(bob: Browser) -> None:
    assert spent(bob, "/search/suggest/?q=tick").trips == 1 + 3
    index_lookup.forget()
    assert bob.get("/search/suggest/").status_code == 204
    bill = spent(bob, "/search/suggest/?q=tick")
    assert bill.trips == 1 + 2
    assert bill.read_units <= IDENTITY + 9


def test_the_palette_takes_one_trip_beside_identity_for_views_the_desks_and_own_groups(bob: Browser) -> None:
    bill = spent(bob, "/search/commands/")
    assert (bill.trips, bill.read_units) == (2, IDENTITY + 0.5 + 3 * 0.5)
