"""`manage.py search` on an engine: the same answers as the page's, by the tenant's own credentials and policy."""

from __future__ import annotations

import json

import pytest

from tests.support import commands
from tests.support.folding import Follower
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.following import ticket_stream
from tickets.search import index_lookup, suggesting, ticket_search


@pytest.fixture
def tickets(world: World) -> list[int]:
    index_lookup.forget()
    follower = Follower(handler=ticket_stream.handle)
    alice = world.context("alice", "acme")
    numbers = [
        creating.create(alice, title="The printer smokes", description="In the *cellar*"),
        creating.create(alice, title="An invoice is late", description="Printers of it, two", tags=["money"]),
        creating.create(world.context("charlie", "globex"), title="A foreign printer", description=""),
    ]
    commenting.comment(alice, numbers[1], body="We whisper about it", internal=True)
    follower.fold()
    return numbers


def test_the_command_finds_what_the_page_finds(world: World, tickets: list[int]) -> None:
    ended = commands.run("search", "printer", "--tenant", "acme")
    assert "The [printer] smokes" in ended.out
    assert "description: [Printers] of it, two" in ended.out
    assert "foreign" not in ended.out
    document = json.loads(commands.run("search", "printer", "--tenant", "acme", "--json").out)
    page = ticket_search.find(world.context("alice", "acme"), "printer")
    assert [row["number"] for row in document["tickets"]] == [hit.summary.number for hit in page.hits]
    assert document["about"] == 2
    ended = commands.run("search", "printer cellar", "--tenant", "acme")
    assert "[cellar]" in ended.out.splitlines()[1]
    assert "With some of the words:" in ended.err
    document = json.loads(commands.run("search", "printer cellar", "--tenant", "acme", "--json").out)
    assert [row["number"] for row in document["nearly"]] == [tickets[1]]


def test_a_query_that_asks_nothing_ends_with_a_sentence(tickets: list[int]) -> None:
    ended = commands.run("search", "the", "--tenant", "acme")
    assert ended.status == 1
    assert "These words are in nearly every ticket." in ended.err


def test_roles_decide_on_notes(world: World, tickets: list[int]) -> None:
    found = {who: ticket_search.find(world.context(who, "acme"), "whisper").hits for who in ("bob", "vera")}
    assert [hit.summary.number for hit in found["bob"]] == [tickets[1]]
    assert found["vera"] == ()


def test_conditions_and_suggestions_on_an_engine(world: World, tickets: list[int]) -> None:
    alice = world.context("alice", "acme")
    by_status = ticket_search.find(alice, "printer status:open assignee:nobody from:me before:2999 -cellar")
    assert [hit.summary.number for hit in by_status.hits] == [tickets[1]]
    suggested = suggesting.suggest(alice, "mon")
    assert suggested.tags == ("money",)
    assert [person.name for person in suggesting.suggest(alice, "ali").people] == ["Alice Example"]
