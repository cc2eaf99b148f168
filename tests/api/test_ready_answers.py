"""Systems keep the shared ready answers of their desk, and write comments of them."""

from __future__ import annotations

from typing import Any

import pytest

from tenants.api_keys.scopes import Scope
from tenants.audit_trail.recording import SYSTEM
from tenants.tenancy.context import TenantContext
from tests.support.api_client import ApiClient, api_client
from tests.support.world import World
from tickets.desk import changing
from tickets.ready_answers import answer_changes
from tickets.ready_answers.answer_reading import Given

REFUND = {
    "title": "Refund a parcel",
    "shortcut": ";Refund",
    "body": "Hello {requester}, of {ticket}.",
    "tags": ["money"],
}


@pytest.fixture
def alice(world: World) -> TenantContext:
    world.tickets("acme", 1)
    return world.context("alice", "acme")


@pytest.fixture
def client(world: World, alice: TenantContext) -> ApiClient:
    return api_client(world)


def added(client: ApiClient, **more: object) -> Any:
    answer = client.send("/ready-answers", REFUND | more)
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_an_answer_is_added_listed_read_changed_and_deleted(client: ApiClient, alice: TenantContext) -> None:
    answer_changes.create(alice, Given("Private", "private", "Text"), shared=False, by=SYSTEM)
    made = added(client, status="resolved", resolver="me")
    path = f"/ready-answers/{made['id']}"
    line = {"id": made["id"], "title": "Refund a parcel", "shortcut": "refund", "uses": 0}
    assert made == line | {
        "body": REFUND["body"],
        "status": "resolved",
        "tags": ["money"],
        "resolver": "me",
        "version": 1,
        "changed_at": made["changed_at"],
    }
    assert client.ask(path).json() == made
    for query in ("", "?q=parc", "?limit=1"):
        assert client.ask(f"/ready-answers{query}").json() == {"data": [line], "next": None}
    changed = client.call("PATCH", path, {"shortcut": "money", "status": None}).json()
    assert (changed["shortcut"], changed["status"], changed["resolver"], changed["version"]) == ("money", None, "me", 2)
    assert client.call("DELETE", path).status_code == 204
    assert client.ask(path).status_code == client.call("DELETE", path).status_code == 404


def test_a_long_list_has_pages(client: ApiClient) -> None:
    for number in range(3):
        added(client, shortcut=f"a{number}")
    first = client.ask("/ready-answers?limit=2").json()
    second = client.ask(first["next"].partition("/api/v1")[2]).json()
    assert [one["shortcut"] for one in (*first["data"], *second["data"])] == ["a0", "a1", "a2"]
    assert second["next"] is None


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"shortcut": "!"}, "shortcut"),
        ({"body": "Dear {customer}"}, "body"),
        ({"tags": [" "]}, "tags"),
        ({"resolver": "0" * 32}, "resolver"),
        ({"status": "broken"}, "status"),
    ],
)
def test_what_cannot_be_is_refused_at_its_field(client: ApiClient, wrong: dict[str, object], field: str) -> None:
    refused = client.send("/ready-answers", REFUND | wrong)
    assert refused.status_code == 422
    assert refused.json()["field"] == field


def test_a_shortcut_belongs_to_one_answer(client: ApiClient) -> None:
    answer = added(client, shortcut="other")["id"]
    added(client)
    for refused in (client.send("/ready-answers", REFUND), client.call("PATCH", f"/ready-answers/{answer}", REFUND)):
        assert (refused.status_code, refused.json()["code"]) == (409, "shortcut_taken")


def test_a_repeated_request_adds_one_answer(client: ApiClient) -> None:
    first, again = (client.send("/ready-answers", REFUND, Idempotency_Key="once").json() for _ in range(2))
    assert first == again
    assert len(client.ask("/ready-answers").json()["data"]) == 1


def test_a_comment_is_made_of_an_answer_changes_the_ticket_and_is_counted_once(
    client: ApiClient, alice: TenantContext
) -> None:
    answer = added(client, status="resolved", resolver=alice.user_id)["id"]
    first, again = (
        client.send("/tickets/1/comments", {"ready_answer": answer}, Idempotency_Key="once").json() for _ in range(2)
    )
    assert first == again
    assert first["body"] == "Hello Alice Example, of #1."
    ticket = changing.read(alice, 1)
    assert (ticket.status, [*ticket.tags], ticket.resolver_name) == ("resolved", ["money"], "Alice Example")
    assert client.ask(f"/ready-answers/{answer}").json()["uses"] == 1
    note = client.send("/tickets/1/notes", {"ready_answer": answer, "body": "My own text"}).json()
    assert (note["kind"], note["body"]) == ("note", "My own text")
    assert client.ask(f"/ready-answers/{answer}").json()["uses"] == 2


def test_a_comment_of_no_answer_or_of_nothing_is_refused(client: ApiClient, world: World) -> None:
    answer = added(client)["id"]
    unknown = client.send("/tickets/1/comments", {"ready_answer": f"ra_{'0' * 32}"})
    assert (unknown.status_code, unknown.json()["field"]) == (422, "ready_answer")
    assert client.send("/tickets/1/comments", {}).status_code == 422
    assert client.send("/tickets/99/comments", {"ready_answer": answer}).status_code == 404
    writer = api_client(world, Scope.COMMENTS_WRITE, name="writer")
    assert writer.send("/tickets/1/comments", {"ready_answer": answer}).status_code == 403
    plain = added(client, shortcut="plain", tags=[])["id"]
    assert writer.send("/tickets/1/comments", {"ready_answer": plain}).status_code == 201
