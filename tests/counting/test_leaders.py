"""The people and tags that a dashboard lists are those with most tickets, and what it says of the others is right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import folding, listing
from tests.support.aggregate_table import AggregateTable
from tests.support.folding import contribution, image, record
from tickets.counting import contributions, leaders, merge, stored
from tickets.counting.leaders import UNKNOWN
from tickets.ticket.fields import Status

ACME = "a" * 32


class Desk:
    """Tickets of a desk, and a table that counts them as they are delivered."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        folding.remember_nothing()
        self.table = AggregateTable()
        self.table.install(patch)
        self.now: dict[int, dict[str, Any] | None] = {}
        self.sequence = 0

    def write(self, number: int, **changed: Any) -> dict[str, Any]:
        return self._record(number, image(ACME, number, **changed))

    def delete(self, number: int) -> dict[str, Any]:
        return self._record(number, None)

    def _record(self, number: int, new: dict[str, Any] | None) -> dict[str, Any]:
        self.sequence += 1
        old, self.now[number] = self.now.get(number), new
        return record(self.sequence, old, new)

    def truth(self) -> contributions.Contribution:
        return contributions.total(contribution(one) for one in self.now.values() if one)


@pytest.fixture
def desk() -> Iterator[Desk]:
    with pytest.MonkeyPatch.context() as patch:
        yield Desk(patch)
    folding.remember_nothing()


def opened(desk: Desk, tags: list[str], *, at_once: int = 5) -> None:
    """Open a ticket with each of these tags, and deliver some at once."""
    records = [desk.write(len(desk.now) + 1, tags=[tag]) for tag in tags]
    for start in range(0, len(records), at_once):
        folding.apply(records[start : start + at_once])


def test_a_tag_that_comes_late_and_often_is_listed_among_many_rare_ones(desk: Desk) -> None:
    opened(desk, [f"early-tag-{n}" for n in range(36)] * 2)
    opened(desk, ["reports"] * 30)
    listing.check(desk.table, desk.truth())
    folding.merge_all(ACME)
    opened(desk, ["reports"])
    listed = listing.tickets(listing.read(desk.table).counts, "TAGS")
    assert listing.rank(listed["reports"]) == (31, 31)
    said = listing.read(desk.table).recent.outside("G")
    assert (said.least, said.most, said.unresolved_at_most) == (37 - len(listed),) * 2 + (2,)


def test_a_person_whose_tickets_are_resolved_gives_way_to_one_who_has_some(desk: Desk) -> None:
    people = [f"{n:032x}" for n in range(1, 40)]
    folding.apply([desk.write(n, resolver=who) for n, who in enumerate(people, 1)])
    for n, who in enumerate(people[:20], 1):
        folding.apply([desk.write(n, resolver=who, status="resolved", resolved_at="2026-11-19T10:00:00.000000Z")])
        listing.check(desk.table, desk.truth())
    folding.merge_all(ACME)
    folding.apply([desk.write(50, resolver=people[30]), desk.write(51, resolver=people[31])])
    folding.merge_all(ACME)
    merge.choose_leaders(folding.store_of(ACME), position=lambda mark: "")
    listing.check_leaders(desk.table, desk.truth())


def test_what_an_older_version_wrote_is_unknown_until_the_next_change(desk: Desk) -> None:
    opened(desk, [f"tag-{n}" for n in range(60)])
    folding.merge_all(ACME)
    recent = desk.table.items[stored.aggregate(ACME), stored.RECENT]
    recent |= {"people": {"N": "0"}, "tags": {"N": "0"}}
    assert listing.read(desk.table).recent.outside("G").is_unknown
    folding.remember_nothing()
    opened(desk, ["tag-1"])
    assert not listing.read(desk.table).recent.outside("G").is_unknown
    listing.check(desk.table, desk.truth())
    assert UNKNOWN.may_outrank


STATUSES = st.sampled_from([status.value for status in Status])
CHANGES = st.lists(
    st.tuples(
        st.integers(1, 12),
        STATUSES,
        st.lists(st.sampled_from(["a", "bb", "ccc", "dddd", "eeeee", "f" * 12]), max_size=3, unique=True),
        st.integers(0, 5),
        st.booleans(),
    ),
    min_size=1,
    max_size=60,
)


@given(changes=CHANGES, at_once=st.integers(1, 6), full=st.sampled_from([0, 6, 14]), again=st.sampled_from([1, 16]))
def test_after_any_changes_the_listed_are_right_and_the_others_are_as_is_said(
    changes: list[tuple[int, str, list[str], int, bool]], at_once: int, full: int, again: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        desk = Desk(patch)
        patch.setattr(leaders, "BUDGET", {"P": 240, "G": 150})
        patch.setattr(merge, "RUN_BYTES", 200)
        patch.setattr(merge, "READ_AGAIN", again)
        patch.setattr(merge, "is_full", lambda state: len(state.counts) > full)
        pending = []
        for number, status, tags, who, is_gone in changes:
            resolver = {"resolver": f"{who:032x}"} if who else {}
            pending.append(
                desk.delete(number)
                if is_gone and desk.now.get(number)
                else desk.write(number, status=status, tags=tags, **resolver)
            )
            if len(pending) >= at_once:
                folding.apply(pending)
                pending = []
                listing.check(desk.table, desk.truth())
        if pending:
            folding.apply(pending)
        folding.merge_all(ACME)
        listing.check(desk.table, desk.truth())
        if desk.table.recent(ACME).has_tail:
            merge.choose_leaders(folding.store_of(ACME), position=lambda mark: "")
            listing.check_leaders(desk.table, desk.truth())
    folding.remember_nothing()
