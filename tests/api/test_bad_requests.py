"""Requests that nobody should send: each is answered by a problem with a sentence, on every route that takes a body."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any, Final

import pytest

from api.documents import openapi
from portal.errors import Unavailable
from tenants.api_keys import key_authentication
from tenants.audit_trail.recording import SYSTEM
from tests.support import embedded
from tests.support.api_client import ApiClient, api_client
from tests.support.commands import everything
from tests.support.endpoints import endpoint
from tickets.ready_answers import answer_changes
from tickets.ready_answers.answer_reading import Given
from tickets.requesters import requesters
from tickets.rules import rule_changes

SCHEMAS: Final = openapi.document()["components"]["schemas"]


def body_routes() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Each route that takes a body: method, address for what is there, and the example of its document."""
    found = {}
    for path, methods in openapi.document()["paths"].items():
        for method, told in methods.items():
            if content := told.get("requestBody", {}).get("content"):
                name = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
                address = path.removeprefix("/api/v1").replace("{number}", "1")
                found[f"{method.upper()} {path}"] = (method.upper(), address, SCHEMAS[name]["example"])
    return found


ROUTES: Final = body_routes()


@pytest.fixture(scope="module")
def client() -> ApiClient:
    """One desk for all: what is refused changes nothing."""
    embedded.make_empty()
    world = embedded.world(shards=1)
    world.tickets("acme", 1)
    item, _ = endpoint(world.context("alice", "acme"))
    made = api_client(world)
    ada = requesters.ensure(world.context("alice", "acme"), "ada@example.org")
    given = Given("Refund", "refund", "Hello")
    answer = answer_changes.create(world.context("alice", "acme"), given, shared=True, by=SYSTEM)
    does = {"when": {"event": "created"}, "then": {"add_tags": ["now"]}}
    rule = rule_changes.create(world.context("alice", "acme"), "Urgent", does, by=SYSTEM)
    made.ids = {  # type: ignore[attr-defined]
        "{webhook_id}": item.endpoint_id,
        "{requester_id}": ada.id,
        "{answer_id}": answer.answer_id,
        "{rule_id}": rule.rule_id,
        "{letter_id}": "0" * 48,  # a body is looked at before what it is for
    }
    return made


@pytest.fixture(autouse=True)
def nothing_is_written(client: ApiClient) -> Iterator[None]:
    before = everything()
    yield
    assert everything() == before


def refused(client: ApiClient, route: str, body: bytes, **headers: str) -> dict[str, Any]:
    """Send it, and return the problem that comes back."""
    method, address, _ = ROUTES[route]
    for name, value in client.ids.items():  # type: ignore[attr-defined]
        address = address.replace(name, value)
    response = client.call(method, address, body, **headers)
    assert 400 <= response.status_code < 500, (route, response.content)
    assert response["Content-Type"] == "application/problem+json"
    said = response.json()
    assert said["detail"].endswith(".")
    assert "Traceback" not in response.content.decode()
    return said | {"status": response.status_code}  # type: ignore[no-any-return]


def test_there_are_routes_that_take_a_body() -> None:
    assert {"POST /api/v1/tickets", "PATCH /api/v1/tickets/{number}", "POST /api/v1/webhooks"} <= set(ROUTES)
    assert len(ROUTES) >= 7


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_a_body_of_another_type_is_refused(client: ApiClient, kind: str) -> None:
    for route in ROUTES:
        said = refused(client, route, json.dumps(ROUTES[route][2]).encode(), Content_Type=kind)
        assert (said["status"], said["code"]) == (415, "content_type"), route


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b'{"title": ', "malformed_json", "line 1, column 11"),
        (b'{\n "a": 1,\n}', "malformed_json", "line 3, column 1"),
        (b'{"a": NaN}', "malformed_json", "NaN"),
        (b'{"a": "\xff"}', "malformed_json", "byte 8"),
        (b"\xef\xbb\xbf{}", "malformed_json", "line 1"),
        (b'{"a": 1e999}', "number_out_of_range", "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "number_out_of_range", "digits"),
        (b'{"status": "open", "status": "closed"}', "duplicate_member", "twice"),
        (b'{"a": ' + b"[" * 100 + b"]" * 100 + b"}", "nested_too_deeply", "deep"),
        (b'{"a": {' + b", ".join(b'"%d": 1' % n for n in range(201)) + b"}}", "too_many_members", "200 members"),
        (b"[" * 200_000, "nested_too_deeply", "deep"),
    ],
)
@pytest.mark.parametrize("route", ["POST /api/v1/tickets", "PATCH /api/v1/webhooks/{webhook_id}"])
def test_json_that_could_be_read_in_two_ways_or_none_is_refused_with_its_place(
    client: ApiClient, route: str, body: bytes, code: str, says: str
) -> None:
    said = refused(client, route, body)
    assert (said["status"], said["code"]) == (400, code)
    assert says in said["detail"]


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'"text"', b"7", b"null", b"true", b"{}", b'{"title": "\\ud800"}', b'{"\\ud800": "x"}'],
)
def test_what_is_no_object_with_the_wanted_members_is_refused(client: ApiClient, body: bytes) -> None:
    assert {route: refused(client, route, body)["status"] for route in ROUTES} == dict.fromkeys(ROUTES, 422)


def test_a_member_that_a_route_does_not_know_is_refused_by_name(client: ApiClient) -> None:
    for route in ROUTES:
        said = refused(client, route, json.dumps(ROUTES[route][2] | {"tenant_id": "a" * 32}).encode())
        assert (said["status"], said["field"]) == (422, "tenant_id"), route


def test_a_body_of_more_than_a_megabyte_is_refused(client: ApiClient) -> None:
    body = b'{"title": "' + b"x" * 1_100_000 + b'"}'
    assert {route: refused(client, route, body)["status"] for route in ROUTES} == dict.fromkeys(ROUTES, 413)


def test_numbers_out_of_their_range_are_refused_at_their_field(client: ApiClient) -> None:
    for number in (0, -1, 10**15, 1.5, "1", True, None):
        body = json.dumps({"status": "closed", "tickets": [{"number": number}]}).encode()
        said = refused(client, "POST /api/v1/tickets/status", body)
        assert (said["status"], said["field"]) == (422, "tickets.0.number")


@pytest.mark.parametrize(
    "address",
    ["/tickets/{}", "/tickets?{}=1", "/tickets?tag={}", "/tickets?after={}", "/members/{}", "/webhooks/{}", "/{}"],
)
def test_a_key_in_the_wrong_place_stands_in_no_log(
    client: ApiClient, caplog: pytest.LogCaptureFixture, address: str
) -> None:
    with caplog.at_level(logging.DEBUG):
        response = client.ask(address.format(client.key), X_Request_Id=client.key)
    assert response.status_code in (200, 404, 422)
    assert client.key not in caplog.text
    assert response["X-Request-Id"] != client.key


# --- what is made to be slow: with a cost that grows by the square, these would outlast the suite ---


@pytest.mark.timeout(60)
def test_the_longest_header_of_tags_is_looked_through_once(client: ApiClient) -> None:
    for path in ("/openapi.json", "/tickets/1"):
        assert client.ask(path, If_None_Match='"a"' + " " * 60_000 + "x").status_code == 200


@pytest.mark.timeout(60)
def test_very_many_members_are_refused_before_they_are_compared(client: ApiClient) -> None:
    members = ", ".join(f'"m{number}": 1' for number in range(60_000))
    said = refused(client, "POST /api/v1/tickets", f'{{{members}, "m59999": 1}}'.encode())
    assert said["code"] == "too_many_members"


def test_more_parameters_than_are_read_are_a_bad_request(client: ApiClient) -> None:
    answer = client.ask("/tickets?" + "&".join("a=1" for _ in range(1_100)))
    assert (answer.status_code, answer.json()["code"]) == (400, "unreadable")


@pytest.mark.parametrize("error", [Unavailable("Away."), KeyError("x")])
def test_a_key_in_the_address_stands_in_no_log_of_a_fault(
    client: ApiClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(key_authentication, "authenticate", fail)
    with caplog.at_level(logging.DEBUG):
        assert client.ask(f"/members/{client.key}").status_code >= 500
    assert client.key not in caplog.text


def test_a_key_in_the_place_of_the_host_stands_in_no_log(client: ApiClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        assert client.ask("/tickets", Host=client.key).status_code == 400
    assert "a host that ALLOWED_HOSTS does not name" in caplog.text
    assert client.key not in caplog.text


def test_an_object_may_have_as_many_members_as_no_schema_has(client: ApiClient) -> None:
    body = json.dumps({f"m{n}": 1 for n in range(200)}).encode()
    assert refused(client, "POST /api/v1/tickets", body)["status"] == 422


def test_of_many_mistakes_the_first_are_told(client: ApiClient) -> None:
    body = json.dumps({f"m{n}": 1 for n in range(30)}).encode()
    said = refused(client, "POST /api/v1/tickets", body)
    assert (len(said["errors"]), said["errors"][0]["field"]) == (20, said["field"])
