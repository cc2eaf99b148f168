"""Which key opens which route: every route with every scope, against what is written down here a second time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tenants.api_keys.scopes import Scope
from tests.support import embedded
from tests.support.api_client import ApiClient, api_client
from tests.support.world import World

# The first line that fits counts. Written without a look at the declarations.
OPENED_BY = (
    ("POST PATCH DELETE", r"tickets/_/comments(/_)?", Scope.COMMENTS_WRITE),
    ("POST PATCH DELETE", r"tickets/_/notes(/_)?", Scope.NOTES_WRITE),
    ("GET", r"tickets(/.+)?|search", Scope.TICKETS_READ),
    ("POST PATCH", r"tickets(/.+)?", Scope.TICKETS_WRITE),
    ("POST", r"files", Scope.COMMENTS_WRITE),
    ("GET", r"members(/_)?", Scope.MEMBERS_READ),
    ("PUT DELETE", r"tickets/_/followers/_", Scope.TICKETS_WRITE),
    ("GET", r"bulk-changes/_", Scope.TICKETS_READ),
    ("POST PUT", r"bulk-changes(/_/undo|/_/cancellation)?", Scope.TICKETS_WRITE),
    ("PUT DELETE", r"tickets/_/links/_/_", Scope.TICKETS_WRITE),
    ("PUT DELETE", r"tickets/_/(merge|snooze|spam)", Scope.TICKETS_WRITE),
    ("GET", r"articles(/_)?|fields|views", Scope.TICKETS_READ),
    ("GET", r"requesters(/_)?", Scope.REQUESTERS_READ),
    ("POST PATCH", r"requesters(/_)?", Scope.REQUESTERS_WRITE),
    ("PUT DELETE", r"requesters/_/merge", Scope.REQUESTERS_WRITE),
    ("GET PUT", r"letters(/.+)?", Scope.LETTERS_MANAGE),
    ("GET", r"aggregates|tags", Scope.AGGREGATES_READ),
    ("GET", r"audit-events", Scope.AUDIT_READ),
    ("GET POST PATCH DELETE", r"ready-answers(/.+)?", Scope.ANSWERS_MANAGE),
    ("GET POST PATCH PUT DELETE", r"rules(/.+)?", Scope.RULES_MANAGE),
    ("GET POST PATCH DELETE", r"webhooks(/.+)?", Scope.WEBHOOKS_MANAGE),
)


def api_routes(patterns: list[URLPattern | URLResolver] | None = None, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Method and address of everything that takes a key, with `_` for each parameter."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from api_routes(pattern.url_patterns, path)
        else:
            for method in getattr(pattern.callback, "api_routes", {}):
                yield method, re.sub(r"<[^>]+>", "_", path).removeprefix("api/v1/")


ROUTES = sorted(api_routes())


def opener(method: str, path: str) -> Scope | None:
    fitting = (scope for methods, form, scope in OPENED_BY if method in methods.split() and re.fullmatch(form, path))
    return next(fitting, None)


@pytest.fixture(scope="module")
def clients() -> dict[Scope, ApiClient]:
    """A client for each scope, whose key has that scope alone."""
    embedded.make_empty()
    world: World = embedded.world(shards=1)
    return {scope: api_client(world, scope, name=scope.value) for scope in Scope}


def test_a_route_is_opened_by_its_scope_and_by_no_other(clients: dict[Scope, ApiClient]) -> None:
    for method, path in ROUTES:
        let_in = set()
        for scope, client in clients.items():
            asked = "?q=printer" if path == "search" else ""
            response = client.call(method, "/" + path.replace("_", "7") + asked, None if method == "GET" else {})
            refused = response.status_code == 403 and response.json()["code"] == "scope_missing"
            let_in |= set() if refused else {scope}
            assert response.status_code < 500, (method, path)
        assert let_in == {opener(method, path)}, (method, path)


def test_who_may_change_tickets_alone_sees_those_that_it_changes_and_is_told_so(
    clients: dict[Scope, ApiClient],
) -> None:
    client = clients[Scope.TICKETS_WRITE]
    made = client.send("/tickets", {"title": "Mine", "description": "In full."}).json()
    path = f"/tickets/{made['number']}"
    changed = client.call("PATCH", path, {"priority": "low"})
    assert (changed.status_code, changed.json()["description"]) == (200, "In full.")
    assert client.ask(path).status_code == 403
    assert "see those that it changes" in Scope.TICKETS_WRITE.summary


def test_what_is_written_here_is_about_routes_that_there_are() -> None:
    assert len(ROUTES) >= 7
    opened = {opener(*route) for route in ROUTES}
    assert None not in opened
    assert opened >= {Scope.TICKETS_READ, Scope.MEMBERS_READ, Scope.AGGREGATES_READ, Scope.AUDIT_READ}
