"""Reading tickets by the API: the queue's lists, one ticket, and what both cost."""

from __future__ import annotations

from typing import Any

import pytest

from tenants.api_keys.scopes import Scope
from tests.desk.test_cost import _watching
from tests.support.api_client import ApiClient, api_client
from tests.support.world import World
from tickets.desk import changing, commenting, creating, lists
from tickets.ticket.fields import Priority, Status


@pytest.fixture
def acme(world: World) -> World:
    """Acme has five tickets: 1 is Bob's, 2 is closed, 3 is urgent, 4 has tags, 5 a comment and a note."""
    alice = world.context("alice", "acme")
    for n in range(1, 4):
        creating.create(alice, title=f"Ticket {n}", description="It *broke*.")
    creating.create(alice, title="Ticket 4", tags=["printer", "urgent"])
    creating.create(alice, title="Ticket 5")
    changing.assign(alice, 1, to=world.users["bob"].id, version=1)
    changing.change_status(alice, 2, to=Status.CLOSED, version=1)
    changing.edit(alice, 3, priority=Priority.URGENT, version=1)
    commenting.comment(alice, 5, body="Have you tried it off and on?")
    commenting.comment(alice, 5, body="Nobody has.", internal=True)
    return world


@pytest.fixture
def client(acme: World) -> ApiClient:
    return api_client(acme, Scope.TICKETS_READ)


def numbers(response: Any) -> list[int]:
    assert response.status_code == 200, response.content
    return [ticket["number"] for ticket in response.json()["data"]]


def test_the_list_has_open_tickets_the_one_that_changed_last_first(client: ApiClient) -> None:
    assert numbers(client.ask("/tickets")) == [5, 3, 1, 4]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("status=closed", [2]),
        ("status=any", [5, 3, 2, 1, 4]),
        ("priority=urgent", [3]),
        ("tag=printer", [4]),
        ("resolver=none", [5, 3, 4]),
        ("created=2001-01-01..", [5, 3, 1, 4]),
        ("created=..2001-01-01", []),
        ("commented=2001-01-01..", [5]),
        ("status=any&resolved=2001-01-01..", [2]),
        ("reopened=2001-01-01..", []),
    ],
)
def test_a_list_has_the_filters_of_the_queue(client: ApiClient, query: str, found: list[int]) -> None:
    assert numbers(client.ask(f"/tickets?{query}")) == found


@pytest.mark.parametrize("more", [(), (Scope.NOTES_READ,)], ids=["without notes", "with notes"])
def test_a_list_of_one_agents_tickets(acme: World, more: tuple[Scope, ...]) -> None:
    client = api_client(acme, Scope.TICKETS_READ, *more)
    assert numbers(client.ask(f"/tickets?resolver={acme.users['bob'].id}")) == [1]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("status=gone", "status"),
        ("priority=huge", "priority"),
        ("created=tomorrow", "created"),
        ("resolver=me", "resolver"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=1e9", "limit"),
        ("tag=a,b", "tag"),
    ],
)
def test_a_filter_that_means_nothing_names_its_parameter(client: ApiClient, query: str, field: str) -> None:
    response = client.ask(f"/tickets?{query}")
    assert (response.status_code, response.json()["code"], response.json()["field"]) == (422, "invalid", field)


def test_pages_lead_to_each_other_and_show_each_ticket_once(client: ApiClient) -> None:
    path, seen = "/api/v1/tickets?status=any&limit=2", list[int]()
    while path:
        response = client.call("GET", path, api="")
        seen += numbers(response)
        path = response.json()["next"]
        assert response.get("Link") == (f'<{path}>; rel="next"' if path else None)
    assert seen == [5, 3, 2, 1, 4]


def test_a_cursor_of_another_list_is_refused(client: ApiClient) -> None:
    after = client.ask("/tickets?limit=1").json()["next"].partition("after=")[2]
    for foreign in (f"/tickets?status=closed&after={after}", "/tickets?after=garbage", "/tickets/1/activity?after=x"):
        response = client.ask(foreign)
        assert (response.status_code, response.json()["code"]) == (422, "invalid")
        assert response.json()["field"] == "after"


def test_a_ticket_is_shown_with_all_that_its_page_says_of_it(acme: World, client: ApiClient) -> None:
    ticket = client.ask("/tickets/1").json()
    alice, bob = acme.users["alice"], acme.users["bob"]
    assert ticket["resolver"] == {"id": bob.id, "name": bob.name}
    assert (ticket["requester_id"], ticket["requester_name"]) == (alice.id, alice.name)
    assert (ticket["title"], ticket["description"]) == ("Ticket 1", "It *broke*.")
    assert (ticket["status"], ticket["priority"], ticket["version"]) == ("open", "normal", 2)
    listed = next(t for t in client.ask("/tickets").json()["data"] if t["number"] == 1)
    assert listed == {name: ticket[name] for name in listed}


def test_a_ticket_that_is_not_there_and_another_desks_are_not_found(acme: World, client: ApiClient) -> None:
    for response, number in ((client.ask("/tickets/99"), 99), (api_client(acme, where="globex").ask("/tickets/1"), 1)):
        assert (response.status_code, response.json()["detail"]) == (404, f"There is no ticket {number}.")


def test_only_who_may_read_notes_learns_that_there_are_some(acme: World, client: ApiClient) -> None:
    may = api_client(acme, Scope.TICKETS_READ, Scope.NOTES_READ, name="May")
    assert client.ask("/tickets/5").json()["noted_at"] is None
    assert may.ask("/tickets/5").json()["noted_at"]


def test_who_has_the_newest_state_is_not_sent_it_again(client: ApiClient) -> None:
    tag = client.ask("/tickets/1")["ETag"]
    again = client.ask("/tickets/1", If_None_Match=f'"other", W/{tag}')
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", tag)
    assert client.ask("/tickets/1", If_None_Match='"other"').status_code == 200


def test_the_tag_changes_with_a_change_and_with_a_comment(acme: World, client: ApiClient) -> None:
    alice, tags = acme.context("alice", "acme"), [client.ask("/tickets/1")["ETag"]]
    changing.edit(alice, 1, priority=Priority.LOW, version=2)
    tags.append(client.ask("/tickets/1")["ETag"])
    commenting.comment(alice, 1, body="Done.")
    tags.append(client.ask("/tickets/1")["ETag"])
    assert len(set(tags)) == 3


def test_a_filter_that_little_matches_ends_its_page_early_and_leads_on(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "_FIRST_ROUND", 2)
    path, pages = "/api/v1/tickets?status=any&tag=printer&limit=1", list[list[int]]()
    while path:
        with _watching() as bills:
            response = client.call("GET", path, api="")
        assert bills[0].trips == 2
        pages.append(numbers(response))
        path = response.json()["next"]
    assert len(pages) > 1
    assert pages[0] == []
    assert [number for page in pages for number in page] == [4]


@pytest.mark.parametrize(
    "path", ["/tickets", "/tickets?status=any", "/tickets?priority=urgent&tag=none", "/tickets/1", "/tickets/99"]
)
def test_a_read_takes_two_trips_and_writes_nothing(client: ApiClient, path: str) -> None:
    with _watching() as bills:
        client.ask(path)
    assert bills[0].trips == 2
    assert bills[0].write_units == 0
