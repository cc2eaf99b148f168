"""A list in any of its orders shows each ticket once and in its place, also while other tickets change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal import clock
from portal.errors import Invalid
from tests.support.fakes import index_row, tenant_in_memory
from tickets.desk import filters, lists
from tickets.desk.filters import EVERYTHING, ORDERS, Order, TicketFilter
from tickets.desk.lists import TicketPage
from tickets.ticket.fields import Priority, Status

ACME, BOB = "ac" * 16, "b0" * 16
FIRST = datetime(2026, 1, 29, tzinfo=UTC)
MOMENTS = [clock.stamp(FIRST + timedelta(hours=h)) for h in range(6)]  # few, so that tickets share theirs
PRIORITIES = ["urgent", "high", "normal", "low"]
every_order = st.sampled_from([*ORDERS.values()])


@dataclass
class Ticket:
    """As a person has it on paper."""

    number: int
    status: Status
    resolver: str
    priority: str
    requester: str
    created: str
    updated: str
    due: int = 0

    def row(self, shards: int) -> dict[str, object]:
        row = index_row(
            ACME, self.number, self.updated, shards=shards, status=self.status, resolver=self.resolver,
            priority=self.priority, created_at=self.created,
        )  # fmt: skip
        due = {"due": {"S": f"f{self.due}"}} if self.due else {}
        return row | {"requester_name": {"S": self.requester}} | due


def place(order: Order, ticket: Ticket) -> tuple[Any, ...]:
    """Say where a person would put a ticket: smaller ones first. Equal places may stand in any order."""
    what: dict[str, Any] = {
        "updated": (ticket.updated,),
        "created": (ticket.created, ticket.number),
        "priority": (-PRIORITIES.index(ticket.priority),),
        "requester": (ticket.requester.casefold(),),
        "due": (ticket.due if ticket.due and ticket.status in (Status.OPEN, Status.PENDING) else 1 << 60,),
    }
    return what[order.column]  # type: ignore[no-any-return]  # a table of tuples


def in_order(order: Order, tickets: list[Ticket]) -> bool:
    places = [place(order, ticket) for ticket in tickets]
    return all(one >= other if order.is_descending else one <= other for one, other in pairwise(places))


@st.composite
def piles(draw: st.DrawFn) -> list[Ticket]:
    pile = []
    for number in range(1, draw(st.integers(0, 30)) + 1):
        created, updated = sorted(draw(st.lists(st.sampled_from(MOMENTS), min_size=2, max_size=2)))
        pile.append(
            Ticket(
                number,
                draw(st.sampled_from([Status.OPEN, Status.OPEN, Status.PENDING, Status.CLOSED])),
                draw(st.sampled_from(["", BOB])),
                draw(st.sampled_from(PRIORITIES)),
                draw(st.sampled_from(["Ada", "ada", "Bob", "Émile", ""])),
                created,
                updated,
                draw(st.sampled_from([0, 1_764_158_400, 1_764_158_460])),
            )
        )
    return pile


class Desk:
    """Reads one list page by page while its tickets may change."""

    def __init__(self, pile: list[Ticket], shards: int, order: Order, size: int, **which: Any) -> None:
        self.tenant, self.index = tenant_in_memory(ACME, shards=shards)
        self.pile, self.shards, self.order, self.size, self.which = pile, shards, order, size, which
        self.write()

    def write(self) -> None:
        self.index.rows = [ticket.row(self.shards) for ticket in self.pile]

    def page(self, after: str | None = None) -> TicketPage:
        return lists.page(self.tenant, order=self.order, size=self.size, after=after, **self.which)

    def wanted(self) -> set[int]:
        only, resolver = self.which.get("only", EVERYTHING), self.which.get("resolver")
        return {
            t.number
            for t in self.pile
            if t.status in self.which["status"]
            and resolver in (None, t.resolver)
            and only.get("priority") in (None, t.priority)
        }


def numbers(pages: list[TicketPage]) -> list[int]:
    return [int(row.number) for page in pages for row in page.rows]


which = st.fixed_dictionaries(
    {
        "status": st.sampled_from(["open", "unresolved", "any"]).map(filters.statuses),
        "resolver": st.sampled_from([None, None, "", BOB]),
        "only": st.sampled_from([EVERYTHING, EVERYTHING, TicketFilter(priority=Priority.HIGH)]),
    }
)


@given(piles(), st.integers(1, 4), every_order, st.integers(1, 9), which)
def test_each_ticket_is_shown_once_and_in_its_place_in_both_directions(
    pile: list[Ticket], shards: int, order: Order, size: int, which: dict[str, Any]
) -> None:
    desk = Desk(pile, shards, order, size, **which)
    pages = [desk.page()]
    while pages[-1].next:
        pages.append(desk.page(pages[-1].next))
        assert len(pages) < 100, "the links lead in a circle"
    by_number = {ticket.number: ticket for ticket in pile}
    assert sorted(numbers(pages)) == sorted(desk.wanted())
    assert in_order(order, [by_number[n] for n in numbers(pages)])
    assert pages[0].previous is None
    back = [pages[-1]]
    while back[-1].previous:
        back.append(desk.page(back[-1].previous))
        assert len(back) < 100, "the links lead in a circle"
    assert numbers(back[::-1]) == numbers(pages)
    assert all(page.total in (None, len(desk.wanted())) for page in pages)


@given(piles(), st.integers(1, 3), every_order, st.integers(1, 5), which, st.data())
def test_tickets_that_nobody_changes_are_shown_once_while_others_change(
    pile: list[Ticket], shards: int, order: Order, size: int, which: dict[str, Any], data: st.DataObject
) -> None:
    desk = Desk(pile, shards, order, size, **which)
    still, shown, after = desk.wanted(), list[int](), None
    for step in range(200):
        page = desk.page(after)
        shown += numbers([page])
        if (after := page.next) is None:
            break
        if pile and step < 20 and data.draw(st.booleans()):
            ticket = data.draw(st.sampled_from(pile))
            still.discard(ticket.number)
            ticket.updated = clock.stamp(FIRST + timedelta(days=1, seconds=step))
            ticket.status = data.draw(st.sampled_from([Status.OPEN, Status.CLOSED]))
            ticket.priority = data.draw(st.sampled_from(PRIORITIES))
            desk.write()
    else:
        pytest.fail("the links lead in a circle")
    kept = [number for number in shown if number in still]
    assert sorted(kept) == sorted(still)
    by_number = {ticket.number: ticket for ticket in pile}
    assert in_order(order, [by_number[n] for n in kept])


@pytest.mark.parametrize("order", [order for order in ORDERS.values() if order.key], ids=lambda order: order.word)
def test_of_a_longer_list_the_latest_are_sorted_and_the_page_says_so(order: Order) -> None:
    pile = [
        Ticket(n, Status.OPEN, "", "low", "Ada", MOMENTS[0], clock.stamp(FIRST, offset=n))
        for n in range(1, lists.COLLECTED + 101)
    ]
    desk = Desk(pile, 1, order, 50, status=(Status.OPEN,))
    page = desk.page()
    assert (page.sorted_among, page.total) == (lists.COLLECTED, None)
    assert desk.index.queries == 1 + 1  # the partition, and that of tickets with notes
    assert desk.index.read <= lists.COLLECTED + 2
    shown = numbers([page])
    while page.next:
        page = desk.page(page.next)
        shown += numbers([page])
    assert sorted(shown) == list(range(101, lists.COLLECTED + 101))


def test_a_cursor_is_of_no_use_in_another_order() -> None:
    pile = [Ticket(n, Status.OPEN, "", "low", "Ada", MOMENTS[0], MOMENTS[n % 5]) for n in range(1, 10)]
    for order in ORDERS.values():
        cursor = Desk(pile, 1, order, 2, status=(Status.OPEN,)).page().next
        for other in ORDERS.values():
            if other is not order:
                with pytest.raises(Invalid):
                    Desk(pile, 1, other, 2, status=(Status.OPEN,)).page(cursor)


def test_an_unknown_order_is_refused_at_its_parameter() -> None:
    with pytest.raises(Invalid) as refused:
        filters.order_of("mood")
    assert refused.value.field == "sort"
