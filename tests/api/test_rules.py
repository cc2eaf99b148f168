"""Systems keep the rules of their desk, list what these did, and undo a run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import mailing
from tests.support.api_client import ApiClient
from tests.support.world import World

URGENT: dict[str, Any] = {
    "name": "Urgent ones",
    "when": {"event": "created"},
    "if": {"priority": "urgent"},
    "then": {"set": {"status": "pending"}, "add_tags": ["now"]},
}


def added(client: ApiClient, **more: object) -> Any:
    answer = client.send("/rules", URGENT | more)
    assert answer.status_code == 201, answer.content
    return answer.json()


def test_a_rule_is_added_listed_read_changed_and_deleted(client: ApiClient) -> None:
    made = added(client)
    path = f"/rules/{made['id']}"
    nothing = {"remove_tags": [], "answer": "", "webhook": "", "mail": None}
    assert made == {
        "id": made["id"],
        "name": "Urgent ones",
        "on": False,
        "version": 1,
        "when": {"event": "created", "by": "", "what": ""},
        "if": {"priority": "urgent"},
        "then": {"set": {"status": "pending"}, "add_tags": ["now"], **nothing},
        "created_at": made["created_at"],
        "changed_at": made["changed_at"],
    }
    assert client.ask(path).json() == made
    assert client.ask("/rules").json() == {"data": [made]}
    changed = client.call("PATCH", path, {"on": True, "if": {}}).json()
    assert (changed["on"], changed["if"], changed["version"], changed["then"]) == (True, {}, 2, made["then"])
    assert client.call("DELETE", path).status_code == 204
    assert client.ask(path).status_code == client.call("DELETE", path).status_code == 404


def test_a_run_is_listed_and_undone_and_the_history_says_by_which_rule_it_was(client: ApiClient, world: World) -> None:
    rule = added(client, on=True)
    number = client.send("/tickets", {"title": "The printer", "priority": "urgent"}).json()["number"]
    mailing.carry()
    assert client.ask(f"/tickets/{number}").json()["tags"] == ["now"]
    path = f"/rules/{rule['id']}/runs"
    (run,) = client.ask(path).json()["data"]
    assert (run["ticket"], run["event"], run["version"], run["refused"]) == (number, "created", 1, None)
    entry = client.ask(f"/tickets/{number}/activity").json()["data"][-1]
    assert entry["id"] == run["entry"]
    assert entry["rule"] == {"id": rule["id"], "version": 1, "event": run["id"].rpartition("-")[0]}
    first, again = (client.call("PUT", f"{path}/{run['id']}/undo").json() for _ in range(2))
    assert first == again
    assert first["undone_at"]
    assert client.ask(f"/tickets/{number}").json()["tags"] == []


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"when": {"event": "opened"}}, "when.event"),
        ({"when": {"event": "changed", "what": "colour"}}, "what"),
        ({"if": {"priority": "huge"}}, "priority"),
        ({"then": {}}, "then"),
        ({"then": {"set": {"title": "New"}}}, "set"),
        ({"then": {"set": {"priority": ["high"]}}}, "priority"),
        ({"then": {"set": {"custom": "none"}}}, "custom"),
        ({"then": {"mail": {"to": "assignee", "text": "{nothing}"}}}, "mail"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_at_its_field(client: ApiClient, wrong: dict[str, Any], field: str) -> None:
    refused = client.send("/rules", URGENT | wrong)
    assert (refused.status_code, refused.json()["field"]) == (422, field)


def test_a_repeated_request_adds_one_rule(client: ApiClient) -> None:
    first, again = (client.send("/rules", URGENT, Idempotency_Key="once").json() for _ in range(2))
    assert first == again
    assert len(client.ask("/rules").json()["data"]) == 1
