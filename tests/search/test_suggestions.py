"""What is offered while somebody types."""

from __future__ import annotations

import re
from html import unescape

import pytest

from tests.support.operators import text_of
from tests.support.world import World
from tickets.search import suggesting
from tickets.search.results import FoundPerson, Suggestions
from tickets.ticket import stored
from tickets.ticket.stored import SummaryItem


def test_tickets_tags_and_people_are_options_that_lead_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.tickets("acme", 1)
    summary = world.context("bob", "acme").repository.get(SummaryItem, stored.ticket, 1, sort=stored.SUMMARY)
    assert summary is not None
    alice = world.users["alice"]
    suggested = Suggestions((summary,), ("bill<ing",), (FoundPerson(alice.id, "Alice Example"),))
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


def test_nothing_is_offered_for_what_cannot_be_searched_for_yet(world: World) -> None:
    page = world.browser("bob").get("/search/suggest/?q=tag:")
    assert (page.status_code, text_of(page)) == (200, "")


def test_nothing_is_offered_without_a_text(world: World) -> None:
    answer = world.browser("bob").get("/search/suggest/")
    assert (answer.status_code, answer.content) == (204, b"")
