"""Charlie, who belongs only to Globex, walks every route of the portal against Acme's objects.

The routes are read from the URL configuration: a new one is walked without a change here. A route with a
parameter that the walk does not know fails, so that nobody adds one unnoticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from portal.access import Access
from portal.dynamo import meter
from tenants.roles import Role
from tests.world import World
from tickets import lifecycle

# Values of Acme's for each route parameter. Acme has tickets up to 12, Globex has none.
ACMES = {"number": "7", "uid": "MQ", "token": "abc-def"}
SECRET = "Acme's secret"
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"}


def routes(patterns: list[URLPattern | URLResolver] | None = None, prefix: str = "") -> Iterator[tuple[str, object]]:
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + str(pattern.pattern).lstrip("^").rstrip("$")
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, path)
        else:
            yield path, pattern.callback


def filled(route: str) -> str:
    return "/" + re.sub(r"<(?:\w+:)?(\w+)>", lambda m: ACMES[m[1]], route)


ROUTES = list(routes())
MEMBER_ROUTES = [(r, v.access) for r, v in ROUTES if v.access.level == "member"]  # type: ignore[attr-defined]
OBJECT_ROUTES = [(r, a) for r, a in MEMBER_ROUTES if "<" in r]

FORM = {
    "title": "Stolen",
    "body": "Stolen",
    "priority": "low",
    "status": "closed",
    "to": "closed",
    "resolver": "me",
    "version": "1",
    "tickets": ["7.1.open."],
    "request_id": "c" * 32,
}


@pytest.fixture
def acme(world: World) -> World:
    alice = world.context("alice", "acme")
    for n in range(12):
        lifecycle.create(alice, title=f"{SECRET} {n}", description=SECRET)
    return world


def test_the_walk_knows_the_portals_routes() -> None:
    assert len(ROUTES) > 15
    assert len(OBJECT_ROUTES) >= 5


@pytest.mark.parametrize(("route", "view"), ROUTES, ids=[r for r, _ in ROUTES])
def test_every_route_says_who_may_call_it(route: str, view: object) -> None:
    assert isinstance(getattr(view, "access", None), Access), route


@pytest.mark.parametrize(("route", "access"), MEMBER_ROUTES, ids=[r for r, _ in MEMBER_ROUTES])
def test_a_visitor_is_sent_to_sign_in(engine: None, route: str, access: Access) -> None:
    response = Client().get(filled(route))
    assert response.status_code == 302
    assert response["Location"].startswith("/login/")


@pytest.mark.parametrize(("route", "access"), OBJECT_ROUTES, ids=[r for r, _ in OBJECT_ROUTES])
def test_an_outsider_finds_nothing_of_acmes(acme: World, route: str, access: Access) -> None:
    browser = acme.browser("charlie")
    read = browser.get(filled(route))
    assert read.status_code in (404, 405), route
    written = browser.send(filled(route), FORM)
    assert written.status_code in (404, 405), route
    assert SECRET not in read.content.decode() + written.content.decode()
    assert lifecycle.read(acme.context("alice", "acme"), 7).version == 1


@pytest.mark.parametrize(("route", "access"), MEMBER_ROUTES, ids=[r for r, _ in MEMBER_ROUTES])
def test_no_page_of_another_tenant_shows_anything_of_acmes(acme: World, route: str, access: Access) -> None:
    browser = acme.browser("charlie")
    tenant_id = acme.tenants["acme"].tenant_id
    hints = {"HTTP_X_TENANT_ID": tenant_id, "HTTP_X_TENANT": "acme"}
    query = f"?tenant={tenant_id}&tenant_id={tenant_id}&slug=acme"
    response = browser.get(filled(route) + query, **hints)  # type: ignore[arg-type]
    assert SECRET not in response.content.decode()
    assert tenant_id not in response.content.decode()


@pytest.mark.parametrize("route", [r for r, a in MEMBER_ROUTES if a.role != Role.VIEWER])
def test_a_role_that_is_too_low_is_forbidden(acme: World, route: str) -> None:
    browser = acme.browser("vera")
    assert browser.get(filled(route)).status_code in (403, 405)
    assert browser.send(filled(route), FORM).status_code == 403
    assert lifecycle.read(acme.context("alice", "acme"), 7).version == 1


@pytest.mark.parametrize(("route", "view"), ROUTES, ids=[r for r, _ in ROUTES])
def test_reading_never_writes(acme: World, route: str, view: object) -> None:
    for browser in (acme.browser("alice", "acme"), Client()):
        with meter.measure() as outer:
            calls = _calls_of(browser, filled(route))
        assert not {c.operation for c in calls} & WRITES, route
        assert not {c.operation for c in outer.calls} & WRITES


def _calls_of(browser: Client, path: str) -> list[meter.Call]:
    from tests.test_cost import _watching

    with _watching() as bills:
        browser.get(path)
    return [c for bill in bills for c in bill.calls]


@pytest.mark.parametrize(("route", "view"), ROUTES, ids=[r for r, _ in ROUTES])
def test_every_unsafe_route_wants_a_csrf_token(acme: World, route: str, view: object) -> None:
    browser = acme.browser("alice", "acme")
    browser.handler.enforce_csrf_checks = True
    response = browser.post(filled(route), FORM)
    assert response.status_code in (403, 405), route
    if response.status_code == 405:
        assert "POST" not in response.headers["Allow"]
