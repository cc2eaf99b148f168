"""While somebody types, tickets, tags and people are offered that begin so, as options that lead there."""

from __future__ import annotations

import re
from html import unescape

import pytest

from portal.dynamo import meter
from tenants.membership.members import ListedMember
from tenants.tenancy.context import Role
from tests.search.desk_in_memory import MemoryDesk
from tests.support.operators import text_of
from tests.support.world import World
from tickets.search import index_lookup, suggesting
from tickets.search.results import Suggestions
from tickets.ticket import stored
from tickets.ticket.stored import SummaryItem


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
    desk.ticket("東京の件")
    expected: dict[str, list[int]] = {
        "prin": [1, 2, 3], "printer smo": [1], "status:closed prin": [3], "3": [3], "#2": [2], "99": [], "東": [4]
    }  # fmt: skip
    assert {text: sorted(numbers(desk, text)) for text in expected} == expected


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
        ("autentificaton", ""), ("autentcation", "authentication"), ("zepelin", ""),
    ],
)  # fmt: skip
def test_a_slip_in_a_word_is_put_right_by_a_word_that_the_desk_has(desk: MemoryDesk, typed: str, meant: str) -> None:
    desk.ticket("Authentication fails")
    desk.ticket("Renamed", number=desk.ticket("Zeppelin"), index=False)
    assert suggesting.meant(desk.agent, typed) == meant


def test_a_word_of_comments_is_offered_and_one_of_notes_is_not(desk: MemoryDesk) -> None:
    desk.ticket("Quiet", comments=["Call Melchior"], notes=["Somebody called Zebediah"])
    assert suggesting.meant(desk.viewer, "melchor") == "melchior"
    assert suggesting.meant(desk.agent, "zebedia") == suggesting.meant(desk.viewer, "zebedia") == ""


def test_looking_for_what_was_meant_is_bounded(desk: MemoryDesk) -> None:
    suggesting.suggest(desk.agent, "scanner")
    for text, most in (("scaner", 6), ("xyzzy", 3), ("ab", 0)):
        with meter.measure() as bill:
            suggesting.meant(desk.agent, text)
        assert bill.trips <= most, text


# --- the list below the box ---


def test_tickets_tags_and_people_are_options_that_lead_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.tickets("acme", 1)
    summary = world.context("bob", "acme").repository.get(SummaryItem, stored.ticket, 1, sort=stored.SUMMARY)
    assert summary is not None
    alice = world.users["alice"]
    suggested = Suggestions((summary,), ("bill<ing",), (ListedMember(alice.id, "Alice Example", "", Role.AGENT),))
    monkeypatch.setattr(suggesting, "suggest", lambda tenant, text: suggested)
    page = world.browser("bob").get("/search/suggest/?q=b")
    assert text_of(page) == "Tickets #1 Ticket 1 Open Tags bill<ing People AE Alice Example"
    html = page.content.decode()
    options = re.findall(r'<a class="option" role="option" id="([\w-]+)" href="([^"]+)"', html)
    assert [(id_, unescape(url)) for id_, url in options] == [
        ("suggested-ticket-1", "/acme/tickets/1/"),
        ("suggested-tag-1", "/acme/search/?q=tag%3Abill%3Cing"),
        ("suggested-person-1", f"/acme/tickets/?status=any&resolver={alice.id}&name=Alice+Example"),
    ]


@pytest.mark.parametrize(("asked", "status"), [("?q=tag:", 200), ("", 204)])
def test_nothing_is_offered_for_what_cannot_be_searched_for(world: World, asked: str, status: int) -> None:
    page = world.browser("bob").get(f"/search/suggest/{asked}")
    assert (page.status_code, text_of(page)) == (status, "")
