"""A filtered list shows what a person would pick by hand: each ticket once, in order, at a bounded price."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from portal import clock
from portal.errors import Invalid
from tests.support.fakes import index_row, tenant_in_memory
from tickets.desk import filters, lists
from tickets.desk.filters import EVERYTHING, Days, TicketFilter
from tickets.desk.lists import TicketPage
from tickets.ticket import stored
from tickets.ticket.fields import UNRESOLVED, Priority, Status

ACME, BOB = "ac" * 16, "b0" * 16
FIRST = datetime(2026, 1, 29, tzinfo=UTC)
DAYS = [f"{FIRST + timedelta(days=d):%Y-%m-%d}" for d in range(5)]
LAST_MICROSECOND = 24 * 3600 * 10**6 - 1
# Few of them, so that most tickets share theirs; each day's first and last moment.
MOMENTS = [
    clock.stamp(FIRST + timedelta(days=d), offset=microseconds)
    for d in range(1, 4)
    for microseconds in (0, 1, LAST_MICROSECOND)
]


@dataclass
class Ticket:
    """As a person has it on paper."""

    number: int
    status: Status
    resolver: str
    priority: Priority
    tags: list[str]
    created: str
    updated: str
    resolved: str
    reopened: str
    commented: str

    def row(self, shards: int) -> dict[str, object]:
        return index_row(
            ACME,
            self.number,
            self.updated,
            shards=shards,
            status=self.status,
            resolver=self.resolver,
            priority=self.priority.value,
            tags=self.tags,
            created_at=self.created,
            resolved_at=self.resolved,
            reopened_at=self.reopened,
            commented_at=self.commented,
        )


@st.composite
def piles(draw: st.DrawFn) -> list[Ticket]:
    """Tickets whose moments go together: opened first, changed last, resolved only where that is the status."""
    pile = []
    for number in range(1, draw(st.integers(0, 40)) + 1):
        created, *between, updated = sorted(draw(st.lists(st.sampled_from(MOMENTS), min_size=5, max_size=5)))
        resolved, reopened, commented = (draw(st.sampled_from(["", moment])) for moment in between)
        status = draw(st.sampled_from(Status))
        pile.append(
            Ticket(
                number,
                status,
                draw(st.sampled_from(["", BOB])),
                draw(st.sampled_from([Priority.HIGH, Priority.NORMAL])),
                draw(st.lists(st.sampled_from(["billing", "printer"]), unique=True)),
                created,
                updated,
                "" if status in UNRESOLVED else resolved or updated,
                reopened,
                commented,
            )
        )
    return pile


@st.composite
def spans(draw: st.DrawFn) -> Days:
    first, last = sorted(draw(st.lists(st.sampled_from(DAYS), min_size=2, max_size=2)))
    return draw(st.sampled_from([Days(first, last), Days(first, ""), Days("", last), Days(first, first)]))


rarely = st.none() | st.none() | spans()
questions = st.just(EVERYTHING) | st.builds(
    TicketFilter,
    priority=st.sampled_from([None, None, Priority.HIGH]),
    tag=st.sampled_from(["", "", "billing"]),
    created=rarely,
    resolved=rarely,
    reopened=rarely,
    commented=rarely,
)
status_words = st.sampled_from([*(s.value for s in Status), "unresolved", "any", "any"])
limits = st.sampled_from([1, 7, 20, lists.READ_LIMIT])


def in_days(days: Days | None, moment: str) -> bool:
    """By the calendar and not by text: the days as a person reads them."""
    if days is None:
        return True
    if not moment:
        return False
    day = clock.parse(moment).date().isoformat()
    return (not days.first or days.first <= day) and (not days.last or day <= days.last)


def picked(pile: list[Ticket], statuses: tuple[Status, ...], resolver: str | None, only: TicketFilter) -> list[int]:
    return [
        t.number
        for t in pile
        if t.status in statuses
        and resolver in (None, t.resolver)
        and only.get("priority") in (None, t.priority)
        and (not only.get("tag") or only.get("tag") in t.tags)
        and all(in_days(only.get(name), getattr(t, name)) for name in ("created", "resolved", "reopened", "commented"))
    ]


class Reader:
    """Reads one list page by page, and looks at what each page costs."""

    def __init__(self, pile: list[Ticket], shards: int, *, size: int, limit: int, word: str, **which: Any) -> None:
        self.tenant, self.index = tenant_in_memory(ACME, shards=shards)
        self.index.rows = [t.row(shards) for t in pile]
        self.statuses, self.which, self.size, self.limit = filters.statuses(word), which, size, limit
        first_round = len(self.statuses) * shards * lists._share(size + 1, shards)
        self.most_rows = max(first_round, limit if which["only"] else 0)
        self.most_queries = len(self.statuses) * ((3 if which["only"] else 1) * shards + 1)

    def page(self, after: str | None = None) -> TicketPage:
        self.index.queries = self.index.read = 0
        with mock.patch.object(lists, "READ_LIMIT", self.limit):
            page = lists.page(self.tenant, status=self.statuses, after=after, size=self.size, **self.which)
        assert self.index.queries <= self.most_queries
        assert self.index.read <= self.most_rows
        assert len(page.rows) <= self.size
        return page

    def walk(self, direction: str, start: TicketPage) -> list[TicketPage]:
        pages = [start]
        while (after := getattr(pages[-1], direction)) is not None:
            pages.append(self.page(after))
            assert len(pages) < 300, "the links lead in a circle"
        return pages


def numbers(pages: list[TicketPage]) -> list[int]:
    return [row.number for page in pages for row in page.rows]


@given(
    piles(), st.integers(1, 4), st.integers(1, 20), limits, status_words, st.sampled_from([None, "", BOB]), questions
)
def test_any_filter_shows_exactly_the_tickets_that_a_person_would_pick_newest_first(
    pile: list[Ticket], shards: int, size: int, limit: int, word: str, resolver: str | None, only: TicketFilter
) -> None:
    reader = Reader(pile, shards, size=size, limit=limit, word=word, resolver=resolver, only=only)
    pages = reader.walk("next", reader.page())
    assert sorted(numbers(pages)) == picked(pile, reader.statuses, resolver, only)
    changed = {t.number: t.updated for t in pile}
    stamps = [changed[n] for n in numbers(pages)]
    assert stamps == sorted(stamps, reverse=True)
    back = reader.walk("previous", pages[-1])[::-1]
    assert numbers(back) == numbers(pages)
    assert pages[0].previous is None
    assert back[0].previous is None
    for here in pages[1:4]:  # back and forth again, the same ticket comes next
        before = reader.page(here.previous)
        assert before.next is not None
        assert numbers([reader.page(before.next)])[:1] == numbers([here])[:1]
    if not only and shards == 1:
        assert [numbers([p]) for p in back] == [numbers([p]) for p in pages]
    if not only:  # nothing that was read is passed over
        assert all(p.rows for p in pages) or len(pages) == 1
        assert all((p.looked_at, p.stopped) == (len(p.rows), False) for p in pages)
    else:
        assert all(p.looked_at >= len(p.rows) for p in pages)
        assert all(p.stopped == (len(p.rows) < size and p.next is not None) for p in pages)


@given(questions, status_words)
@example(TicketFilter(created=Days("2026-01-01", "2026-01-31")), "any")
def test_a_cursor_is_of_no_use_with_another_filter(other: TicketFilter, word: str) -> None:
    mine = TicketFilter(priority=Priority.HIGH, created=Days("2026-01-29", ""))
    pile = [
        Ticket(n, Status.OPEN, "", Priority.HIGH, [], MOMENTS[n], MOMENTS[n], "", "", "")
        for n in range(1, len(MOMENTS))
    ]
    reader = Reader(pile, 2, size=2, limit=lists.READ_LIMIT, word="any", resolver=None, only=mine)
    cursor = reader.page().next
    assert cursor is not None
    assert reader.page(cursor).rows
    if (word, other) == ("any", mine):
        return
    reader.index.queries = 0
    with pytest.raises(Invalid):
        lists.page(reader.tenant, status=filters.statuses(word), only=other, after=cursor)
    assert reader.index.queries == 0


@pytest.mark.parametrize("shards", [1, 4])
def test_the_days_bound_what_is_read(shards: int) -> None:
    old = [Ticket(n, Status.CLOSED, "", Priority.LOW, [], DAYS[0], MOMENTS[0], DAYS[0], "", "") for n in range(1, 400)]
    today = Ticket(400, Status.CLOSED, "", Priority.LOW, [], DAYS[0], MOMENTS[-1], MOMENTS[-1], "", "")
    only = TicketFilter(resolved=Days(DAYS[3], DAYS[3]))
    reader = Reader([*old, today], shards, size=50, limit=500, word="any", resolver=None, only=only)
    assert numbers([reader.page()]) == [400]
    assert reader.index.read == 1
    # What is open or pending has no day on which it was resolved, so those partitions are not asked.
    assert reader.index.queries == 2 * shards + 2


def test_a_filter_that_nothing_matches_reads_five_hundred_rows_and_goes_on_from_there() -> None:
    pile = [Ticket(n, Status.OPEN, "", Priority.LOW, [], MOMENTS[0], MOMENTS[0], "", "", "") for n in range(1, 1201)]
    reader = Reader(pile, 1, size=50, limit=500, word="open", resolver=None, only=TicketFilter(priority=Priority.HIGH))
    pages = reader.walk("next", reader.page())
    assert [(p.looked_at, p.stopped) for p in pages] == [(499, True), (499, True), (202, False)]
    assert reader.index.queries == 3 + 1
    assert not numbers(pages)


def test_a_contradiction_is_empty_and_reads_nothing() -> None:
    only = TicketFilter(resolved=Days(DAYS[0], ""))
    reader = Reader([], 4, size=50, limit=500, word="unresolved", resolver=None, only=only)
    assert reader.page() == TicketPage([], None, None, 0, False, total=0)
    assert reader.index.queries == 0


def test_a_ticket_that_stands_twice_in_an_index_is_shown_once_as_it_is_now() -> None:
    tenant, index = tenant_in_memory(ACME)
    index.rows = [
        index_row(ACME, 1, MOMENTS[0], shards=1, status=Status.OPEN),
        index_row(ACME, 1, MOMENTS[5], shards=1, status=Status.CLOSED),
    ]
    (row,) = lists.page(tenant, status=tuple(Status)).rows
    assert row.status == "closed"


# --- rows that are none of the list's, or leave it ---


offsets = st.lists(st.integers(0, 8), max_size=40)


def stamped(number: int, offset: int, shards: int) -> dict[str, Any]:
    return index_row(ACME, number, clock.stamp(FIRST, offset=offset), shards=shards)


def of_offsets(found: list[int], shards: int) -> Reader:
    """A reader of the plain list of open tickets, numbered from 1, that changed at these moments."""
    reader = Reader([], shards, size=7, limit=lists.READ_LIMIT, word="open", resolver=None, only=EVERYTHING)
    reader.index.rows = [stamped(number, offset, shards) for number, offset in enumerate(found, start=1)]
    return reader


@given(offsets, offsets, st.integers(1, 4))
@example([0], [1] * 60, 1)
@example([], [0] * 60, 4)
def test_rows_planted_by_another_tenant_are_never_shown_and_hide_nothing(
    mine: list[int], planted: list[int], shards: int
) -> None:
    reader, globex = of_offsets(mine, shards), "9b" * 16
    for number, offset in enumerate(planted, start=1):
        reader.index.rows.append(stamped(number, offset, shards) | {"pk": {"S": stored.ticket(globex, number)}})
    reader.most_rows = reader.most_queries = 10_000  # where they fill a read, more is read behind them
    pages = reader.walk("next", reader.page())
    assert sorted(numbers(pages)) == list(range(1, len(mine) + 1))
    assert {row.pk for p in pages for row in p.rows} <= {stored.ticket(ACME, n) for n in range(1, len(mine) + 1)}
    assert numbers(reader.walk("previous", pages[-1])[::-1]) == numbers(pages)


@given(offsets.filter(bool), st.integers(1, 7), st.data())
def test_a_ticket_that_changes_between_two_pages_takes_no_other_with_it(
    found: list[int], shards: int, data: st.DataObject
) -> None:
    reader = of_offsets(found, shards)
    first = reader.page()
    moved = data.draw(st.sampled_from(numbers([first])))
    reader.index.rows = [row for row in reader.index.rows if row["number"]["N"] != str(moved)]
    reader.index.rows.append(stamped(moved, 10**10, shards))
    assert sorted(numbers(reader.walk("next", first))) == list(range(1, len(found) + 1))


@pytest.mark.parametrize("resolver", ["me", "../x", "A" * 32, "0" * 31, "0" * 32 + "\n", "UNASSIGNED", "*"])
def test_a_resolver_that_is_no_user_id_is_refused_before_anything_is_read(resolver: str) -> None:
    tenant, index = tenant_in_memory(ACME)
    with pytest.raises(Invalid):
        lists.page(tenant, status=Status.OPEN, resolver=resolver)
    assert index.queries == 0


# --- words ---


@given(questions)
def test_a_filter_survives_its_own_words(only: TicketFilter) -> None:
    assert TicketFilter.parse({"status": "open", **only.params}) == only
    assert bool(only) == bool(only.params)


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2026-11-20", Days("2026-11-20", "2026-11-20")),
        ("2026-11-01..2026-11-07", Days("2026-11-01", "2026-11-07")),
        ("..2026-11-20", Days("", "2026-11-20")),
        ("2026-11-01..", Days("2026-11-01", "")),
    ],
)
def test_days_are_one_day_or_two_ends_of_which_one_may_be_open(text: str, days: Days) -> None:
    assert Days.parse(text, field="created") == days
    assert str(days) == text


@pytest.mark.parametrize(
    "text",
    [
        "..", ".", "x", "2026", "2026-11", "20261120", "2026-W47-5", "2026-13-01", "2026-02-30", "26-11-20",
        "2026-11-20T00:00", "2026-11-20 ", "2026-11-07..2026-11-01", "2026-11-01...2026-11-07", "2026-11-01..x",
        "2026-11-01..2026-11-02..2026-11-03", "\u0662026-11-20", "-2026-11-20", "#", "..%00",
    ],
)  # fmt: skip
def test_days_that_mean_nothing_are_refused_with_the_field(text: str) -> None:
    for field in filters.EVENTS:
        with pytest.raises(Invalid) as caught:
            TicketFilter.parse({field: text})
        assert caught.value.field == field


@pytest.mark.parametrize(
    "params", [{"priority": "huge"}, {"tag": "a,b"}, {"tag": "a#b"}, {"tag": "x" * 41}, {"tag": "a\x00b"}]
)
def test_a_word_that_no_ticket_can_have_is_refused(params: dict[str, str]) -> None:
    with pytest.raises(Invalid):
        TicketFilter.parse(params)


def test_a_tag_is_found_however_it_is_typed() -> None:
    assert TicketFilter.parse({"tag": " Printer Room "}).get("tag") == "printer-room"


def test_a_ticket_is_in_a_day_by_its_utc_date_both_ends_included() -> None:
    day = Days("2026-01-30", "2026-01-30")
    assert [day.hold(moment) for moment in MOMENTS[:4]] == [True, True, True, False]
    assert not day.hold("")
    assert not replace(day, first="", last="2026-01-29").hold(MOMENTS[0])


@given(
    st.datetimes(datetime(2006, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001  # bounds
    st.integers(-2, 2),
    st.integers(0, 2),
    st.sampled_from(sorted(clock.zone_names())),
)
def test_a_ticket_is_in_the_days_of_the_desks_zone_and_a_list_reads_from_where_they_begin(
    at: datetime, shift: int, length: int, zone: str
) -> None:
    local = at.astimezone(ZoneInfo(zone)).date()
    first, last = (local + timedelta(days=n) for n in (shift, shift + length))
    only = TicketFilter(created=Days(f"{first}", f"{last}")).in_zone(zone)
    days, stamp = only.get("created"), clock.stamp(at)
    assert days.hold(stamp) is (first <= local <= last)
    assert stamp >= only.since or not days.hold(stamp)
    assert only.params == {"created": str(Days(f"{first}", f"{last}"))}


@pytest.mark.parametrize("shards", [1, 4])
def test_what_changed_is_counted_however_much_of_it_a_filter_leaves_out(shards: int) -> None:
    tenant, index = tenant_in_memory(ACME, shards=shards)
    # The five that match changed first; thirty others, most of them in one shard, changed after.
    crowded = [n for n in range(6, 400) if stored.status_shard(n, shards) == 0][:30]
    index.rows = [
        index_row(ACME, n, f"2026-01-02T00:00:{at:02}.000000Z", shards=shards, tags=["vip"] if at < 5 else [])
        for at, n in enumerate([*range(1, 6), *crowded])
    ]
    seen = "2026-01-01T00:00:00.000000Z"
    vip = TicketFilter(tag="vip")
    assert lists.changed_since(tenant, status=[Status.OPEN], only=vip, seen=seen) == 5
    assert lists.changed_since(tenant, status=[Status.OPEN], seen=seen) == lists.NEWS_LIMIT
    index.rows = index.rows[5:17]
    assert lists.changed_since(tenant, status=[Status.OPEN], seen=seen) == 12
    index.queries = 0
    assert lists.changed_since(tenant, status=[Status.OPEN], seen="2026-01-03T00:00:00.000000Z") == 0
    assert index.queries == shards + 1
