"""Of a ticket with more history than a search reads, what was read can deny, and the index tells of single words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from api.v1.ticket_routes import search_tickets
from portal.dynamo import meter
from portal.web import access
from tests.search.desk_in_memory import MemoryDesk
from tickets.search import index_lookup, ticket_search, ticket_texts
from tickets.search.results import Hit, Where


@pytest.fixture
def desk() -> MemoryDesk:
    return MemoryDesk()


@pytest.fixture
def long(desk: MemoryDesk, monkeypatch: pytest.MonkeyPatch) -> int:
    """A ticket of which two old comments are not read."""
    monkeypatch.setattr(ticket_texts, "ENTRIES_READ", 2)
    monkeypatch.setattr(ticket_texts, "FURTHER_ENTRIES", 3)
    old = ["A zebra or a yak", "It is forbidden, see CVE-2014-0160"]
    return desk.ticket("Gadget", "It broke", comments=[*old, "Fresh", *["Alpha", "Alpha"] * 2])


@pytest.mark.parametrize(("entries", "reads"), [(160, 1), (200, 1), (201, 2)])
def test_a_history_of_up_to_two_hundred_entries_is_read_in_the_trip_of_the_texts(
    desk: MemoryDesk, entries: int, reads: int
) -> None:
    desk.ticket("Gadget", comments=["A zebra", *["Alpha"] * (entries - 1)])
    with meter.measure() as bill:
        (hit,) = ticket_search.find(desk.agent, "zebra").hits
    assert [piece.text for piece in hit.snippet if piece.is_match] == ["zebra"]
    assert bill.trips == 1 + reads


def test_the_route_of_the_api_declares_thirty_such_histories_and_the_most_blocks(desk: MemoryDesk) -> None:
    for _ in range(ticket_search.CHECKED):
        desk.ticket("Gadget", comments=["A zebra " + "x" * 290] * 200)
    with meter.measure() as bill:
        assert ticket_search.find(desk.agent, "zebra").hits
    declared = access.own_cost_of(search_tickets, "GET")
    assert declared is not None
    assert declared.has_room_for((bill.trips, bill.read_units + 2 * index_lookup.BLOCKS_LIMIT, 0))


def numbered(hits: Sequence[Hit]) -> list[int]:
    return [int(hit.summary.number) for hit in hits]


@pytest.mark.parametrize("query", ["zebra", "zebras", '"zebra"', "zebra gadget", "cve-2014-0160 ", "zebra alpha"])
def test_words_of_comments_that_were_not_read_are_found_as_the_index_says(
    desk: MemoryDesk, long: int, query: str
) -> None:
    result = ticket_search.find(desk.agent, query)
    assert numbered(result.hits) == [long]
    assert result.explanations == (ticket_search.UNREAD % {"tickets": f"#{long}"},)
    assert result.hits[0].where is Where.COMMENT
    if query == "zebra":
        assert "".join(piece.text for piece in result.hits[0].snippet) == ticket_search.OLDER


def test_a_word_that_the_index_has_not_is_not_found_where_not_all_was_read(desk: MemoryDesk, long: int) -> None:
    other = desk.ticket("Beta")
    result = ticket_search.find(desk.agent, "alpha beta ")
    assert (result.hits, {*numbered(result.nearly)}, result.explanations) == ((), {long, other}, ())
    assert ticket_search.find(desk.agent, '"alpha gadget"').hits == ()


def test_a_phrase_that_only_comments_can_have_that_were_not_read_is_no_hit_and_a_sentence_says_so(
    desk: MemoryDesk, long: int
) -> None:
    result = ticket_search.find(desk.agent, '"alpha zebra"')
    assert (result.hits, numbered(result.nearly)) == ((), [long])
    assert result.explanations == (ticket_search.UNREAD % {"tickets": f"#{long}"},)


@pytest.mark.parametrize("word", ["gadget", "broke", "fresh", '"fresh"'])
def test_a_word_with_a_minus_holds_where_not_all_was_read(desk: MemoryDesk, long: int, word: str) -> None:
    result = ticket_search.find(desk.agent, f"alpha -{word} ")
    assert (result.hits, result.nearly, result.explanations) == ((), (), ())


def test_where_a_word_with_a_minus_may_stand_in_comments_that_were_not_read_a_sentence_says_so(
    desk: MemoryDesk, long: int
) -> None:
    result = ticket_search.find(desk.agent, "alpha -forbidden ")
    assert numbered(result.hits) == [long]
    assert result.explanations == (ticket_search.UNREAD % {"tickets": f"#{long}"},)
    assert ticket_search.find(desk.agent, "alpha -forbidden status:closed").explanations == ()
