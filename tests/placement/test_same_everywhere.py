"""What a pooled desk has, a placed one has: the same pages, answers and events, for as many round trips and units."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import pytest
from django.core.cache import cache as page_cache

from portal import clock
from portal.dynamo import meter
from portal.dynamo.placement import POOL, Placement
from tests.support import embedded
from tests.support.api_client import api_client
from tests.support.folding import Follower
from tests.support.placed import BRIDGE, SILO, desk, inside
from tests.support.searching import index_all
from tests.support.world import Browser

FIRST = {"title": "The printer is out of toner", "description": "It *broke* on Monday.", "priority": "high"}
SECOND = {"title": "The door does not close", "description": "A cold wind.", "priority": "low", "tags": "door, wind"}
# What differs between two desks of the same history: ids, marks, tokens, secrets.
PARTICULARS = (
    (re.compile(r"[0-9a-f]{12,}"), "ID"),
    (re.compile(r'"(whsec_)?[A-Za-z0-9_:.=/+-]{40,}"'), '"SIGNED"'),
    (re.compile(r'data-live="[^"]*"'), 'data-live="SIGNED"'),
    (re.compile(r"\d\d:\d\d:\d\d\.\d{6}"), "MOMENT"),
)
BEGINNING = clock.now()


class Step(NamedTuple):
    """What somebody did, what was answered, and what it cost."""

    what: str
    status: int
    trips: int
    calls: tuple[str, ...]
    read_units: float
    write_units: float
    body: str


class Story:
    """The same work at a desk, wherever it lies, and a line for each step of it."""

    def __init__(self, where: Placement, monkeypatch: pytest.MonkeyPatch) -> None:
        self.moment = BEGINNING
        monkeypatch.setattr(clock, "now", lambda: self.moment)
        self.world = embedded.world(shards=1)
        self.desk = desk(self.world, where, owner="charlie")
        self.steps: list[Step] = []

    def did(self, what: str, client: Any, method: str, path: str, *args: Any, **kwargs: Any) -> Any:
        page_cache.clear()
        self.moment += timedelta(seconds=1)
        with bills() as found:
            answer = getattr(client, method)(path, *args, **kwargs)
            body = b"".join(answer.streaming_content) if answer.streaming else answer.content
        bill = max(found, key=lambda one: len(one.calls))
        text = body.decode()
        for pattern, word in PARTICULARS:
            text = pattern.sub(word, text)
        calls = tuple(sorted(call.operation for call in bill.calls))
        self.steps.append(Step(what, answer.status_code, bill.trips, calls, bill.read_units, bill.write_units, text))
        return answer

    def run(self) -> list[Step]:
        browser = self.world.browser("charlie", "initech")
        self.write(browser)
        with inside(self.desk):
            Follower().fold()
            index_all()
        self.read(browser)
        self.call()
        return self.steps

    def write(self, browser: Browser) -> None:
        for name, form in (("a", FIRST), ("b", SECOND)):
            self.did(f"open {name}", browser, "send", "/tickets/new/", form | {"request_id": name * 32})
        self.did("comment", browser, "send", "/tickets/1/comment/", {"body": "Ordered.", "request_id": "c" * 32})
        self.did("take it", browser, "send", "/tickets/1/assign/", {"version": "1", "resolver": "me"})
        self.did("make it urgent", browser, "send", "/tickets/1/change/", {"version": "2", "priority": "urgent"})
        self.did("resolve several", browser, "send", "/tickets/bulk/", {"tickets": ["2.1.open."], "to": "resolved"})
        self.did("resolve it twice", browser, "send", "/tickets/2/change/", {"version": "1", "status": "closed"})

    def read(self, browser: Browser) -> None:
        for path in (
            "/tickets/",
            "/tickets/?status=any",
            "/tickets/?resolver=me",
            "/tickets/1/",
            "/tickets/1/edit/",
            "/tickets/dashboard/",
            "/tickets/people/",
            "/search/?q=toner",
            "/search/suggest/?q=doo",
            "/desk/settings/",
            "/desk/members/",
        ):
            self.did(f"look at {path}", browser, "get", path)
        self.did("export", browser, "send", "/tickets/export/?status=any", {})

    def call(self) -> None:
        client = api_client(self.world, where="initech")
        key = {"Idempotency-Key": "once"}
        ticket = {"title": "By a key", "description": "Sent twice."}
        for what in ("create by the API", "send it again"):
            self.did(what, client, "send", "/tickets", ticket, **key)
        hook = {"url": "https://hooks.example.com/in", "event_types": ["ticket.created"]}
        made = self.did("subscribe", client, "send", "/webhooks", hook, **key)
        self.did("test the webhook", client, "send", f"/webhooks/{made.json()['id']}/test", **key)
        self.did("create what somebody hears of", client, "send", "/tickets", ticket, Idempotency_Key="another")
        self.did("list by the API", client, "ask", "/tickets")


@contextmanager
def bills() -> Iterator[list[meter.Meter]]:
    """The bills of the requests inside: the middleware's own meters."""
    found: list[meter.Meter] = []
    original = meter.Meter.__init__

    def remember(bill: meter.Meter, *args: Any, **kwargs: Any) -> None:
        original(bill, *args, **kwargs)
        found.append(bill)

    meter.Meter.__init__ = remember  # type: ignore[method-assign]
    try:
        yield found
    finally:
        meter.Meter.__init__ = original  # type: ignore[method-assign]


@pytest.fixture(scope="module")
def pooled() -> dict[str, Step]:
    """What a pooled desk does, answers and costs."""
    with pytest.MonkeyPatch.context() as patch:
        return {step.what: step for step in Story(POOL, patch).run()}


def test_the_story_is_one_of_success(pooled: dict[str, Step]) -> None:
    assert {what: step.status for what, step in pooled.items() if step.status >= 400} == {"resolve it twice": 409}


@pytest.mark.parametrize("where", [BRIDGE, SILO], ids=str)
def test_a_placed_desk_looks_answers_and_costs_as_a_pooled_one_does(
    where: Placement, pooled: dict[str, Step], monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = {step.what: step for step in Story(where, monkeypatch).run()}
    assert [*placed] == [*pooled]
    for what, step in placed.items():
        assert step == pooled[what]
