"""Searching tickets by the API: what is found, for whom, how one goes on, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from portal.load import tenant_limiter
from tenants.api_keys.scopes import Scope
from tests.desk.test_cost import _watching
from tests.search.test_search_page_cost import indexed_world
from tests.support.api_client import ApiClient, api_client
from tests.support.searching import index_all
from tests.support.world import World
from tickets.desk import commenting, creating
from tickets.search import ticket_search
from tickets.ticket.fields import Priority


@pytest.fixture
def acme(world: World) -> World:
    """Acme has three tickets about printers: the second is urgent, and has the word in a comment and "toner" in a note.

    Globex has one.
    """
    alice = world.context("alice", "acme")
    creating.create(alice, title="The printer jams", tags=["office"])
    creating.create(alice, title="Paper", priority=Priority.URGENT)
    creating.create(alice, title="Cables", description="One for the *printer*, please.")
    commenting.comment(alice, 2, body="For the printer on the third floor.")
    commenting.comment(alice, 2, body="The toner is low.", internal=True)
    creating.create(world.context("charlie", "globex"), title="The printer of Globex")
    index_all()
    return world


@pytest.fixture
def client(acme: World) -> ApiClient:
    return api_client(acme, Scope.TICKETS_READ)


def numbers(response: Any) -> set[int]:
    assert response.status_code == 200, response.content
    return {ticket["number"] for ticket in response.json()["data"]}


def test_a_search_finds_words_wherever_they_stand_and_says_where(client: ApiClient) -> None:
    found = {ticket["number"]: ticket for ticket in client.ask("/search?q=printer").json()["data"]}
    assert {n: found[n]["found_in"] for n in found} == {1: "title", 2: "comment", 3: "description"}
    assert [piece["text"] for piece in found[3]["snippet"] if piece["is_match"]] == ["printer"]
    (comment,) = [one for one in client.ask("/tickets/2/activity").json()["data"] if one["kind"] == "comment"]
    assert {n: found[n]["entry"] for n in found} == {1: None, 2: comment["id"], 3: None}
    listed = client.ask("/tickets?status=any").json()["data"][-1]
    assert {name: found[listed["number"]][name] for name in listed} == listed


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=printer&priority=urgent", {2}),
        ("q=printer+priority:urgent", {2}),
        ("q=printer&tag=office", {1}),
        ("q=printer&status=closed", set()),
        ("q=printer&created=..2001-01-01", set()),
        ("q=printer&resolver=none&status=unresolved", {1, 2, 3}),
        ("q=printer+-jams", {2, 3}),
        ("q=toner", set()),
    ],
)
def test_a_search_has_the_operators_of_the_box_and_the_filters_of_the_list(
    client: ApiClient, query: str, found: set[int]
) -> None:
    assert numbers(client.ask(f"/search?{query}")) == found


def test_internal_notes_are_searched_for_keys_that_may_read_them(acme: World) -> None:
    (found,) = api_client(acme, Scope.TICKETS_READ, Scope.NOTES_READ).ask("/search?q=toner").json()["data"]
    assert (found["number"], found["found_in"]) == (2, "note")


def test_people_are_named_only_by_keys_that_may_read_the_members(acme: World, client: ApiClient) -> None:
    for text in ("printer+assignee:bob", "printer+from:alice@example.com"):
        refused = client.ask(f"/search?q={text}")
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing")
    able = api_client(acme, Scope.TICKETS_READ, Scope.MEMBERS_READ)
    assert numbers(able.ask("/search?q=printer+from:alice@example.com")) == {1, 2, 3}
    assert numbers(client.ask("/search?q=printer+assignee:nobody")) == {1, 2, 3}


def test_what_was_ignored_is_said(client: ApiClient) -> None:
    found = client.ask("/search?q=printer+OR+paper").json()
    assert found["explanations"] == ["OR is not understood: tickets that have all of the words are found."]


@pytest.mark.parametrize(
    ("query", "field"),
    [("", "q"), ("q=", "q"), ("q=the", "q"), ("q=printer&after=x", "after"), (f"q={'x' * 2001}", "q")],
)
def test_a_search_for_nothing_is_refused_at_its_parameter(client: ApiClient, query: str, field: str) -> None:
    refused = client.ask(f"/search?{query}")
    assert (refused.status_code, refused.json()["field"]) == (422, field)
    assert "1 characters" not in refused.json()["detail"]


@pytest.mark.parametrize("order", ["best", "newest"])
def test_a_search_goes_on_page_by_page_to_its_end(
    acme: World, client: ApiClient, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    monkeypatch.setattr(ticket_search, "SHOWN", 1)
    walked, address = [], f"/search?q=printer&order={order}"
    while address:
        page = client.ask(address)
        walked += [ticket["number"] for ticket in page.json()["data"]]
        address = (page.json()["next"] or "").removeprefix("/api/v1")
        assert ("Link" in page) == bool(address)
    assert sorted(walked) == [1, 2, 3]
    assert order == "best" or walked == [3, 2, 1]


def test_one_search_too_many_is_refused_with_the_time_to_wait(acme: World, client: ApiClient) -> None:
    tenant_id = acme.tenants["acme"].tenant_id
    while tenant_limiter.searches.enter(tenant_id):
        pass
    try:
        refused = client.ask("/search?q=printer")
    finally:
        while tenant_limiter.searches.taken(tenant_id):
            tenant_limiter.searches.leave(tenant_id)
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_at_once")
    assert int(refused["Retry-After"]) >= 1


@pytest.mark.parametrize("count", [20, 1000])
def test_a_search_takes_three_trips_beside_identity_and_two_where_the_headers_are_known(
    engine: None, count: int
) -> None:
    client = api_client(indexed_world(count), Scope.TICKETS_READ)
    for trips in (3, 2):
        with _watching() as bills:
            assert client.ask("/search?q=ticket").status_code == 200
        assert (bills[0].trips, bills[0].write_units) == (1 + trips, 0)
        assert bills[0].read_units <= 42
