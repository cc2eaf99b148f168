"""Systems find, add and change requesters, and create tickets for them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api_client import ApiClient, api_client
from tests.support.world import World
from tickets.requesters import requesters

ADA = {"name": "Ada Lovelace", "addresses": ["Ada@example.org", "ada@work.example"], "organisation": "Engines"}


@pytest.fixture
def client(world: World) -> ApiClient:
    return api_client(world, name="Contacts")


@pytest.fixture
def ada(client: ApiClient) -> Any:
    return client.send("/requesters", ADA).json()


def test_a_person_is_added_read_and_changed(client: ApiClient) -> None:
    answer = client.send("/requesters", ADA)
    made = answer.json()
    assert (answer.status_code, answer["Location"]) == (201, f"/api/v1/requesters/{made['id']}")
    assert (made["addresses"], made["undeliverable"], made["version"]) == (
        ["ada@example.org", "ada@work.example"],
        {},
        1,
    )
    read = client.ask(f"/requesters/{made['id']}")
    assert read.json() == made
    assert client.ask(f"/requesters/{made['id']}", If_None_Match=read["ETag"]).status_code == 304
    change = {"notes": "Calls in the mornings.", "addresses": ["ada@work.example"]}
    changed = client.call("PATCH", f"/requesters/{made['id']}", change, If_Match=read["ETag"])
    assert changed.json() == made | {"notes": "Calls in the mornings.", "addresses": ["ada@work.example"], "version": 2}
    assert client.call("PATCH", f"/requesters/{made['id']}", change, If_Match=read["ETag"]).status_code == 412


def test_the_same_request_sent_again_adds_one_person(client: ApiClient) -> None:
    answers = [client.send("/requesters", {"name": "Grace"}, Idempotency_Key="once") for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert [one["name"] for one in client.ask("/requesters").json()["data"]] == ["Grace"]


def test_people_are_listed_by_name_page_by_page_and_found_by_a_beginning(client: ApiClient, ada: Any) -> None:
    for name in ("Émile", "grace", "Zoe"):
        client.send("/requesters", {"name": name})
    first = client.ask("/requesters?limit=3").json()
    assert [one["name"] for one in first["data"]] == ["Ada Lovelace", "Émile", "grace"]
    second = client.get(first["next"], headers={"Authorization": f"Bearer {client.key}"}).json()
    assert ([one["name"] for one in second["data"]], second["next"]) == (["Zoe"], None)
    for typed in ("ada l", "ada@w"):
        assert client.ask(f"/requesters?q={typed}").json()["data"] == [ada]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"addresses": ["ada at example"]}, "addresses"),
        ({"addresses": ["ada@work.example"]}, "addresses"),
        ({}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "x", "language": "English!"}, "language"),
    ],
)
def test_a_person_who_cannot_be_is_refused_with_the_field(
    client: ApiClient, ada: Any, body: dict[str, Any], field: str
) -> None:
    answer = client.send("/requesters", body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


@pytest.mark.parametrize("who", ["{id}", "ADA@work.example", "Somebody <ada@example.org>"])
def test_a_ticket_is_created_for_somebody_known(client: ApiClient, ada: Any, who: str) -> None:
    made = client.send("/tickets", {"title": "Engine", "requester": who.format(**ada)}).json()
    assert (made["requester_id"], made["requester_name"]) == (ada["id"], "Ada Lovelace")


def test_a_ticket_for_an_address_that_nobody_has_adds_the_person(world: World, client: ApiClient) -> None:
    body = {"title": "Engine", "requester": "Grace Hopper <grace@example.org>"}
    answers = [client.send("/tickets", body, Idempotency_Key="once").json() for _ in range(2)]
    grace = requesters.by_address(world.context("alice", "acme"), "grace@example.org")
    assert grace is not None
    assert [one["requester_id"] for one in answers] == [grace.id, grace.id]
    assert grace.name == "Grace Hopper"


@pytest.mark.parametrize("who", ["rq_" + "0" * 32, "Nobody", "a@@b", "xx"])
def test_a_ticket_for_nobody_is_refused_at_its_field(client: ApiClient, who: str) -> None:
    answer = client.send("/tickets", {"title": "Engine", "requester": who})
    assert (answer.status_code, answer.json()["field"]) == (422, "requester")
    assert client.ask("/tickets").json()["data"] == []


def test_another_desk_knows_nothing_of_a_person(world: World, ada: Any) -> None:
    globex = api_client(world, where="globex")
    assert globex.ask(f"/requesters/{ada['id']}").status_code == 404
    assert globex.call("PATCH", f"/requesters/{ada['id']}", {"name": "Stolen"}).status_code == 404
    assert globex.send("/tickets", {"title": "Engine", "requester": ada["id"]}).status_code == 422
    assert globex.ask("/requesters?q=ada").json()["data"] == []


def test_two_people_are_merged_and_separated_again(client: ApiClient, ada: Any) -> None:
    other = client.send("/requesters", {"name": "Countess", "addresses": ["countess@example.org"]}).json()
    both = client.call("PUT", f"/requesters/{other['id']}/merge", {"other": ada["id"]})
    assert (both.status_code, both.json()["id"]) == (200, ada["id"])
    assert both.json()["addresses"] == [*ada["addresses"], "countess@example.org"]
    assert client.ask(f"/requesters/{other['id']}").json()["id"] == ada["id"]
    assert client.call("PUT", f"/requesters/{ada['id']}/merge", {"other": ada["id"]}).status_code == 422
    back = client.call("DELETE", f"/requesters/{other['id']}/merge")
    assert (back.status_code, back.json()["addresses"]) == (200, ["countess@example.org"])
    assert client.ask(f"/requesters/{ada['id']}").json()["addresses"] == ada["addresses"]
    assert client.call("DELETE", f"/requesters/{other['id']}/merge").status_code == 409
