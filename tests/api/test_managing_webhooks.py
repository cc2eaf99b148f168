"""Setting up webhooks by the API: by the rules of the portal's pages, in three round trips, and each POST once."""

from __future__ import annotations

import uuid
import zlib
from typing import Any

import pytest

from api.edge.stored import ANSWERS
from tenants.api_keys.scopes import Scope
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter
from tests.api.test_door import problem
from tests.desk.test_cost import _watching
from tests.support.api_client import ApiClient, api_client
from tests.support.commands import everything
from tests.support.endpoints import endpoint, tell, work_off
from tests.support.world import World

NEW = {"url": "https://hooks.example.com/in", "event_types": ["ticket.created"], "description": "The copy"}


@pytest.fixture
def client(world: World) -> ApiClient:
    return api_client(world, Scope.WEBHOOKS_MANAGE, Scope.TICKETS_READ, name="Setting up")


def added(client: ApiClient, **values: Any) -> dict[str, Any]:
    response = client.send("/webhooks", NEW | values)
    assert response.status_code == 201, response.content
    return response.json()  # type: ignore[no-any-return]


def subscriptions(world: World) -> dict[str, Any]:
    return world.context("alice", "acme").subscriptions  # type: ignore[return-value]


def test_an_endpoint_is_added_with_a_secret_that_is_shown_once(client: ApiClient, world: World) -> None:
    response = client.send("/webhooks", NEW)
    made = response.json()
    read = client.ask(response["Location"].removeprefix("/api/v1"))

    assert made["secret"].startswith("whsec_")
    assert read.json() == {name: value for name, value in made.items() if name != "secret"}
    assert (made["url"], made["event_types"], made["state"], made["version"]) == (
        *(NEW["url"], NEW["event_types"]),
        "active",
        1,
    )
    assert subscriptions(world) == {"ticket.created": (made["id"],)}
    assert [w["id"] for w in client.ask("/webhooks").json()["data"]] == [made["id"]]


def test_fields_are_changed_and_the_others_stay(client: ApiClient, world: World) -> None:
    made = added(client)
    response = client.call("PATCH", f"/webhooks/{made['id']}", {"event_types": ["ticket.commented"]})

    assert response.status_code == 200
    changed = response.json()
    assert (changed["url"], changed["description"], changed["version"]) == (NEW["url"], "The copy", 2)
    assert subscriptions(world) == {"ticket.commented": (made["id"],)}
    assert client.ask(f"/webhooks/{made['id']}")["ETag"] == response["ETag"]
    assert problem(client.call("PATCH", f"/webhooks/{made['id']}", {})) == (422, "invalid")


def test_who_builds_on_what_was_changed_meanwhile_gets_412_and_what_is_stored(client: ApiClient) -> None:
    made = added(client)
    path = f"/webhooks/{made['id']}"
    seen = client.ask(path)["ETag"]
    client.call("PATCH", path, {"description": "Of somebody else"})

    response = client.call("PATCH", path, {"description": "Mine"}, If_Match=seen)

    assert problem(response) == (412, "precondition_failed")
    assert response.json()["current"]["description"] == "Of somebody else"
    assert client.call("PATCH", path, {"description": "Mine"}, If_Match=response["ETag"]).status_code == 200


def test_an_endpoint_is_paused_and_resumed(client: ApiClient, world: World) -> None:
    path = f"/webhooks/{added(client)['id']}"

    assert client.send(f"{path}/pause").json()["state"] == "paused"
    assert subscriptions(world) == {}
    assert problem(client.send(f"{path}/pause")) == (409, "conflict")
    assert client.send(f"{path}/resume").json()["state"] == "active"
    assert "ticket.created" in subscriptions(world)
    assert client.ask(path).json()["version"] == 3


def test_a_removed_endpoint_is_gone(client: ApiClient, world: World) -> None:
    path = f"/webhooks/{added(client)['id']}"
    response = client.call("DELETE", path)
    assert (response.status_code, response.content) == (204, b"")
    assert problem(client.ask(path)) == (404, "not_found")
    assert problem(client.call("DELETE", path)) == (404, "not_found")
    assert subscriptions(world) == {}


def test_what_was_sent_is_listed_page_by_page(client: ApiClient, world: World) -> None:
    alice = world.context("alice", "acme")
    item, _ = endpoint(alice, "https://hooks.example.invalid/in")
    tell(world.context("alice", "acme"), 1, 2, 3)
    work_off(world.context("alice", "acme"))

    first = client.ask(f"/webhooks/{item.endpoint_id}/deliveries?limit=2").json()
    rest = client.ask(first["next"].removeprefix("/api/v1")).json()

    found = first["data"] + rest["data"]
    assert [one["event_type"] for one in found] == ["parcel.sent"] * 3
    assert {(one["state"], one["attempts"], one["status"]) for one in found} == {("failed", 1, None)}
    assert all(one["next_at"] and one["note"] for one in found)
    assert len({one["id"] for one in found}) == 3
    assert rest["next"] is None


def test_a_test_event_is_on_its_way(client: ApiClient, world: World) -> None:
    path = f"/webhooks/{added(client, url='https://hooks.example.invalid/in')['id']}"
    assert client.send(f"{path}/test").status_code == 202
    work_off(world.context("alice", "acme"))
    assert [d["event_type"] for d in client.ask(f"{path}/deliveries").json()["data"]] == ["webhook.test"]


# --- what cannot be ---


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"url": "http://hooks.example.com/in"}, "url"),
        ({"event_types": ["ticket.eaten"]}, "event_types"),
        ({"description": "\x00"}, "description"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(client: ApiClient, values: dict[str, Any], field: str) -> None:
    response = client.send("/webhooks", NEW | values)
    assert problem(response)[0] == 422
    assert response.json()["field"].partition(".")[0] == field
    assert client.ask("/webhooks").json()["data"] == []


@pytest.mark.parametrize(
    ("method", "rest"),
    [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/pause"),
        ("POST", "/resume"),
        ("POST", "/secret"),
        ("POST", "/test"),
        ("GET", "/deliveries"),
    ],
)
def test_another_desks_endpoint_is_as_one_that_does_not_exist(
    client: ApiClient, world: World, method: str, rest: str
) -> None:
    item, _ = endpoint(world.context("charlie", "globex"))
    body = {"description": "Mine"} if method == "PATCH" else None
    answers = [
        client.call(method, f"/webhooks/{which}{rest}", body) for which in (item.endpoint_id, "ep_0123456789abcdef")
    ]
    assert [problem(answer) for answer in answers] == [(404, "not_found")] * 2
    assert answers[0].json()["detail"] == answers[1].json()["detail"]


@pytest.mark.parametrize(
    ("scopes", "event_types", "missing"),
    [
        ([], ["ticket.created"], "tickets:read"),
        ([Scope.NOTES_READ], ["ticket.note_added"], "tickets:read"),
        ([Scope.TICKETS_READ], ["ticket.created", "ticket.note_added"], "notes:read"),
    ],
)
def test_a_key_has_nothing_sent_anywhere_that_it_may_not_read(
    world: World, scopes: list[Scope], event_types: list[str], missing: str
) -> None:
    client = api_client(world, Scope.WEBHOOKS_MANAGE, *scopes)
    item, _ = endpoint(world.context("alice", "acme"), "https://hooks.example.com/old")  # subscribed to parcel.sent
    answers = [
        client.send("/webhooks", NEW | {"event_types": event_types}),
        client.call("PATCH", f"/webhooks/{item.endpoint_id}", {"event_types": event_types}),
    ]
    for answer in answers:
        assert problem(answer) == (403, "scope_missing")
        assert missing in answer.json()["detail"]
        assert f'scope="{missing}"' in answer["WWW-Authenticate"]
    assert "ticket.created" not in subscriptions(world)
    assert "ticket.note_added" not in subscriptions(world)


def test_a_key_leads_nothing_to_another_address_that_it_may_not_read(world: World, client: ApiClient) -> None:
    notes = api_client(world, Scope.WEBHOOKS_MANAGE, Scope.TICKETS_READ, Scope.NOTES_READ)
    made = notes.send("/webhooks", NEW | {"event_types": ["ticket.created", "ticket.note_added"]}).json()
    path, elsewhere = f"/webhooks/{made['id']}", {"url": "https://elsewhere.example.com/in"}

    assert problem(client.call("PATCH", path, elsewhere)) == (403, "scope_missing")
    assert client.ask(path).json()["url"] == NEW["url"]
    assert client.call("PATCH", path, {"description": "What stays is not asked for"}).status_code == 200
    assert client.call("PATCH", path, {"event_types": ["ticket.created"]}).status_code == 200
    assert client.call("PATCH", path, elsewhere).status_code == 200


# --- who did it, once, and what it costs ---


def test_a_change_stands_in_the_audit_trail_under_the_keys_name_and_without_the_secret(
    client: ApiClient, world: World
) -> None:
    made = added(client)
    client.send(f"/webhooks/{made['id']}/secret")
    rows = browsing.page(world.context("alice", "acme").repository, only=TrailFilter()).rows[:2]

    assert [row.action for row in rows] == ["webhook.rotated", "webhook.added"]
    assert all("Setting up" in row.actor for row in rows)
    assert "whsec_" not in str(rows)


def test_a_post_that_is_sent_again_does_it_once_and_is_answered_without_the_secret(client: ApiClient) -> None:
    first, again = (client.send("/webhooks", NEW, Idempotency_Key="once") for _ in range(2))
    assert again.json() == first.json() | {"secret": None}
    assert (again.status_code, again["Idempotency-Replayed"], again["Location"]) == (201, "true", first["Location"])
    assert len(client.ask("/webhooks").json()["data"]) == 1
    path = f"/webhooks/{first.json()['id']}/secret"
    replaced, replayed = (client.send(path, Idempotency_Key="once").json() for _ in range(2))
    assert replaced["secret"].startswith("whsec_")
    assert (replaced["secret"] != first.json()["secret"], replaced["version"]) == (True, 2)
    assert replayed == replaced | {"secret": None}
    kept = [zlib.decompress(item["body"]["B"]) for item in everything(ANSWERS)]
    assert (len(kept), b"whsec_" in b"".join(kept)) == (2, False)


def test_an_answer_with_a_secret_is_stored_by_no_browser_and_no_proxy(client: ApiClient) -> None:
    made = client.send("/webhooks", NEW)
    replaced = client.send(f"/webhooks/{made.json()['id']}/secret")
    assert [r["Cache-Control"] for r in (made, replaced)] == ["private, no-store"] * 2


@pytest.mark.parametrize("keyed", [False, True])
def test_a_write_costs_three_round_trips_and_a_read_two(client: ApiClient, world: World, keyed: bool) -> None:
    def once() -> dict[str, str]:
        return {"Idempotency_Key": uuid.uuid4().hex} if keyed else {}

    with _watching() as bills:
        path = f"/webhooks/{client.send('/webhooks', NEW, **once()).json()['id']}"
        client.call("PATCH", path, {"description": "Other"})
        for action in ("pause", "resume", "secret", "test"):
            assert client.send(f"{path}/{action}", **once()).status_code < 300
        client.call("DELETE", path)
    assert [bill.trips for bill in bills] == [3] * 7

    item, _ = endpoint(world.context("alice", "acme"))
    with _watching() as bills:
        for path in ("", f"/{item.endpoint_id}", f"/{item.endpoint_id}/deliveries"):
            assert client.ask(f"/webhooks{path}").status_code == 200
    assert [bill.trips for bill in bills] == [2] * 3
