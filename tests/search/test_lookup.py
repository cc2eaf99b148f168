"""The index is read in as few round trips as can be, and what is merged meanwhile hides nothing."""

from __future__ import annotations

import pytest

from portal.dynamo import meter
from portal.schema.keys import digest
from tests.search.desk_in_memory import MemoryDesk
from tickets.search import index_lookup, stored, ticket_search
from tickets.search.index import segments


@pytest.fixture
def desk() -> MemoryDesk:
    """Tickets in three segments."""
    desk = MemoryDesk()
    for n in range(30):
        desk.ticket(f"Printer number{n}", index=False)
    for start in (1, 11, 21):
        desk.index_as_segment(range(start, start + 10))
    return desk


def trips(desk: MemoryDesk, text: str) -> int:
    with meter.measure() as bill:
        ticket_search.find(desk.agent, text)
    return bill.trips


def merge(desk: MemoryDesk, *, born: int) -> None:
    """Make one segment of all, as a merge does, under this number."""
    desk.store.directory.clear()
    for segment, number in desk.store.stored_blocks:
        desk.store.delete_blocks(segment, [number])
    desk.store.put_raw(stored.LOCK, {"last": {"N": str(born)}})
    desk.index_as_segment(range(1, 31))


def test_a_search_takes_three_round_trips_and_two_where_the_headers_are_known(desk: MemoryDesk) -> None:
    assert [trips(desk, "printer"), trips(desk, "printer"), trips(desk, "number7 printer")] == [3, 2, 2]
    assert trips(desk, "printer status:open") == 3 + 1  # the desk's fields, which a page has already


def test_who_remembers_headers_of_before_a_merge_reads_once_more_and_finds_the_same(desk: MemoryDesk) -> None:
    before = ticket_search.find(desk.agent, "printer").about
    merge(desk, born=9)
    assert trips(desk, "printer") == 3
    assert ticket_search.find(desk.agent, "printer").about == before == 30
    assert trips(desk, "printer") == 2


def test_how_many_tickets_there_are_is_read_once_for_as_long_as_the_headers_stay(desk: MemoryDesk) -> None:
    def counted() -> int:
        with meter.measure() as bill:
            ticket_search.find(desk.agent, "printer")
        return sum(call.operation == "GetItem" for call in bill.calls)

    assert [counted(), counted()] == [1, 0]
    desk.ticket("Printer again")
    assert counted() == 0
    merge(desk, born=9)
    assert [counted(), counted(), counted()] == [0, 1, 0]


def test_a_later_page_goes_on_where_a_process_began_that_knew_of_fewer_tickets(desk: MemoryDesk) -> None:
    for _ in range(10):
        desk.ticket("Printer")
    ticket_search.find(desk.agent, "printer")
    desk.ticket("Toaster", number=400)
    first = ticket_search.find(desk.agent, "printer")
    index_lookup.forget()
    second = ticket_search.find(desk.agent, "printer", further=first.further)
    assert sorted(int(hit.summary.number) for hit in (*first.hits, *second.hits)) == [*range(1, 41)]


def test_a_later_page_goes_on_where_the_first_ended_though_a_word_counts_less_since(desk: MemoryDesk) -> None:
    for _ in range(10):
        desk.ticket("Toaster")
    first = ticket_search.find(desk.agent, "printer")
    desk.ticket("Printer")  # 31 of 40 have it: a step less rare than 30
    second = ticket_search.find(desk.agent, "printer", further=first.further)
    assert sorted(int(hit.summary.number) for hit in (*first.hits, *second.hits)) == [*range(1, 31)]


def test_a_rare_word_counts_more_though_a_process_knew_of_fewer_tickets() -> None:
    desk = MemoryDesk()
    rare = desk.ticket("Order", comments=["Toner " + "and so on " * 33])
    ticket_search.find(desk.agent, "toner")
    for _ in range(30):
        desk.ticket("Printer")
    assert ticket_search.find(desk.agent, "printer toner").nearly[0].summary.number == rare


def test_who_misses_a_block_begins_anew(desk: MemoryDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    read = index_lookup.read_state
    seen: list[bool] = []

    def read_and_merge(repository: object, *, consistent: bool = False) -> object:
        state = read(repository, consistent=consistent)  # type: ignore[arg-type]
        if not seen:
            merge(desk, born=9)
        seen.append(consistent)
        return state

    monkeypatch.setattr(index_lookup, "read_state", read_and_merge)
    assert ticket_search.find(desk.agent, "printer").about == 30
    assert seen == [False, True]


@pytest.mark.parametrize(("harm", "said"), [(None, "is missing"), (b"damaged", "cannot be read")])
def test_who_misses_it_twice_answers_from_the_others_and_says_so(
    desk: MemoryDesk, caplog: pytest.LogCaptureFixture, harm: bytes | None, said: str
) -> None:
    (segment, number), *_ = sorted(desk.store.stored_blocks)
    desk.store.delete_blocks(segment, [number]) if harm is None else desk.store.put_blocks(segment, {number: harm})
    for _ in range(2):
        result = ticket_search.find(desk.agent, "printer ")
        assert {int(hit.summary.number) for hit in result.hits} == {*range(11, 31)}
        assert (result.explanations, result.about) == ((ticket_search.PARTLY_LOST,), None)
    assert f"of segment {segment} of the index of tenant {desk.agent.tenant_id} {said}" in caplog.text
    assert [int(hit.summary.number) for hit in ticket_search.find(desk.agent, "printer number25 ").hits] == [26]
    desk.store.put_raw(stored.header("0000000099"), {"b": {"S": "?"}})
    assert ticket_search.find(desk.agent, "zebra").explanations == (ticket_search.PARTLY_LOST,)


def test_what_lost_parts_do_not_concern_is_found_without_a_word_about_them(
    desk: MemoryDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "block_limit", lambda expected: 90)
    words = sorted(digest(str(n)) for n in range(20))
    desk.ticket("Zebra", " ".join(words), index=False)
    desk.index_as_segment([31])
    segment, last = max(desk.store.stored_blocks)
    desk.store.delete_blocks(segment, [last])
    assert ticket_search.find(desk.agent, f"{words[0]} ").explanations == ()
    assert ticket_search.find(desk.agent, "zebra ").explanations == (ticket_search.PARTLY_LOST,)


def test_where_more_blocks_hold_a_word_than_are_read_the_text_decides(
    desk: MemoryDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = index_lookup._planned
    monkeypatch.setattr(index_lookup, "_planned", lambda headers, ranges, limit: planned(headers, ranges, 2))
    result = ticket_search.find(desk.agent, "number2 printer ")
    assert result.about is None
    assert {int(hit.summary.number) for hit in result.hits} <= {3}
    assert ticket_search.TOO_MANY in result.explanations
