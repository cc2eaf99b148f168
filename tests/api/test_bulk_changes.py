"""Bulk changes through the API: asked for, watched, cancelled and undone by the same key."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import defined
from tests.support.api_client import ApiClient, api_client
from tests.support.world import World
from tickets.bulk_jobs import bulk_job
from tickets.desk import changing

PATH = "/bulk-changes"


@pytest.fixture
def client(world: World) -> ApiClient:
    world.tickets("acme", 3)
    return api_client(world)


def work() -> int:
    return bulk_job.follower(per_second=1e6).turn()


def test_a_key_changes_all_tickets_of_a_list_and_undoes_that(world: World, client: ApiClient) -> None:
    alice = world.context("alice", "acme")
    asked: Any = client.send(PATH, {"change": {"priority": "low", "add_tags": ["outage"]}, "listed": "status=open"})
    assert (asked.status_code, asked.json()["state"]) == (202, "running")
    busy: Any = client.send(PATH, {"change": {"priority": "high"}, "tickets": [{"number": 1}]})
    assert (busy.status_code, busy.json()["code"]) == (409, "conflict")
    where = f"{PATH}/{asked.json()['id']}"
    assert asked["Location"].endswith(where)
    assert work() == 1
    done = client.ask(where).json()
    assert (done["state"], done["total"], done["changed"], done["refusals"]) == ("done", 3, 3, [])
    assert changing.read(alice, 2).tags == ["outage"]
    undo: Any = client.send(f"{where}/undo", {})
    assert (undo.status_code, undo.json()["undoes"]) == (202, asked.json()["id"])
    work()
    assert changing.read(alice, 2).priority == "normal"


def test_a_list_is_that_of_the_same_query_of_tickets(world: World, client: ApiClient) -> None:
    field = defined.add_field(world, "Order")
    client.call("PATCH", "/tickets/2", {"custom": {field: "A-1"}})
    listed = f"custom={field}:A-1&status=any&sort=created&limit=10"
    assert [one["number"] for one in client.ask(f"/tickets?{listed}").json()["data"]] == [2]
    asked: Any = client.send(PATH, {"change": {"priority": "low"}, "listed": listed})
    work()
    assert client.ask(f"{PATH}/{asked.json()['id']}").json()["total"] == 1


def test_named_tickets_are_refused_each_with_its_reason(client: ApiClient) -> None:
    asked: Any = client.send(
        PATH, {"change": {"status": "pending"}, "tickets": [{"number": 1, "version": 1}, {"number": 9}]}
    )
    work()
    done = client.ask(f"{PATH}/{asked.json()['id']}").json()
    assert (done["changed"], done["refusals"]) == (1, [{"number": 9, "reason": "does not exist"}])


def test_a_change_is_cancelled_before_it_has_begun(client: ApiClient) -> None:
    asked: Any = client.send(PATH, {"change": {"status": "pending"}, "listed": ""})
    answer: Any = client.call("PUT", f"{PATH}/{asked.json()['id']}/cancellation")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelling")
    work()
    assert client.ask(f"{PATH}/{asked.json()['id']}").json()["state"] == "cancelled"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"change": {}, "listed": ""}, 422),
        ({"change": {"status": "pending"}}, 422),
        ({"change": {"status": "pending"}, "listed": "priority=huge"}, 422),
        ({"change": {"status": "pending"}, "listed": "statsu=resolved"}, 422),
        ({"change": {"status": "pending"}, "listed": "tag=one&tag=two"}, 422),
        ({"change": {"status": "pending"}, "listed": "text_1=A-1"}, 422),
        ({"change": {"status": "pending"}, "listed": "custom=number_2:9..1"}, 422),
        ({"change": {"status": "pending"}, "listed": "resolver"}, 422),
    ],
)
def test_a_request_that_means_nothing_is_refused(client: ApiClient, body: dict[str, Any], status: int) -> None:
    assert client.send(PATH, body).status_code == status
    assert client.ask(f"{PATH}/{'0' * 20}").status_code == 404
