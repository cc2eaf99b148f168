"""Writing tickets by the API: by the rules of the pages, under the key's name, and what it costs."""

from __future__ import annotations

from typing import Any

import pytest

from tenants.api_keys.scopes import Scope
from tests.api.test_door import problem
from tests.desk.test_cost import _watching
from tests.support.api_client import ApiClient, api_client
from tests.support.world import World
from tickets.desk import changing, commenting, timelines
from tickets.ticket.fields import Priority


@pytest.fixture
def client(world: World) -> ApiClient:
    world.tickets("acme", 3)
    return api_client(world, name="Billing")


def told(response: Any, status: int = 200) -> dict[str, Any]:
    assert response.status_code == status, response.content
    said: dict[str, Any] = response.json()
    return said


# --- create ---


def test_a_ticket_is_made_of_what_was_sent_and_can_be_read_where_the_answer_says(client: ApiClient) -> None:
    wanted = {"title": " The  printer ", "description": "It *broke*.", "priority": "high", "tags": ["A 1", "b"]}
    response = client.send("/tickets", wanted)
    made = told(response, 201)
    assert (made["title"], made["priority"], made["tags"]) == ("The printer", "high", ["a-1", "b"])
    assert (made["status"], made["version"], made["resolver"]) == ("open", 1, None)
    assert made["requester_name"] == "Billing (API key)"
    read = client.call("GET", response["Location"], api="")
    assert (told(read), read["ETag"]) == (made, response["ETag"])


def test_the_history_says_which_key_it_was(client: ApiClient) -> None:
    number = told(client.send("/tickets", {"title": "x"}), 201)["number"]
    (entry,) = told(client.ask(f"/tickets/{number}/activity"))["data"]
    assert (entry["kind"], entry["verb"], entry["by"]["name"]) == ("event", "opened the ticket", "Billing (API key)")


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ({}, "title", "missing"),
        ({"title": ""}, "title", None),
        ({"title": "x" * 201}, "title", None),
        ({"title": 7}, "title", "string_type"),
        ({"title": None}, "title", "string_type"),
        ({"title": "x", "colour": "red"}, "colour", "extra_forbidden"),
        ({"title": "x", "tags": "a,b"}, "tags", "list_type"),
        ({"title": "x", "tags": ["a,b"]}, "tags.0", "string_pattern_mismatch"),
        ({"title": "x", "tags": [str(n) for n in range(13)]}, "tags", None),
        ({"title": "x", "tags": ["b", "\u200b\u202e"]}, "tags", None),
        ({"title": "x", "tags": [" "]}, "tags", None),
        ({"title": "x", "priority": "huge"}, "priority", "enum"),
        ({"title": "x", "description": "x" * 50_001}, "description", "string_too_long"),
        ({"title": "x", "tags": ["t" * 41]}, "tags.0", "string_too_long"),
        ([], "body", None),
    ],
)
def test_what_cannot_be_a_ticket_is_refused_with_the_field(
    client: ApiClient, body: object, field: str, code: str | None
) -> None:
    response = client.send("/tickets", body)
    assert problem(response) == (422, "invalid")
    assert response.json()["field"] == field
    if code is not None:
        assert response.json()["errors"][0]["code"] == code
    assert client.ask("/tickets/4").status_code == 404


# --- change ---


def test_all_fields_change_at_once_in_one_entry_of_the_history(world: World, client: ApiClient) -> None:
    bob = world.users["bob"]
    wanted = {
        "title": "New",
        "description": "Why.",
        "priority": "low",
        "tags": ["c"],
        "status": "resolved",
        "resolver_id": bob.id,
    }
    response = client.call("PATCH", "/tickets/1", wanted)
    changed = told(response)
    assert (changed["title"], changed["description"], changed["priority"]) == ("New", "Why.", "low")
    assert (changed["tags"], changed["status"], changed["resolver"]["name"]) == (["c"], "resolved", bob.name)
    assert changed["version"] == 2
    assert changed["resolved_at"] == changed["updated_at"]
    read = client.ask("/tickets/1")
    assert (told(read), read["ETag"]) == (changed, response["ETag"])
    entry = told(client.ask("/tickets/1/activity"))["data"][-1]
    assert {c["field"] for c in entry["changes"]} == {"title", "description", "priority", "tags", "status", "resolver"}


@pytest.mark.parametrize("tag", ["1", "abc", '"a', "W/x", ""])
def test_a_tag_that_cannot_be_one_is_no_other_version_of_a_ticket(client: ApiClient, tag: str) -> None:
    headers = {"Authorization": f"Bearer {client.key}", "If-Match": tag}
    response = client.generic("PATCH", "/api/v1/tickets/1", b'{"title": "x"}', "application/json", headers=headers)
    assert (problem(response), response.json()["field"]) == ((422, "invalid"), "If-Match")
    assert told(client.ask("/tickets/1"))["title"] == "Ticket 1"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/tickets?resolver=me", "resolver: This needs the id of a member, or none."),
        ("/tickets?limit=0", "limit: This must be 1 or more."),
        ("/tickets?limit=x", "limit: This needs a whole number."),
        ("/tickets?priority=huge", "priority: This must be urgent, high, normal or low."),
        ("/audit-events?first=yesterday", "first: This needs a day, as 2026-11-20."),
    ],
)
def test_what_does_not_fit_is_said_in_a_sentence(client: ApiClient, path: str, says: str) -> None:
    assert client.ask(path).json()["detail"] == says


def test_what_is_not_named_stays(client: ApiClient) -> None:
    before = told(client.ask("/tickets/1"))
    after = told(client.call("PATCH", "/tickets/1", {"priority": "low"}))
    same = set(before) - {"priority", "version", "updated_at"}
    assert {name: after[name] for name in same} == {name: before[name] for name in same}


def test_nobody_has_a_ticket_that_is_given_to_null(world: World, client: ApiClient) -> None:
    client.call("PATCH", "/tickets/1", {"resolver_id": world.users["bob"].id})
    assert told(client.call("PATCH", "/tickets/1", {"resolver_id": None}))["resolver"] is None


def test_a_change_that_changes_nothing_writes_nothing(client: ApiClient) -> None:
    with _watching() as bills:
        assert told(client.call("PATCH", "/tickets/1", {"status": "open"}))["version"] == 1
    assert bills[0].write_units == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ({"version": 1}, "body"),
        ({"title": None}, "title"),
        ({"title": " "}, "title"),
        ({"status": "gone"}, "status"),
        ({"resolver_id": "me"}, "resolver_id"),
        ({"resolver_id": "0" * 32}, "resolver_id"),
        ({"version": 0, "title": "x"}, "version"),
        ({"version": 1.5, "title": "x"}, "version"),
        ({"version": 1e300, "title": "x"}, "version"),
    ],
)
def test_a_change_that_means_nothing_is_refused_with_the_field(
    client: ApiClient, body: dict[str, object], field: str
) -> None:
    response = client.call("PATCH", "/tickets/1", body)
    assert problem(response) == (422, "invalid")
    assert response.json()["field"] == field


def test_a_whole_number_may_have_a_fraction_of_zero(client: ApiClient) -> None:
    """JSON Schema takes 1.0 for an integer, and so do the languages that know no other numbers."""
    assert told(client.call("PATCH", "/tickets/1", b'{"version": 1.0, "title": "x"}'))["title"] == "x"


def test_a_status_that_does_not_follow_is_refused_as_on_the_page(client: ApiClient) -> None:
    client.call("PATCH", "/tickets/1", {"status": "closed"})
    response = client.call("PATCH", "/tickets/1", {"status": "pending"})
    assert problem(response) == (422, "invalid")
    assert response.json()["detail"] == "A closed ticket cannot become pending."


def test_neither_viewers_nor_keys_can_be_given_tickets(world: World, client: ApiClient) -> None:
    made = told(client.send("/tickets", {"title": "x"}), 201)
    for nobody in (world.users["vera"].id, world.users["charlie"].id, made["requester_id"]):
        response = client.call("PATCH", "/tickets/1", {"resolver_id": nobody})
        assert problem(response) == (422, "invalid")


def test_a_change_of_what_is_another_by_now_gets_412_and_the_present_state(world: World, client: ApiClient) -> None:
    seen = client.ask("/tickets/1")["ETag"]
    changing.edit(world.context("bob", "acme"), 1, priority=Priority.LOW, version=1)
    response = client.call("PATCH", "/tickets/1", {"title": "Mine"}, If_Match=seen)
    assert problem(response) == (412, "precondition_failed")
    now = client.ask("/tickets/1")
    assert (response.json()["current"], response["ETag"]) == (told(now), now["ETag"])
    assert told(now)["title"] == "Ticket 1"
    again = client.call("PATCH", "/tickets/1", {"title": "Mine"}, If_Match=f"W/{now['ETag']}")
    assert told(again)["title"] == "Mine"


def test_with_a_version_other_fields_are_merged_and_the_same_one_is_a_conflict(world: World, client: ApiClient) -> None:
    changing.edit(world.context("bob", "acme"), 1, priority=Priority.LOW, version=1)
    merged = told(client.call("PATCH", "/tickets/1", {"title": "Mine", "version": 1}))
    assert (merged["title"], merged["priority"]) == ("Mine", "low")
    response = client.call("PATCH", "/tickets/1", {"priority": "high", "version": 1})
    assert problem(response) == (409, "edit_conflict")
    now = client.ask("/tickets/1")
    assert (response.json()["current"], response["ETag"]) == (told(now), now["ETag"])
    assert told(now)["priority"] == "low"


def test_a_change_that_is_overtaken_holds_for_what_the_ticket_is_then(
    world: World, client: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bob changes the ticket after the API has read it, and before it writes."""
    read, bob = timelines.changes_since, world.context("bob", "acme")

    def overtaken(*args: Any) -> Any:
        monkeypatch.setattr(timelines, "changes_since", read)
        changing.edit(bob, 1, priority=Priority.LOW, version=1)
        return read(*args)

    monkeypatch.setattr(timelines, "changes_since", overtaken)
    changed = told(client.call("PATCH", "/tickets/1", {"title": "Mine"}))
    assert (changed["title"], changed["priority"], changed["version"]) == ("Mine", "low", 3)


# --- comments and notes ---


def test_a_comment_is_added_and_read_again(client: ApiClient) -> None:
    added = told(client.send("/tickets/1/comments", {"body": "Off and **on**?"}), 201)
    assert (added["kind"], added["body"], added["by"]["name"]) == ("comment", "Off and **on**?", "Billing (API key)")
    assert told(client.ask("/tickets/1/activity"))["data"][-1] == added
    assert told(client.ask("/tickets/1"))["comment_count"] == 1


def test_a_comment_may_change_the_status_where_the_key_may(world: World, client: ApiClient) -> None:
    body = {"body": "Done.", "status": "resolved"}
    assert problem(api_client(world, Scope.COMMENTS_WRITE).send("/tickets/1/comments", body)) == (403, "scope_missing")
    told(client.send("/tickets/1/comments", body), 201)
    assert told(client.ask("/tickets/1"))["status"] == "resolved"


def test_a_status_that_no_comment_can_bring_is_refused_at_the_status(client: ApiClient) -> None:
    client.call("PATCH", "/tickets/1", {"status": "closed"})
    response = client.send("/tickets/1/comments", {"body": "Wait.", "status": "pending"})
    assert problem(response) == (422, "invalid")
    assert response.json()["field"] == "status"


def test_notes_are_read_only_by_who_may(world: World, client: ApiClient) -> None:
    note = told(client.send("/tickets/1/notes", {"body": "Old."}), 201)
    assert note in told(client.ask("/tickets/1/activity"))["data"]
    outside = api_client(world, *(set(Scope) - {Scope.NOTES_READ}))
    assert "Old." not in outside.ask("/tickets/1/activity").content.decode()
    assert told(outside.ask("/tickets/1"))["noted_at"] is None


def test_a_long_history_comes_in_pages_newest_first(world: World) -> None:
    world.tickets("acme", 1)
    alice = world.context("alice", "acme")
    for n in range(60):
        commenting.comment(alice, 1, body=f"Comment {n}")
    client, path, bodies = api_client(world), "/api/v1/tickets/1/activity", list[str]()
    while path:
        page = told(client.call("GET", path, api=""))
        bodies = [entry["body"] for entry in page["data"]] + bodies
        path = page["next"]
    assert bodies == [None, *(f"Comment {n}" for n in range(60))]


# --- many at once ---


def test_many_tickets_get_one_status(client: ApiClient) -> None:
    body = {"status": "closed", "tickets": [{"number": 1, "version": 1}, {"number": 2}]}
    assert told(client.send("/tickets/status", body)) == {"count": 2, "status": "closed"}
    assert [t["number"] for t in told(client.ask("/tickets"))["data"]] == [3]


@pytest.mark.parametrize("third", [{"number": 3, "version": 9}, {"number": 9}])
def test_all_of_them_or_none(client: ApiClient, third: dict[str, int]) -> None:
    response = client.send("/tickets/status", {"status": "closed", "tickets": [{"number": 1}, third]})
    assert problem(response) == (409, "bulk_refused")
    assert [e["field"] for e in response.json()["errors"]] == ["tickets.1"]
    assert f"Ticket {third['number']} " in response.json()["detail"]
    assert told(client.ask("/tickets/1"))["status"] == "open"


def test_a_bulk_change_has_a_most(client: ApiClient) -> None:
    tickets = [{"number": n} for n in range(1, 51)]
    assert problem(client.send("/tickets/status", {"status": "closed", "tickets": tickets})) == (422, "invalid")


# --- cost and scopes ---


@pytest.mark.parametrize("key", ["", "once"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/tickets", {"title": "x", "description": "y"}),
        ("PATCH", "/tickets/1", {"title": "x", "description": "y", "status": "closed"}),
        ("PATCH", "/tickets/1", {"resolver_id": "bob"}),
        ("POST", "/tickets/1/comments", {"body": "x", "status": "closed"}),
        ("POST", "/tickets/1/notes", {"body": "x"}),
        ("POST", "/tickets/status", {"status": "closed", "tickets": [{"number": 1}, {"number": 2}]}),
    ],
)
def test_a_write_takes_three_trips(
    world: World, client: ApiClient, method: str, path: str, body: dict[str, Any], key: str
) -> None:
    if "resolver_id" in body:
        body = {"resolver_id": world.users["bob"].id}
    with _watching() as bills:
        assert client.call(method, path, body, Idempotency_Key=key).status_code in (200, 201)
    assert bills[0].trips == 3
