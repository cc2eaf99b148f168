"""Limit the modules between the entry point of a request, or of a stream record, and the database to ten.

These tests make real requests. At each call of the database they collect the product's modules on the call stack: a
reader has to open these files to follow the request. Each module counts once, and all middleware counts as one.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import pytest
from django.conf import settings

from portal.dynamo import client
from portal.streams import poller
from tenants.audit_trail.recording import Actor
from tenants.membership import invitations
from tenants.sign_in.accounts import new_id
from tenants.tenancy.context import Role
from tests.support.api_client import api_client
from tests.support.operators import Operator, make_operator
from tests.support.world import Browser, World
from tickets.management.commands import run_stream

HOPS: Final = 10
# Modules whose code runs during one request: they may become fewer, and not more. Some of the queue's are for orders,
# columns, saved views and groups; some of a comment's say how long it is held and what a summary remembers.
COMMENT: Final = 45
QUEUE: Final = 48
TICKET: Final = 44
PRODUCT: Final = ("portal", "tenants", "delivery", "tickets", "api")
MIDDLEWARE: Final = {path.rpartition(".")[0] for path in settings.MIDDLEWARE}

Way = tuple[str, ...]


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> list[Way]:
    """The modules on each way to the database that is walked from now on, in order."""
    found: list[Way] = []
    send = client.SharedConnection._make_api_call

    def walked(self: client.SharedConnection, *arguments: Any) -> dict[str, Any]:
        found.append(way_here())
        return send(self, *arguments)

    monkeypatch.setattr(client.SharedConnection, "_make_api_call", walked)
    return found


def way_here() -> Way:
    frame, modules = sys._getframe(2), [client.__name__]
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.partition(".")[0] in PRODUCT:
            modules.append(name)
        frame = frame.f_back  # type: ignore[assignment]
    modules.reverse()
    behind = max((n + 1 for n, name in enumerate(modules) if name in MIDDLEWARE), default=0)
    return tuple(dict.fromkeys(["the middleware"] * bool(behind) + modules[behind:]))


def too_long(ways: list[Way], *, through: str) -> list[Way]:
    """Those of the ways that have too many modules; some of them lead through this one."""
    assert any(through in way for way in ways), f"none of {len(ways)} ways leads through {through}"
    return sorted({way for way in ways if len(way) > HOPS})


def test_from_accepting_an_invitation(world: World, ways: list[Way]) -> None:
    alice = world.context("alice", "acme")
    (outcome,) = invitations.invite_all(alice, addresses=["nora@example.org"], role=Role.AGENT, by=Actor(alice.user_id))
    assert outcome.sent is not None
    account = {"name": "Nora New", "new_password1": new_id(), "new_password2": ""}
    account["new_password2"] = account["new_password1"]
    ways.clear()
    answer = Browser().post(f"/invitation/{outcome.sent.secret}/", account)
    assert answer.status_code == 302
    assert too_long(ways, through="tenants.membership.accepting") == []


def test_from_a_comment_of_the_api(world: World, ways: list[Way]) -> None:
    world.tickets("acme", 1)
    client = api_client(world)
    ways.clear()
    assert client.send("/tickets/1/comments", {"body": "x"}, Idempotency_Key="once").status_code == 201
    assert too_long(ways, through="tickets.desk.commenting") == []


def test_from_an_operators_list_of_tenants(world: World, ways: list[Way]) -> None:
    make_operator()
    operator = Operator.signed_in()
    ways.clear()
    assert operator.get("/admin/tenants/tenant/").status_code == 200
    assert too_long(ways, through="portal.nosql.planner.patterns") == []


def test_from_a_record_of_the_stream_to_the_aggregates(world: World, ways: list[Way]) -> None:
    world.tickets("acme", 3)
    following = run_stream.Command().poller(lease_seconds=poller.LEASE_SECONDS)
    ways.clear()
    following.step()
    following.step()
    following.release()
    # A shard is read in a thread of the poller's, whose stack does not say who began it.
    assert too_long([(poller.__name__, *way) for way in ways], through="tickets.counting.stream_handler") == []


# --- all modules of a request ---


@contextmanager
def running() -> Iterator[set[str]]:
    """The product's modules that run code meanwhile, in this thread and in those that it starts."""
    found: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        name = str(frame.f_globals.get("__name__", ""))
        if event == "call" and name.partition(".")[0] in PRODUCT:
            found.add(name)

    sys.setprofile(note)
    threading.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@pytest.mark.parametrize(
    ("most", "ask"),
    [
        pytest.param(
            COMMENT,
            lambda browser: browser.send("/tickets/1/comment/", {"body": "Said.", "request_id": new_id()}),
            id="comment",
        ),
        pytest.param(QUEUE, lambda browser: browser.get("/tickets/?status=open&priority=normal&tag=vip"), id="queue"),
        pytest.param(TICKET, lambda browser: browser.get("/tickets/1/"), id="ticket"),
    ],
)
def test_a_request_runs_through_few_modules(world: World, most: int, ask: Callable[[Browser], Any]) -> None:
    world.tickets("acme", 2)
    browser = world.browser("bob")
    ask(browser)  # what a process does once is done
    with running() as modules:
        assert ask(browser).status_code < 400
    assert len(modules) <= most, sorted(modules)
