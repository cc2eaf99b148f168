"""The door of the API: who is let in, and that whatever is wrong comes back in one form."""

from __future__ import annotations

import gzip
import logging
import re
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import resolve

from api.documents import openapi
from api.v1 import ticket_routes
from portal import clock
from portal.errors import Throttled, Unavailable
from portal.load import tenant_limiter
from portal.load.tenant_limiter import TenantLimiter
from portal.quotas import TenantPlaces
from tenants.api_keys.scopes import Scope
from tenants.tenancy import tenant_middleware
from tenants.tenancy.access_middleware import AccessMiddleware
from tests.desk.test_cost import _watching
from tests.load.test_tenant_limiter import HandClock
from tests.support.api_client import ApiClient, api_client
from tests.support.api_keys import alter, make_key
from tests.support.world import World


def problem(response: Any) -> tuple[int, str]:
    """Status and code of an answer that is a problem, with all that any of them says."""
    assert response["Content-Type"] == "application/problem+json"
    said = response.json()
    assert said["type"] == f"urn:pooldesk:problem:{said['code']}"
    assert said["status"] == response.status_code
    assert said["request_id"] == response["X-Request-Id"]
    assert said["title"]
    assert said["detail"]
    return said["status"], said["code"]


@pytest.fixture
def client(world: World) -> ApiClient:
    world.tickets("acme", 1)
    return api_client(world)


# --- keys ---


def test_without_a_key_the_answer_says_how_to_come_with_one(world: World) -> None:
    with _watching() as bills:
        response = Client().get("/api/v1/tickets")
    assert problem(response) == (401, "key_missing")
    assert response["WWW-Authenticate"] == 'Bearer realm="Pooldesk"'
    assert bills[0].trips == 0


@pytest.mark.parametrize("text", ["x", "sk_", "Bearer", "sk_live_" + "0" * 78])
def test_what_cannot_be_a_key_costs_no_read(world: World, text: str) -> None:
    with _watching() as bills:
        response = ApiClient(text).ask("/tickets")
    assert problem(response) == (401, "key_malformed")
    assert response["WWW-Authenticate"] == 'Bearer realm="Pooldesk", error="invalid_token"'
    assert bills[0].trips == 0


def test_a_cookie_lets_nobody_in(world: World) -> None:
    assert problem(world.browser("alice", "acme").get("/api/v1/tickets")) == (401, "key_missing")


def test_a_key_without_the_scope_is_told_which_one(world: World) -> None:
    response = api_client(world, Scope.MEMBERS_READ).ask("/tickets")
    assert problem(response) == (403, "scope_missing")
    assert 'error="insufficient_scope", scope="tickets:read"' in response["WWW-Authenticate"]
    assert "tickets:read" in response.json()["detail"]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_whoever_goes_round_the_door_is_let_in_by_nobody(world: World, method: str) -> None:
    """The pages' middlewares know nothing of keys, and refuse a route of the API that reaches them."""
    request = RequestFactory().generic(method, "/api/v1/tickets")
    view = resolve(request.path).func
    with pytest.raises(ImproperlyConfigured, match="edge_middleware"):
        AccessMiddleware(lambda _: HttpResponse()).process_view(request, view, (), {})


# --- addresses and methods ---


@pytest.mark.parametrize("path", ["/nothing", "/tickets/", "/tickets/0", "/tickets/07", "/tickets/" + "9" * 16])
def test_an_address_that_the_api_does_not_have_is_not_found(client: ApiClient, path: str) -> None:
    assert problem(client.ask(path)) == (404, "not_found")


def test_every_address_refuses_what_its_routes_do_not_take_and_tells_what_they_do(client: ApiClient) -> None:
    for template, routes in openapi.document()["paths"].items():
        path = re.sub(
            r"\{\w+\}", "none", template.removeprefix("/api/v1").replace("{number}", "1").replace("{other}", "2")
        )
        taken = {method.upper() for method in routes}
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY"} - taken:
            response = client.call(method, path)
            assert problem(response) == (405, "method_not_allowed"), (method, template)
            allowed = {*taken, "OPTIONS", *(["HEAD"] if "GET" in taken else [])}
            assert set(response["Allow"].split(", ")) == allowed, (method, template)


_OF_ONE_ANSWER = {"X-Request-Id", "RateLimit", "Retry-After"}


def test_head_is_get_without_the_body_at_the_same_cost_and_for_the_same_scope(world: World, client: ApiClient) -> None:
    callers = (client, api_client(world, Scope.TICKETS_WRITE))
    for path in (path for path, routes in openapi.document()["paths"].items() if "get" in routes):
        address = re.sub(r"\{\w+\}", "none", path.removeprefix("/api/v1").replace("{number}", "1"))
        for caller in callers:
            answers, bills = [], []
            for method in ("GET", "HEAD"):
                with _watching() as seen:
                    answers.append(caller.call(method, address))
                bills.append((seen[0].trips, seen[0].write_units))  # read units: GET has made the process remember some
            got, asked = ({n: v for n, v in one.headers.items() if n not in _OF_ONE_ANSWER} for one in answers)
            assert (answers[1].status_code, answers[1].content) == (answers[0].status_code, b""), path
            assert asked == got, path
            assert bills[1] == bills[0], path


def test_an_answer_says_how_long_it_is_so_that_its_connection_can_be_kept(client: ApiClient) -> None:
    for response in (client.ask("/tickets"), client.ask("/tickets", Accept_Encoding="gzip"), client.ask("/nothing")):
        assert response["Content-Length"] == str(len(response.content))
    same = client.ask("/tickets/1", If_None_Match=client.ask("/tickets/1")["ETag"])
    for empty in (same, client.call("OPTIONS", "/tickets")):
        assert "Content-Length" not in empty
        assert "Content-Type" not in empty


@pytest.mark.parametrize("asks", [False, True], ids=["", "a browser that asks first"])
def test_options_needs_no_key_and_no_read(world: World, asks: bool) -> None:
    headers = {"Origin": "https://shop.example", "Access-Control-Request-Method": "GET"} if asks else {}
    with _watching() as bills:
        response = Client().options("/api/v1/tickets/1", headers=headers)
    assert (response.status_code, response.content, bills[0].trips) == (204, b"", 0)
    assert {"GET", "HEAD", "OPTIONS"} <= set(response["Allow"].split(", "))
    assert response.get("Access-Control-Allow-Origin") == ("*" if asks else None)
    assert ("Authorization" in response.get("Access-Control-Allow-Headers", "")) == asks
    assert "Access-Control-Allow-Credentials" not in response


def test_a_parameter_that_a_route_does_not_know_is_refused(client: ApiClient) -> None:
    response = client.ask("/tickets?stauts=open")
    assert problem(response) == (422, "unknown_parameter")
    assert response.json()["field"] == "stauts"
    assert problem(client.ask("/tickets?status=open&status=closed")) == (422, "duplicate_parameter")


def test_where_tls_is_required_a_key_in_the_clear_gets_no_further(client: ApiClient, settings: LazySettings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    assert problem(client.ask("/tickets")) == (403, "tls_required")
    safely = client.generic("GET", "/api/v1/tickets", headers={"Authorization": f"Bearer {client.key}"}, secure=True)
    assert safely.status_code == 200


# --- what any answer says ---


def test_an_answer_carries_the_callers_request_id_or_a_new_one(client: ApiClient) -> None:
    assert client.ask("/tickets", X_Request_Id="my-request-1")["X-Request-Id"] == "my-request-1"
    assert len(client.ask("/tickets", X_Request_Id="no good id")["X-Request-Id"]) == 32


def test_the_log_has_a_line_for_each_request_and_no_key(client: ApiClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        client.ask("/tickets/1", X_Request_Id="my-request-1")
        client.ask(f"/{client.key}?{client.key}")
        client.ask("/tickets", Authorization=f"Basic {client.key}", X_Request_Id=client.key)
        client.call(client.key, "/tickets")
    lines = [r.getMessage() for r in caplog.records if r.name == "pooldesk.requests"]
    assert len(lines) == 4
    assert lines[0].startswith("GET /api/v1/tickets/<ticket_number:number> 200")
    assert "[my-request-1]" in lines[0]
    assert client.key not in caplog.text


def test_long_answers_are_compressed_for_who_asks(world: World) -> None:
    world.tickets("acme", 5)
    client = api_client(world)
    response = client.ask("/tickets", Accept_Encoding="gzip")
    assert response["Content-Encoding"] == "gzip"
    assert client.call("HEAD", "/tickets", Accept_Encoding="gzip")["Content-Encoding"] == "gzip"
    assert gzip.decompress(response.content) == client.ask("/tickets").content


def test_answers_are_kept_by_no_shared_cache(client: ApiClient) -> None:
    response = client.ask("/tickets")
    assert response["Cache-Control"] == "private, no-cache"
    assert {"Authorization", "Origin"} <= set(response["Vary"].replace(",", " ").split())
    assert response["X-Content-Type-Options"] == "nosniff"


# --- limits ---


def test_a_desk_that_asks_for_too_much_is_told_when_to_come_back(
    client: ApiClient, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.TENANT_RATES = "standard=1"
    monkeypatch.setattr(tenant_middleware, "limiter", TenantLimiter(clock=HandClock()))
    answers = [client.ask("/tickets") for _ in range(11)]
    assert [a.status_code for a in answers] == [200] * 10 + [429]
    assert answers[0]["RateLimit"] == '"desk";r=9;t=1'
    assert problem(answers[-1]) == (429, "rate_limited")
    assert (answers[-1]["Retry-After"], answers[-1]["RateLimit"]) == ("1", '"desk";r=0;t=1')
    with _watching() as bills:
        client.ask("/tickets")
    assert bills[0].trips == 0, "a flood costs no read"


@pytest.mark.parametrize(("full", "seconds"), [("requests", "1"), ("heavy", "2")])
def test_too_many_at_once_is_told_apart_from_too_many(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch, full: str, seconds: str
) -> None:
    monkeypatch.setattr(tenant_limiter, full, TenantPlaces(lambda: 0))
    response = client.send("/tickets/status", {"status": "closed", "tickets": [{"number": 1}]})
    assert (problem(response), response["Retry-After"]) == ((429, "too_many_at_once"), seconds)


# --- faults ---


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Throttled("Busy."), (503, "busy")),
        (Unavailable("Away."), (503, "unavailable")),
        (KeyError("x"), (500, "internal")),
    ],
)
def test_a_fault_of_ours_is_a_problem_too(
    client: ApiClient, monkeypatch: pytest.MonkeyPatch, error: Exception, told: tuple[int, str]
) -> None:
    def fail(*args: object, **kwargs: object) -> None:
        raise error

    monkeypatch.setattr(ticket_routes.timelines, "head", fail)
    response = client.ask("/tickets/1")
    assert problem(response) == told
    assert ("Retry-After" in response) == (told[0] == 503)
    assert b"Traceback" not in response.content


# --- other origins ---


def test_a_page_of_another_origin_is_let_in_only_where_the_key_names_it(world: World) -> None:
    world.tickets("acme", 1)
    client = api_client(world, origins=("https://shop.example",))
    let_in = client.ask("/tickets", Origin="https://shop.example")
    assert let_in["Access-Control-Allow-Origin"] == "https://shop.example"
    assert "Link" in let_in["Access-Control-Expose-Headers"]
    refused = client.ask("/tickets", Origin="https://evil.example")
    assert problem(refused) == (403, "origin_not_allowed")
    assert refused["Access-Control-Allow-Origin"] == "*"  # it says nothing of the desk
    assert "tickets" not in refused.json()["detail"]
    assert "Access-Control-Allow-Origin" not in client.ask("/tickets")


def test_a_page_can_read_that_its_key_lets_nobody_in_any_more(world: World) -> None:
    key, text = make_key(world.context("alice", "acme"), origins=("https://shop.example",))
    alter(key, revoked_at=clock.stamp())
    for client, code in ((ApiClient(text), "key_revoked"), (ApiClient("sk_nonsense"), "key_malformed")):
        response = client.ask("/tickets", Origin="https://shop.example")
        assert problem(response) == (401, code)
        assert response["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Origin" not in client.ask("/tickets")


def test_a_caller_from_elsewhere_is_told_which_address_was_seen(world: World) -> None:
    response = api_client(world, addresses=("192.0.2.0/24",)).ask("/tickets")
    assert problem(response) == (403, "address_not_allowed")
    assert "127.0.0.1" in response.json()["detail"]
