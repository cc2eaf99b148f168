"""From a ticket one goes on to the next of the list it was opened from, also after an action and without scripts."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal import clock
from tests.desk.test_cost import _watching, spent
from tests.desk.test_orders import FIRST, Desk, Ticket, every_order, numbers, piles, which
from tests.support.world import Browser, World
from tickets.desk import changing
from tickets.desk.changing import Wishes
from tickets.desk.filters import ORDERS, Order
from tickets.saved_views import presenters
from tickets.ticket.fields import Priority, Status

QUEUE = "/acme/tickets/"


@pytest.fixture
def bob(world: World) -> Browser:
    world.tickets("acme", 5)
    return world.browser("bob", "acme")


def rows(answer: Any) -> dict[int, str]:
    """The addresses of the tickets of a list, by their numbers, in its order."""
    found = re.findall(r'class="row-link" href="([^"]*)"', answer.content.decode())
    return {int(re.findall(r"/tickets/(\d+)/", url)[0]): unescape(url) for url in found}


def link(answer: Any, name: str) -> str:
    found = re.findall(rf"<a [^>]*{name}[^>]*>", answer.content.decode())
    return unescape((re.findall(r'href="([^"]*)"', found[0]) or [""])[0])


def follow(browser: Browser, url: str) -> tuple[int, Any]:
    """Go where an address leads, and return the number of the ticket there and its page."""
    answer = browser.get(url, follow=True)
    return int(answer.context["ticket"].number), answer


@pytest.mark.parametrize("sort", [*ORDERS])
def test_the_way_leads_through_the_whole_list_and_back(bob: Browser, sort: str) -> None:
    listed = rows(bob.get(f"{QUEUE}?status=any&sort={sort}"))
    number, page = follow(bob, listed[next(iter(listed))])
    way = [number]
    assert not link(page, "data-previous-ticket")
    while len(way) < 5:
        assert f"{len(way)} of 5" in page.content.decode()
        number, page = follow(bob, link(page, "data-next-ticket"))
        way.append(number)
    assert way == [*listed]
    end = bob.get(link(page, "data-next-ticket"), follow=True)
    assert "That was the last ticket of this list." in end.content.decode()
    assert [*rows(end)] == way
    for expected in way[-2::-1]:
        number, page = follow(bob, link(page, "data-previous-ticket"))
        assert number == expected


@pytest.mark.parametrize("sort", ["", "created", "-priority"])
@pytest.mark.parametrize("act", ["comment", "close"])
def test_after_an_action_one_goes_on_to_the_next_ticket(bob: Browser, sort: str, act: str) -> None:
    listed = rows(bob.get(f"{QUEUE}?status=open&sort={sort}"))
    order = [*listed]
    number, page = follow(bob, listed[order[1]])
    number, page = follow(bob, link(page, "way-then"))  # from now on
    for expected in order[2:]:
        form = page.content.decode()
        actions = re.findall(
            rf'action="(/acme/tickets/{number}/{"comment" if act == "comment" else "change"}/[^"]*)"', form
        )
        data = (
            {"body": "Done.", "request_id": f"{number:032x}"}
            if act == "comment"
            else {"status": "closed", "version": "1"}
        )
        answer = bob.send(unescape(actions[0]), data, follow=True)
        number, page = int(answer.context["ticket"].number), answer
        assert number == expected


def test_without_that_choice_an_action_leads_back_to_the_ticket_and_its_place(bob: Browser) -> None:
    listed = rows(bob.get(QUEUE))
    number, page = follow(bob, [*listed.values()][2])
    answer = bob.send(f"{link_of_comment(page, number)}", {"body": "Hm.", "request_id": "a" * 32}, follow=True)
    assert int(answer.context["ticket"].number) == number
    assert "3 of 5" in answer.content.decode()


def link_of_comment(page: Any, number: int) -> str:
    return unescape(re.findall(rf'action="(/acme/tickets/{number}/comment/[^"]*)"', page.content.decode())[0])


def test_htmx_loads_the_next_ticket_as_a_page_of_its_own(bob: Browser) -> None:
    listed = rows(bob.get(QUEUE))
    first = next(iter(listed))
    answer = bob.send(
        f"{QUEUE}{first}/comment/{listed[first].partition('/' + str(first) + '/')[2]}&then=next",
        {"body": "Hm.", "request_id": "a" * 32},
        headers={"HX-Request": "true"},
    )
    assert answer.status_code == 204
    assert answer["HX-Redirect"].startswith(f"{QUEUE}{first}/next/?status=open&place=1&of=5&at=")


def test_the_second_page_counts_on(world: World) -> None:
    world.tickets("acme", 55)
    bob = world.browser("bob", "acme")
    first = bob.get(QUEUE)
    size = len(rows(first))
    assert "place=1&of=" + f"{size}%2B" in next(iter(rows(first).values()))
    _, behind = follow(bob, [*rows(first).values()][-1].replace("?", "next/?"))
    assert f"{size + 1} of {size + 1}+" in behind.content.decode()
    second = bob.get(first.context["page"]["next_url"])
    _, page = follow(bob, next(iter(rows(second).values())))
    assert f"{size + 1} of 55" in page.content.decode()
    number, _ = follow(bob, link(page, "data-previous-ticket"))
    assert number == [*rows(first)][-1]


@pytest.mark.parametrize(
    "query",
    [
        "place=0&of=3",
        "place=x&of=3",
        "place=1&of=many",
        "place=1&of=3&at=yesterday",
        "place=1&of=3&sort=mood",
        "status=bad",
    ],
)
def test_a_place_that_means_nothing_is_no_way(bob: Browser, query: str) -> None:
    at = "" if "at=" in query or "mood" not in query else f"&at={clock.stamp()}"
    page = bob.get(f"{QUEUE}1/?{query}{at}")
    assert page.status_code == 200
    assert "way-place" not in page.content.decode()
    assert bob.get(f"{QUEUE}1/next/?{query}{at}").status_code == 404


def test_an_address_tells_of_no_person_by_name(world: World, bob: Browser) -> None:
    alice = world.users["alice"].id
    changing.change(world.context("bob", "acme"), 1, Wishes(resolver=alice), version=1)
    (url,) = rows(bob.get(f"{QUEUE}?status=open&resolver={alice}&name=Alice+Example")).values()
    assert "Alice" not in url


def test_the_page_of_a_ticket_costs_what_it_cost_without_a_list(bob: Browser) -> None:
    listed = rows(bob.get(QUEUE))
    plain, opened = spent(bob, f"{QUEUE}1/"), spent(bob, listed[1])
    assert (opened.trips, opened.read_units) == (plain.trips, plain.read_units)
    assert opened.trips == 2
    with _watching() as bills:
        assert bob.get(f"{QUEUE}3/next/{listed[3].partition('/3/')[2]}").status_code == 302
    assert (bills[0].trips, len(bills[0].calls)) == (2, 1 + 2)  # the list, and that of noted tickets


# --- while the list changes ---


def step(desk: Desk, order: Order, ticket: Any, place: int, *, backwards: bool = False) -> int | None:
    found = presenters.neighbour(
        desk.tenant, statuses=desk.which["status"], resolver=desk.which["resolver"], only=desk.which["only"],
        order=order, number=int(ticket.number), at=ticket.updated_at, place=place, backwards=backwards,
    )  # fmt: skip
    return int(found.row.number) if found else None


@given(piles(), st.integers(1, 3), every_order, which)
def test_each_step_leads_to_the_neighbour_in_the_list(
    pile: list[Ticket], shards: int, order: Order, which: dict[str, Any]
) -> None:
    # Tickets that changed in the same moment have no order of their own: here each has a moment.
    for n, ticket in enumerate(pile):
        ticket.updated = clock.stamp(FIRST, offset=10**9 + n)
    desk = Desk(pile, shards, order, 100, **which)
    shown = desk.page().rows
    for place, row in enumerate(shown, 1):
        expected = int(shown[place].number) if place < len(shown) else None
        assert step(desk, order, row, place) == expected
        expected = int(shown[place - 2].number) if place > 1 else None
        assert step(desk, order, row, place, backwards=True) == expected
    assert numbers([desk.page()]) == [int(row.number) for row in shown]


@given(piles(), every_order, which, st.data())
def test_after_ones_own_change_the_next_is_the_one_that_stood_behind(
    pile: list[Ticket], order: Order, which: dict[str, Any], data: st.DataObject
) -> None:
    for n, ticket in enumerate(pile):
        ticket.updated = clock.stamp(FIRST, offset=10**9 + n)
    desk = Desk(pile, 1, order, 100, **which)
    shown = desk.page().rows
    if not shown:
        return
    place = data.draw(st.integers(1, len(shown)))
    row, behind = shown[place - 1], [int(one.number) for one in shown[place:]]
    ticket = next(one for one in pile if one.number == row.number)
    ticket.updated = clock.stamp(FIRST, offset=2 * 10**9)
    leaves = data.draw(st.booleans())
    if leaves:
        ticket.status, ticket.resolver, ticket.priority = Status.RESOLVED, "c0" * 16, Priority.LOW.value
    desk.write()
    if leaves and ticket.number in desk.wanted() and order.column == "priority":
        return  # it has moved within the list; by its place the way goes on somewhere near
    assert step(desk, order, row, place) == (behind[0] if behind else None)


def test_a_changed_priority_moves_a_ticket_and_the_way_goes_on_from_where_it_was(world: World, bob: Browser) -> None:
    tenant = world.context("bob", "acme")
    listed = rows(bob.get(f"{QUEUE}?sort=-priority"))
    order = [*listed]
    changing.change(tenant, order[3], Wishes(priority=Priority.URGENT), version=1)
    number, _ = follow(bob, listed[order[3]].replace(f"/{order[3]}/", f"/{order[3]}/next/"))
    assert number == order[4]
