"""Open pages: who else is on a ticket, when something was changed, who may ask, and what it costs."""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core import signing
from django.test import Client

from portal import clock
from portal.dynamo import meter
from portal.dynamo.placement import Location, Placement
from tenants.audit_trail.recording import SYSTEM
from tenants.membership import member_changes
from tenants.tenancy.context import Role
from tests.desk.test_cost import IDENTITY, _watching
from tests.support import embedded
from tests.support.folding import Follower
from tests.support.world import World
from tickets.desk import commenting
from tickets.live import page_tokens, presence
from tickets.snoozing import snoozing

SCRIPT = (Path(settings.BASE_DIR) / "static/js/live.js").read_text()


@pytest.fixture(autouse=True)
def answers_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "SECONDS", 0)


@pytest.fixture
def shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers hold for as long as they are asked for."""
    monkeypatch.setattr(presence, "SECONDS", 3600)
    presence._answers.clear()


@pytest.fixture
def world(engine: None) -> World:
    return embedded.prepared("two-tickets-of-acme", _two_tickets)


def _two_tickets() -> World:
    world = World.create()
    world.tickets("acme", 2)
    return world


def address(world: World, who: str, path: str = "/acme/tickets/1/") -> str:
    """Return where an open page of somebody asks, as the page has it."""
    found = re.search(r'data-live="([^"]+)"', world.browser(who, "acme").get(path).content.decode())
    assert found
    return found[1]


def ask(world: World, who: str, live: str, **what: str) -> dict[str, Any]:
    answer = world.browser(who, "acme").post(live, what)
    assert answer.status_code == 200
    return dict(json.loads(answer.content))


def people(world: World, who: str, **what: str) -> list[tuple[str, bool]]:
    answer = ask(world, who, address(world, who), **{"for": "people"} | what)
    return [(one["name"], one["writes"]) for one in answer["others"]]


def test_people_on_the_same_ticket_see_who_else_looks_and_who_writes(world: World) -> None:
    assert people(world, "alice") == []
    assert people(world, "bob", writes="1") == [("Alice Example", False)]
    assert people(world, "alice") == [("Bob Example", True)]


def test_somebody_who_leaves_or_falls_silent_is_there_no_more(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    people(world, "bob")
    people(world, "bob", leaves="1")
    assert people(world, "alice") == []
    people(world, "bob", writes="1")
    later = clock.now() + timedelta(seconds=presence.WRITES + 1)
    monkeypatch.setattr(clock, "now", lambda: later)
    assert people(world, "alice") == [("Bob Example", False)]
    later += timedelta(seconds=presence.STAYS)
    assert people(world, "alice") == []


def test_those_who_left_are_taken_out_of_a_crowded_ticket(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence, "MOST", 1)
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    presence.announce(bob, 1, shown="", leaves=True)
    presence.announce(alice, 1, shown="")
    with meter.measure() as bill:
        assert presence.announce(alice, 1, shown="") == []
    assert len(bill.calls) == 1


def test_a_page_hears_of_a_change_from_the_page_of_who_made_it(world: World) -> None:
    before = address(world, "alice")
    ask(world, "alice", before, **{"for": "people"})
    commenting.comment(world.context("bob", "acme"), 1, body="Done.", internal=True)
    known = ask(world, "bob", address(world, "bob"), **{"for": "people"})
    assert ask(world, "alice", before, **{"for": "people"})["at"] > known["at"]
    shown = page_tokens.OpenPage.read(before.split("/")[-2]).shown
    assert ask(world, "alice", before, **{"for": "change"})["at"] > shown


def test_a_list_hears_of_each_change_of_its_desk_and_of_no_other(world: World) -> None:
    follower = Follower()
    follower.fold()
    live = address(world, "bob", "/acme/tickets/")
    before = ask(world, "bob", live, **{"for": "change"})["at"]
    world.tickets("globex", 1)
    follower.fold()
    assert ask(world, "bob", live, **{"for": "change"})["at"] == before
    commenting.comment(world.context("alice", "acme"), 1, body="Done.")
    follower.fold()
    assert ask(world, "bob", live, **{"for": "change"})["at"] != before


def test_a_list_hears_that_a_ticket_was_snoozed_and_that_it_is_awake_again(world: World) -> None:
    follower, bob = Follower(), world.context("bob", "acme")
    follower.fold()
    live = address(world, "bob", "/acme/tickets/")
    for change in (lambda: snoozing.snooze(bob, 1, until=None), lambda: snoozing.wake(bob, 1)):
        page = world.browser("bob", "acme").get("/acme/tickets/")
        before = ask(world, "bob", live, **{"for": "change"})["at"]
        change()
        follower.fold()
        assert ask(world, "bob", live, **{"for": "change"})["at"] != before
        news = world.browser("bob", "acme").get(page.context["updates_url"]).content.decode()
        assert "1 ticket in this list has been updated." in news


@pytest.mark.parametrize("how", ["nobody", "somebody else", "cut", "another salt", "too old"])
def test_an_address_is_of_no_use_to_anybody_else_or_later(
    world: World, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, caller = address(world, "bob"), world.browser("bob", "acme")
    if how == "nobody":
        caller = Client()  # type: ignore[assignment]  # no cookie
    elif how == "somebody else":
        caller = world.browser("alice", "acme")
    elif how == "cut":
        live = f"{live[:-5]}/"
    elif how == "another salt":
        live = f"/r/live/{signing.dumps(['x'] * 7, salt='another')}/"
    else:
        monkeypatch.setattr(page_tokens, "SECONDS", -1)
    with _watching() as bills:
        assert caller.post(live, {"for": "people"}).status_code in (403, 404)
    assert [bill.calls for bill in bills] == [[]]


def test_an_operator_in_a_members_place_and_a_closing_desk_are_not_noted(world: World) -> None:
    bob = world.context("bob", "acme")
    assert page_tokens.token(bob, 1)
    assert page_tokens.token(replace(bob, acted_by="Root"), 1) == ""
    assert page_tokens.token(replace(bob, closes_at=clock.stamp()), 1) == ""


def test_a_page_that_is_too_old_gets_another_address_of_the_same_ticket(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    live, browser = address(world, "bob"), world.browser("bob", "acme")
    later = time.time() + 7 * 60 + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert browser.post(live, {"for": "people"}).status_code == 404
    again = json.loads(browser.get("/acme/tickets/live/", {"page": live.split("/")[-2]}).content)["live"]
    assert ask(world, "bob", again, **{"for": "people"})["others"] == []
    before, after = (page_tokens.OpenPage.read(one.split("/")[-2]) for one in (live, again))
    assert (before.number, before.shown) == (after.number, after.shown)


@pytest.mark.parametrize("how", ["removed", "a viewer now", "signed out", "somebody else", "of another desk", "cut"])
def test_somebody_who_may_not_look_any_more_gets_no_new_address(world: World, how: str) -> None:
    live, browser = address(world, "bob"), world.browser("bob", "acme")
    bob, by = world.users["bob"].id, world.context("alice", "acme")
    if how == "removed":
        member_changes.remove_member(by, user_id=bob, by=SYSTEM)
    elif how == "a viewer now":
        member_changes.change_role(by, user_id=bob, to=Role.VIEWER, by=SYSTEM)
    elif how == "signed out":
        copy = dict(browser.cookies)
        browser.post("/logout/")
        browser.cookies.update(copy)
    elif how == "somebody else":
        browser = world.browser("alice", "acme")
    elif how == "of another desk":
        elsewhere = replace(world.context("bob", "acme"), tenant_id=world.tenants["globex"].tenant_id)
        live = f"/r/live/{page_tokens.token(elsewhere, 1)}/"
    else:
        live = f"{live[:-5]}/"
    answer = browser.get("/acme/tickets/live/", {"page": live.split("/")[-2]})
    assert answer.status_code in (302, 403, 404)


def test_a_page_of_a_desk_that_has_moved_gets_an_address_of_its_new_place(world: World) -> None:
    bob = world.context("bob", "acme")
    token = page_tokens.token(replace(bob, where=Location(placement=Placement("bridge"))), 1)
    assert world.browser("bob", "acme").post(f"/r/live/{token}/", {"for": "change"}).status_code == 503
    again = json.loads(world.browser("bob", "acme").get("/acme/tickets/live/", {"page": token}).content)["live"]
    assert ask(world, "bob", again, **{"for": "change"})["at"]


def seconds(name: str) -> int:
    """Return a time that the script of open pages names."""
    return int(re.search(rf"const {name} = (\d+)", SCRIPT)[1])  # type: ignore[index]


def test_an_open_page_that_nobody_uses_costs_one_read_unit_a_minute_at_most_and_a_ticket_two_writes(
    world: World,
) -> None:
    live, browser = address(world, "bob"), world.browser("bob", "acme")
    people(world, "alice")
    with _watching() as bills:
        for what in ("people", "change"):
            browser.post(live, {"for": what})
        browser.get("/acme/tickets/live/", {"page": live.split("/")[-2]})
    people_units, change, renewal = (bill.read_units for bill in bills)
    writes = [bill.write_units for bill in bills]
    read = seconds("READ")
    assert "more = 1 + Math.random() * 0.2" in SCRIPT  # 1.1 on average
    assert (people_units, renewal) == (0, IDENTITY)
    assert read * 1.2 + 1 <= 70  # seconds until it hears of a letter
    assert change * 60 / (read * 1.1) + renewal * 60 / page_tokens.SECONDS <= 1
    assert (writes, 60 / seconds("STAYS")) == ([1, 0, 0], 2)


def test_a_page_in_use_hears_within_ten_seconds_who_writes_and_what_is_new(world: World) -> None:
    bob = address(world, "bob")
    presence.announce(world.context("alice", "acme"), 1, shown="", writes=True)
    commenting.comment(world.context("alice", "acme"), 1, body="Done.")
    answer = ask(world, "bob", bob, **{"for": "change", "people": "1"})
    assert answer["others"] == [{"name": "Alice Example", "writes": True}]
    assert answer["at"] > page_tokens.OpenPage.read(bob.split("/")[-2]).shown
    assert math.ceil(seconds("NEAR") * 1.2) + 2 <= 10  # its own looks, by the second, and the age of a shared answer
    assert seconds("TYPES") + seconds("STAYS") <= presence.WRITES < presence.STAYS


def test_a_hundred_open_pages_of_a_process_share_their_reads(world: World, shared: None) -> None:
    pages = [(address(world, who, path), world.browser(who, "acme")) for path in ("/acme/tickets/", "/acme/tickets/1/")
             for who in ("alice", "bob")]  # fmt: skip
    with _watching() as bills:
        for live, browser in pages * 25:
            assert browser.post(live, {"for": "change", "people": "1"}).status_code == 200
    assert len(bills) == 100
    assert Counter(call.operation for bill in bills for call in bill.calls) == {"GetItem": 3}
    assert (sum(bill.read_units for bill in bills), sum(bill.write_units for bill in bills)) == (1.5, 0)


def test_what_a_page_writes_is_what_the_others_of_its_process_read(world: World, shared: None) -> None:
    bob = address(world, "bob")
    assert ask(world, "bob", bob, **{"for": "change", "people": "1"})["others"] == []
    people(world, "alice", writes="1")
    assert ask(world, "bob", bob, **{"for": "change", "people": "1"})["others"] == [
        {"name": "Alice Example", "writes": True}
    ]


def test_answers_are_shared_within_a_desk_and_its_place_alone(world: World, shared: None) -> None:
    alice, asked = world.context("alice", "acme"), list[int]()

    def read() -> int:
        asked.append(1)
        return len(asked)

    elsewhere = replace(alice, where=Location(placement=Placement("bridge")))
    for desk in (alice, alice, world.context("alice", "globex"), elsewhere):
        presence.latest(desk, "change", 1, read)
    presence.latest(alice, "change", 2, read)
    assert len(asked) == 4


@pytest.mark.parametrize(
    ("path", "what", "calls", "reads", "writes"),
    [
        ("/acme/tickets/1/", "people", ["UpdateItem"], 0, 1),
        ("/acme/tickets/1/", "change", ["GetItem"], 0.5, 0),
        ("/acme/tickets/1/", "change and people", ["GetItem"] * 2, 1, 0),
        ("/acme/tickets/1/", "news", ["GetItem"], 0.5, 0),
        ("/acme/tickets/", "change", ["GetItem"], 0.5, 0),
        ("/acme/tickets/", "people", [], 0, 0),
    ],
)
def test_a_look_costs_one_write_or_half_a_unit_each_and_identifies_nobody(
    world: World, path: str, what: str, calls: list[str], reads: float, writes: float
) -> None:
    live = address(world, "bob", path)
    people(world, "alice")  # the first one of a ticket makes its item
    browser = world.browser("bob", "acme")
    with _watching() as bills:
        sent = {"for": what.partition(" ")[0]} | ({"people": "1"} if "and" in what else {})
        assert browser.post(live, sent).status_code == 200
    bill = bills[0]
    assert ([call.operation for call in bill.calls], bill.read_units, bill.write_units) == (calls, reads, writes)
