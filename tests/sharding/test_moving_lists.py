"""A list is whole while its tickets are moved between partitions, in the middle of a page and between pages."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from portal import clock
from tests.desk.test_filtered_lists import ACME, FIRST
from tests.support.fakes import IndexInMemory, index_row, tenant_in_memory
from tickets.desk import lists
from tickets.desk.filters import EVERYTHING, TicketFilter
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status

counts = st.integers(1, 8)
URGENT = TicketFilter(priority=Priority.URGENT)
EVERY = 5  # of so many tickets one is urgent
filters = st.sampled_from([EVERYTHING, URGENT])
# Few different moments: tickets of a bulk change share theirs.
moments = st.lists(st.integers(0, 3) | st.integers(0, 10**9), min_size=1, max_size=40)


def at(offset: int) -> str:
    return clock.stamp(FIRST, offset=offset)


class MovingIndex(IndexInMemory):
    """Some of the tickets that stand at old places are moved before each Query."""

    def __init__(self, rng: random.Random, offsets: list[int], former: int, to: int) -> None:
        super().__init__(ACME)
        self.rows = [
            index_row(ACME, n, at(offset), shards=former, priority="normal" if n % EVERY else "urgent")
            for n, offset in enumerate(offsets, start=1)
        ]
        self._rng, self._to = rng, to
        self.left = [*range(len(self.rows))]
        rng.shuffle(self.left)

    def query(self, *args: Any, **kwargs: Any) -> Any:
        for _ in range(self._rng.choice([0, 0, 1, 2, 5])):
            self.move()
        return super().query(*args, **kwargs)

    def move(self) -> None:
        if self.left:
            row = self.rows[self.left.pop()]
            shard = stored.status_shard(int(row["number"]["N"]), self._to)
            row["tenant_status"] = {"S": stored.tenant_status(ACME, "OPEN", shard)}


@given(moments, counts, counts, st.integers(1, 12), st.integers(0, 10**6), filters)
@example([0] * 30, 1, 8, 4, 0, EVERYTHING)
@example([*range(40)], 8, 1, 12, 1, EVERYTHING)
@example([*range(40)], 8, 1, 12, 2, EVERYTHING)
@example([*range(40)], 8, 2, 12, 3, URGENT)
@example([*range(40)], 2, 8, 4, 3, URGENT)
@example([*range(40)], 8, 2, 12, 4, URGENT)
def test_pages_show_each_ticket_once_from_before_the_first_move_until_after_the_last(
    offsets: list[int], former: int, to: int, size: int, seed: int, only: TicketFilter
) -> None:
    rng = random.Random(seed)  # noqa: S311  # it has to be repeatable
    index = MovingIndex(rng, offsets, former, to)
    most = max(former, to)
    # What the tenant's item says, one after the other; pages are read at any of these moments.
    layouts = [
        {"shards": former, "write_shards": former, "moving_to": 0, "shard_epoch": 0},
        {"shards": most, "write_shards": former, "moving_to": to, "shard_epoch": 1},
        {"shards": most, "write_shards": to, "moving_to": to, "shard_epoch": 2},
        {"shards": to, "write_shards": to, "moving_to": 0, "shard_epoch": 3},
    ]
    seen: list[int] = []
    after: str | None = None
    step, still = 0, index.left
    for _ in range(400):
        step = min(step + rng.choice([0, 0, 1]), 2)
        index.left = still if step == 2 else []  # tickets are moved once everybody knows
        if step == 2 and not still:
            step = 3
        tenant, _ = tenant_in_memory(ACME)
        tenant = replace(tenant, **layouts[step])
        tenant.__dict__["repository"] = index
        page = lists.page(tenant, status=Status.OPEN, after=after, size=size, only=only)
        assert page.looked_at, "a page is empty"
        seen += [row.number for row in page.rows]
        after = page.next
        if after is None:
            break
    assert sorted(seen) == [n for n in range(1, len(offsets) + 1) if only == EVERYTHING or not n % EVERY]


@given(moments, counts, counts, st.integers(1, 12), st.integers(0, 10**6))
def test_previous_pages_lead_back_over_all_tickets_in_another_layout(
    offsets: list[int], former: int, to: int, size: int, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311  # it has to be repeatable
    index = MovingIndex(rng, offsets, former, former)

    def page(after: str | None, **layout: int) -> Any:
        tenant = replace(tenant_in_memory(ACME)[0], **layout)
        tenant.__dict__["repository"] = index
        return lists.page(tenant, status=Status.OPEN, after=after, size=size)

    pages = [page(None, shards=former)]
    while pages[-1].next:
        pages.append(page(pages[-1].next, shards=former))
    index._to, index.left = to, [*range(len(offsets))]
    while index.left:
        index.move()
    back = [pages[-1]]
    while back[-1].previous:
        back.append(page(back[-1].previous, shards=to, shard_epoch=1))
    assert sorted(row.number for one in back for row in one.rows) == list(range(1, len(offsets) + 1))


@settings(max_examples=20)
@given(counts, counts)
def test_a_page_costs_one_more_round_while_tickets_move(former: int, to: int) -> None:
    rng = random.Random(1)  # noqa: S311  # it has to be repeatable
    index = MovingIndex(rng, [n * 7 for n in range(60)], former, to)
    index.left = []
    most = max(former, to)
    tenant = replace(tenant_in_memory(ACME)[0], shards=most, write_shards=to, moving_to=to)
    tenant.__dict__["repository"] = index
    assert len(lists.page(tenant, status=Status.OPEN, size=20).rows) == 20
    assert index.queries == most + to + 1  # and that of noted tickets, which is not divided
