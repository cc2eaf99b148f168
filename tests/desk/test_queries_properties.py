"""A list is complete: whatever the tickets, shards and page size, its pages show each ticket once and in order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from portal import clock
from portal.errors import Invalid
from tests.support.fakes import IndexInMemory, index_row, tenant_in_memory
from tickets.desk import lists
from tickets.desk.lists import TicketPage
from tickets.ticket import stored
from tickets.ticket.fields import Status

ACME, GLOBEX = "ac" * 16, "9b" * 16
BOB = "b0" * 16
DAY = datetime(2026, 1, 31, tzinfo=UTC)

# Few different moments: most tickets of an import, and of a bulk change, share theirs with others.
moments = st.lists(st.integers(0, 5) | st.integers(0, 10**9), max_size=60)
shard_counts = st.integers(1, 7)
sizes = st.integers(1, 20)
# On a busy machine an example may take its time.
quick = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])


def at(offset: int) -> str:
    return clock.stamp(DAY, offset=offset)


def listing(offsets: list[int], shards: int, **row: object) -> tuple[Callable[..., TicketPage], IndexInMemory]:
    """`lists.page` of Acme's open tickets, numbered from 1, and what it reads."""
    tenant, index = tenant_in_memory(ACME, shards=shards)
    index.rows = [index_row(ACME, n, at(offset), shards=shards, **row) for n, offset in enumerate(offsets, start=1)]

    def page(**kwargs: object) -> TicketPage:
        return lists.page(tenant, status=Status.OPEN, **kwargs)

    return page, index


def walk(page: Callable[..., TicketPage], direction: str, start: TicketPage, **kwargs: object) -> list[TicketPage]:
    """The pages from `start` on, following the links of one direction."""
    pages = [start]
    while (after := getattr(pages[-1], direction)) is not None:
        pages.append(page(after=after, **kwargs))
        assert len(pages) < 500, "the links lead in a circle"
    return pages


def numbers(pages: list[TicketPage]) -> list[int]:
    return [int(row.number) for page in pages for row in page.rows]


@quick
@given(moments, sizes)
def test_previous_pages_of_an_unsharded_list_are_the_pages_seen_before(offsets: list[int], size: int) -> None:
    page, _ = listing(offsets, 1)
    forward = walk(page, "next", page(size=size), size=size)
    back = walk(page, "previous", forward[-1], size=size)
    assert [numbers([p]) for p in back[::-1]] == [numbers([p]) for p in forward]


@quick
@given(moments, shard_counts, sizes, st.data())
def test_from_any_page_back_and_forth_shows_the_same_ticket_next(
    offsets: list[int], shards: int, size: int, data: st.DataObject
) -> None:
    page, _ = listing(offsets, shards)
    forward = walk(page, "next", page(size=size), size=size)
    here = data.draw(st.sampled_from(forward))
    if here.previous is None:
        return
    before = page(after=here.previous, size=size)
    assert before.next is not None
    again = page(after=before.next, size=size)
    assert numbers([again])[:1] == numbers([here])[:1]


@settings(quick, max_examples=80)
@given(moments, st.lists(st.integers(0, 5), max_size=60), st.integers(1, 4), sizes)
@example([0], [1] * 60, 1, 20)
@example([], [0] * 60, 4, 3)
def test_rows_planted_by_another_tenant_are_never_shown_and_hide_nothing(
    offsets: list[int], planted: list[int], shards: int, size: int
) -> None:
    page, index = listing(offsets, shards)
    for number, offset in enumerate(planted, start=1):
        row = index_row(ACME, number, at(offset), shards=shards)
        index.rows.append(row | {"pk": {"S": stored.ticket(GLOBEX, number)}})
    pages = walk(page, "next", page(size=size), size=size)
    assert sorted(numbers(pages)) == list(range(1, len(offsets) + 1))
    assert {row.pk for p in pages for row in p.rows} <= {stored.ticket(ACME, n) for n in range(1, len(offsets) + 1)}
    back = walk(page, "previous", pages[-1], size=size)
    assert numbers(back[::-1]) == numbers(pages)


@quick
@given(st.lists(st.integers(0, 8), min_size=1, max_size=40), shard_counts, sizes, st.data())
def test_a_ticket_that_changes_between_two_pages_takes_no_other_with_it(
    offsets: list[int], shards: int, size: int, data: st.DataObject
) -> None:
    page, index = listing(offsets, shards)
    first = page(size=size)
    moved = data.draw(st.sampled_from(numbers([first])))
    index.rows = [r for r in index.rows if r["number"]["N"] != str(moved)]
    index.rows.append(index_row(ACME, moved, at(10**10), shards=shards))
    rest = walk(page, "next", first, size=size)
    assert sorted(numbers(rest)) == list(range(1, len(offsets) + 1))


@pytest.mark.parametrize("resolver", ["me", "../x", "A" * 32, "0" * 31, "0" * 32 + "\n", "UNASSIGNED", "*"])
def test_a_resolver_that_is_no_user_id_is_refused_before_anything_is_read(resolver: str) -> None:
    tenant, index = tenant_in_memory(ACME)
    with pytest.raises(Invalid):
        lists.page(tenant, status=Status.OPEN, resolver=resolver)
    assert index.queries == 0
