"""While somebody types, tickets, tags and people are offered that begin so."""

from __future__ import annotations

import pytest

from portal.dynamo import meter
from tenants.tenancy.roles import Role
from tests.search.desk_in_memory import MemoryDesk
from tickets.search import index_lookup, suggesting


@pytest.fixture
def desk() -> MemoryDesk:
    desk = MemoryDesk()
    desk.ticket("Printer smokes", tags=["printing", "alarm"])
    desk.ticket("Print server", "Alice knows", tags=["printing"])
    desk.ticket("Scanner that prints", "Out of order", comments=["It smells"], status="closed")
    return desk


def numbers(desk: MemoryDesk, text: str) -> list[int]:
    return [int(ticket.number) for ticket in suggesting.suggest(desk.agent, text).tickets]


def test_tickets_whose_words_begin_so_are_offered(desk: MemoryDesk) -> None:
    assert sorted(numbers(desk, "prin")) == [1, 2, 3]
    assert numbers(desk, "printer smo") == [1]
    assert numbers(desk, "status:closed prin") == [3]


def test_a_number_offers_its_ticket(desk: MemoryDesk) -> None:
    assert numbers(desk, "3") == [3]
    assert numbers(desk, "#2") == [2]
    assert numbers(desk, "99") == []


def test_tags_are_offered_while_a_ticket_has_them(desk: MemoryDesk) -> None:
    assert suggesting.suggest(desk.agent, "pri").tags == ("printing",)
    desk.ticket("Print server", tags=["renamed"], number=2, index=False)
    assert suggesting.suggest(desk.agent, "pri").tags == ()


def test_people_are_offered_who_can_have_tickets(desk: MemoryDesk) -> None:
    desk.member("d" * 32, "Alicia Viewer", Role.VIEWER)
    assert [person.name for person in suggesting.suggest(desk.agent, "ali").people] == ["Alice Example"]
    assert [person.name for person in suggesting.suggest(desk.agent, "alice ex").people] == ["Alice Example"]
    assert suggesting.suggest(desk.agent, "lice").people == ()


@pytest.mark.parametrize("text", ["", "p", "🙂", '"', "of"])
def test_too_little_offers_nothing(desk: MemoryDesk, text: str) -> None:
    found = suggesting.suggest(desk.agent, text)
    assert (found.tickets, found.tags, found.people) == ((), (), ())


def test_one_character_is_enough_where_words_are_short(desk: MemoryDesk) -> None:
    number = desk.ticket("東京の件")
    assert numbers(desk, "東") == [number]


def test_tickets_are_offered_for_the_words_of_their_title_tags_and_requester_alone(desk: MemoryDesk) -> None:
    number = desk.ticket("Quiet", "hushed", comments=["murmur"], notes=["whisper"], tags=["loud"], requester_name="Zoe")
    offered = {text: numbers(desk, text) for text in ("quie", "loud", "zoe", "loud qui", "hush", "murm", "whis")}
    assert [text for text in offered if offered[text] == [number]] == ["quie", "loud", "zoe", "loud qui"]
    assert [text for text in offered if not offered[text]] == ["hush", "murm", "whis"]
    assert sorted(numbers(desk, "-smokes prin")) == [2, 3]


def test_a_title_that_was_changed_offers_what_it_says_now_and_leaves_room_for_others(desk: MemoryDesk) -> None:
    desk.ticket("Telephone")
    for n in range(11):
        desk.ticket(f"Telephone {n}")
    for n in range(12, 16):
        desk.ticket("Renamed", number=n, index=False)
    assert len(numbers(desk, "telepho")) == 8
    assert not {*numbers(desk, "telepho")} & {*range(12, 16)}


def test_three_round_trips_and_two_where_headers_are_known(desk: MemoryDesk) -> None:
    desk.index_as_segment([1, 2, 3])
    index_lookup.forget()
    trips = []
    for _ in range(2):
        with meter.measure() as bill:
            suggesting.suggest(desk.agent, "prin")
        trips.append(bill.trips)
    assert trips == [3, 2]


# --- what may have been meant ---


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("scaner", "scanner"), ("scannner", "scanner"), ("scamner", "scanner"), ("scnaner", "scanner"),
        ("csanner", "scanner"), ("smokse", "smokes"), ("Scaner that prints", "scanner that prints"),
        ("certificat", ""), ("scanner", ""), ("xyzzy", ""), ("prnt", "print"), ("ab", ""),
    ],
)  # fmt: skip
def test_a_slip_in_a_word_is_put_right_by_a_word_that_the_desk_has(desk: MemoryDesk, typed: str, meant: str) -> None:
    assert suggesting.meant(desk.agent, typed) == meant


def test_two_slips_are_forgiven_in_a_long_word(desk: MemoryDesk) -> None:
    desk.ticket("Authentication fails")
    assert suggesting.meant(desk.agent, "autentificaton") == ""
    assert suggesting.meant(desk.agent, "autentcation") == "authentication"


def test_a_word_of_comments_is_offered_and_one_of_notes_is_not(desk: MemoryDesk) -> None:
    desk.ticket("Quiet", comments=["Call Melchior"], notes=["Somebody called Zebediah"])
    assert suggesting.meant(desk.viewer, "melchor") == "melchior"
    assert suggesting.meant(desk.agent, "zebedia") == suggesting.meant(desk.viewer, "zebedia") == ""


def test_a_word_that_was_taken_out_of_its_ticket_is_not_offered(desk: MemoryDesk) -> None:
    number = desk.ticket("Zeppelin")
    desk.ticket("Renamed", number=number, index=False)
    assert suggesting.meant(desk.agent, "zepelin") == ""


def test_looking_for_what_was_meant_is_bounded(desk: MemoryDesk) -> None:
    suggesting.suggest(desk.agent, "scanner")
    for text, most in (("scaner", 6), ("xyzzy", 3), ("ab", 0)):
        with meter.measure() as bill:
            suggesting.meant(desk.agent, text)
        assert bill.trips <= most, text
