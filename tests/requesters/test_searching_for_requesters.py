"""A search finds the tickets of people outside the desk by name, and by each of their addresses."""

from __future__ import annotations

import pytest

from tenants.audit_trail.recording import SYSTEM
from tests.support.commands import run
from tests.support.searching import index_all
from tests.support.world import World
from tickets.desk import creating
from tickets.requesters import requester_changes, requesters


@pytest.fixture
def desk(world: World) -> World:
    alice = world.context("alice", "acme")
    ada = requesters.ensure(alice, "ada@example.org", name="Ada Lovelace")
    countess = requesters.ensure(alice, "countess@work.example", name="The Countess")
    for title, person in (("Engine", ada), ("Title", countess), ("Compiler", None)):
        creating.create(alice, title=title, requester=person)
    requester_changes.merge(alice, ada.id, countess.id, by=SYSTEM)
    globex = world.context("charlie", "globex")
    creating.create(globex, title="Elsewhere", requester=requesters.ensure(globex, "ada@example.org"))
    index_all()
    return world


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("from:ada@example.org", {"Engine", "Title"}),
        ("from:COUNTESS@work.example", {"Engine", "Title"}),
        ("from:ada@ex", {"Engine", "Title"}),
        ("from:ada@example.org engine", {"Engine"}),
        ("from:lovelace", {"Engine"}),
        ("lovelace", {"Engine"}),
        ("from:nobody@example.org", set()),
    ],
)
def test_tickets_are_found_by_who_asked_for_them(desk: World, query: str, titles: set[str]) -> None:
    page = desk.browser("bob", "acme").get("/search/", {"q": query}).content.decode()
    assert {
        title
        for title in ("Engine", "Title", "Compiler", "Elsewhere")
        if f">{title}</a>" in page or f"<mark>{title}</mark>" in page
    } == titles


def test_the_page_of_a_person_leads_to_a_search_that_finds_all_their_tickets(desk: World) -> None:
    found = run("search", "--tenant", "acme", "from:ada@example.org")
    assert ("Engine" in found.out, "Title" in found.out, "Elsewhere" in found.out) == (True, True, False)
