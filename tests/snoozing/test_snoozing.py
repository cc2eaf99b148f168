"""A ticket rests until its time or an answer, and whoever snoozed it is told when nobody has answered."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from delivery.timers.due_worker import DueWorker
from portal import clock
from portal.errors import Conflict, Invalid
from portal.web import locales
from portal.web.locales import Locale
from tenants.tenancy.context import TenantContext
from tests.support.api_client import api_client
from tests.support.endpoints import rows
from tests.support.world import Browser, World
from tickets.desk import bulk, changing, commenting, creating, lists, many, timelines, undoing
from tickets.desk.changing import TicketState, Wishes
from tickets.desk.commenting import WrittenComment
from tickets.desk.filters import TicketFilter
from tickets.replies import withdrawing
from tickets.requesters import requesters
from tickets.requesters.requesters import Requester
from tickets.snoozing import snoozing, views
from tickets.ticket.due_marks import DueMarks
from tickets.ticket.fields import UNRESOLVED, Status

NOON = datetime(2099, 11, 26, 12, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture
def browser(world: World) -> Browser:
    return world.browser("bob", "acme")


@pytest.fixture
def eve(bob: TenantContext) -> Requester:
    """Eve, outside, who has opened ticket 1."""
    made = requesters.ensure(bob, "eve@example.org", name="Eve")
    creating.create(bob, title="Printer", requester=made)
    return made


def at(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    monkeypatch.setattr(clock, "now", lambda: moment)


def snoozed(tenant: TenantContext, number: int = 1) -> int | None:
    return DueMarks.read(changing.read(tenant, number).due).snoozed


def told(tenant: TenantContext) -> list[dict[str, object]]:
    """The events of snoozes that are over."""
    events = [json.loads(text) for row in rows() for text in row.events]
    return [event["data"] for event in events if event["type"] == "ticket.due"]


def history(tenant: TenantContext) -> list[tuple[str, str, str]]:
    entries = timelines.ticket(tenant, 1).activity
    return [(c.field, c.before, c.after) for entry in entries for c in entry.changes or () if c.field == "snoozed"]


def listed(tenant: TenantContext, word: str) -> list[int]:
    page = lists.page(tenant, status=UNRESOLVED, only=TicketFilter.parse({"snoozed": word}))
    return [int(row.number) for row in page.rows]


def test_a_snoozed_ticket_wakes_at_its_time_once_and_tells_whoever_snoozed_it(
    bob: TenantContext, eve: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, NOON)
    snoozing.snooze(bob, 1, until=NOON + HOUR)
    assert (listed(bob, "yes"), listed(bob, "no")) == ([1], [])
    DueWorker().turn()
    assert snoozed(bob) is not None
    at(monkeypatch, NOON + HOUR)
    DueWorker().turn()
    snoozing.come_due(bob, "ticket/1", f"{int((NOON + HOUR).timestamp())}.{bob.user_id}", NOON + HOUR)
    assert snoozed(bob) is None
    assert told(bob) == [{"number": 1, "to": bob.user_id}]
    stamp = clock.stamp(NOON + HOUR)
    assert history(bob) == [("snoozed", "", stamp), ("snoozed", stamp, "")]
    assert (listed(bob, "yes"), listed(bob, "no")) == ([], [1])


@pytest.mark.parametrize("until", [None, NOON + DAY], ids=["until an answer", "until a time"])
def test_an_answer_of_the_requester_wakes_a_ticket_and_nobody_is_reminded(
    until: datetime | None, world: World, bob: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, NOON)
    alice = world.context("alice", "acme")
    creating.create(alice, title="Printer")
    snoozing.snooze(bob, 1, until=until)
    commenting.comment(bob, 1, body="Have you tried paper?")
    commenting.comment(alice, 1, body="A thought", internal=True)
    assert snoozed(bob) is not None
    commenting.comment(alice, 1, body="Yes")
    assert snoozed(bob) is None
    at(monkeypatch, NOON + 2 * DAY)
    DueWorker().turn()
    assert told(bob) == []
    assert len(history(bob)) == 2


def test_a_time_that_was_moved_counts_as_it_is_now(
    bob: TenantContext, eve: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, NOON)
    snoozing.snooze(bob, 1, until=NOON + HOUR)
    snoozing.snooze(bob, 1, until=NOON + DAY)
    at(monkeypatch, NOON + 2 * HOUR)
    DueWorker().turn()
    assert snoozed(bob) is not None
    at(monkeypatch, NOON + DAY)
    DueWorker().turn()
    assert snoozed(bob) is None
    assert len(told(bob)) == 1


def test_a_ticket_that_was_resolved_meanwhile_is_left_alone(
    bob: TenantContext, eve: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, NOON)
    snoozing.snooze(bob, 1, until=NOON + HOUR)
    changing.change(bob, 1, Wishes(status=Status.RESOLVED))
    at(monkeypatch, NOON + HOUR)
    DueWorker().turn()
    assert told(bob) == []
    with pytest.raises(Conflict, match="there is nothing to snooze"):
        snoozing.snooze(bob, 1, until=NOON + DAY)


def by_form(tenant: TenantContext, to: Status) -> None:
    bulk.change_status(tenant, [TicketState.parse(str(TicketState.of(changing.read(tenant, 1))))], to=to)


REOPENED: dict[str, Callable[[TenantContext], object]] = {
    "change": lambda tenant: changing.change(tenant, 1, Wishes(status=Status.OPEN)),
    "comment": lambda tenant: commenting.comment(tenant, 1, body="Once more", then=Status.OPEN),
    "bulk form": lambda tenant: by_form(tenant, Status.OPEN),
    "bulk API": lambda tenant: bulk.change_status(tenant, bulk.states(tenant, {1: None}), to=Status.OPEN),
    "bulk edit": lambda tenant: many.edit(tenant, {1: None}, many.TicketEdit.of({"status": Status.OPEN})),
}


@pytest.mark.parametrize("reopen", REOPENED.values(), ids=REOPENED)
def test_a_ticket_that_is_resolved_and_opened_again_is_awake(
    reopen: Callable[[TenantContext], object], bob: TenantContext, eve: Requester
) -> None:
    snoozing.snooze(bob, 1, until=None)
    changing.change(bob, 1, Wishes(status=Status.RESOLVED))
    reopen(bob)
    assert (snoozed(bob), changing.read(bob, 1).status) == (None, Status.OPEN)
    assert history(bob) == [("snoozed", "", "answer"), ("snoozed", "answer", "")]


def test_a_resolution_that_is_taken_back_leaves_the_snooze(bob: TenantContext, eve: Requester) -> None:
    snoozing.snooze(bob, 1, until=None)
    receipt = bulk.change_status(bob, bulk.states(bob, {1: None}), to=Status.RESOLVED).receipt
    undoing.take_back(bob, receipt)
    assert (snoozed(bob), changing.read(bob, 1).status) == (0, Status.OPEN)


def test_an_answer_that_is_taken_back_leaves_the_snooze(world: World, bob: TenantContext) -> None:
    alice, found = world.context("alice", "acme"), list[WrittenComment]()
    creating.create(alice, title="Printer")
    snoozing.snooze(bob, 1, until=None)
    commenting.comment(alice, 1, body="Oh", hold=10, tell=found.append)
    assert snoozed(bob) is None
    assert undoing.take_back(alice, withdrawing.receipt(alice, found[0])).said.startswith("Your comment was taken back")
    assert snoozed(bob) == 0


@pytest.mark.parametrize("until", [NOON - HOUR, NOON, NOON + 400 * DAY])
def test_a_time_that_is_over_or_too_far_away_is_refused(
    until: datetime, bob: TenantContext, eve: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, NOON)
    with pytest.raises(Invalid, match="Choose a time"):
        snoozing.snooze(bob, 1, until=until)


def test_other_marks_of_a_ticket_stay(bob: TenantContext, eve: Requester) -> None:
    summary = changing.read(bob, 1)
    summary.due = "f4099766400 y7"
    bob.repository.put(summary)
    snoozing.snooze(bob, 1, until=None)
    assert changing.read(bob, 1).due == "f4099766400 z0 y7"
    snoozing.wake(bob, 1)
    assert changing.read(bob, 1).due == "f4099766400 y7"


# --- pages ---


@pytest.mark.parametrize(
    ("choice", "words"),
    [("hours", "until"), ("tomorrow", "09:00 UTC"), ("monday", "09:00 UTC"), ("answer", "until its requester answers")],
)
def test_a_click_snoozes_a_ticket_and_another_one_takes_it_back(
    choice: str, words: str, bob: TenantContext, browser: Browser, eve: Requester
) -> None:
    page = browser.send("/tickets/1/snooze/", {"choice": choice}, follow=True).content.decode()
    assert words in page
    assert "Wake now" in page
    assert not re.search(r">[^<]*\d:\d\d:\d\d", page), "seconds are for the tooltip"
    assert "Snoozed</span>" in browser.get("/tickets/").content.decode()
    receipt = page.split('name="receipt" value="')[1].split('"')[0]
    page = browser.send("/tickets/bulk/undo/", {"receipt": receipt}, follow=True).content.decode()
    assert "is awake again" in page
    assert snoozed(bob) is None


def test_follow_up_in_three_days_is_a_click(bob: TenantContext, browser: Browser, eve: Requester) -> None:
    browser.send("/tickets/1/snooze/", {"choice": "follow_up"})
    until = snoozed(bob)
    assert until is not None
    assert timedelta(days=2, hours=23) < datetime.fromtimestamp(until, UTC) - clock.now() <= timedelta(days=3)


@pytest.mark.parametrize("typed", ["", "tomorrow", "2020-01-01T09:00", "2099-13-01T09:00"])
def test_a_bad_time_gets_a_sentence_at_its_field_and_is_kept(typed: str, browser: Browser, eve: Requester) -> None:
    answer = browser.send("/tickets/1/snooze/", {"choice": "at", "until": typed})
    page = answer.content.decode()
    assert answer.status_code == 422
    assert 'aria-describedby="until-problem' in page
    assert f'value="{typed}"' in page or not typed


@pytest.mark.parametrize(("choice", "at"), [("tomorrow", "2099-11-27T08:00"), ("monday", "2099-11-30T08:00")])
def test_mornings_are_those_of_the_zone_of_the_person(
    choice: str, at: str, bob: TenantContext, eve: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOON)
    with locales.shown_in(Locale(zone="Europe/Berlin")):
        until = views._until(choice, "")
    assert until is not None
    assert until.astimezone(UTC) == datetime.fromisoformat(at).replace(tzinfo=UTC)


def test_undo_of_a_second_snooze_brings_the_first_back(
    bob: TenantContext, eve: Requester, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(monkeypatch, NOON)
    snoozing.snooze(bob, 1, until=NOON + DAY)
    receipt = snoozing.snooze(bob, 1, until=None)
    at(monkeypatch, NOON + timedelta(minutes=1))
    assert undoing.take_back(bob, receipt).said == "Ticket #1 is snoozed as before."
    assert undoing.take_back(bob, receipt).left == ("Ticket #1 was changed since, and stays as it is.",)
    at(monkeypatch, NOON + DAY)
    DueWorker().turn()
    assert len(told(bob)) == 1


def test_the_api_snoozes_and_wakes(world: World, bob: TenantContext, eve: Requester) -> None:
    client = api_client(world)
    stamp = clock.stamp((clock.now() + DAY).replace(microsecond=0))
    assert client.call("PUT", "/tickets/1/snooze", {"until": stamp}).json()["snoozed"] == stamp
    assert client.call("PUT", "/tickets/1/snooze", {"until": None}).json()["snoozed"] == "answer"
    assert [one["number"] for one in client.ask("/tickets?snoozed=yes").json()["data"]] == [1]
    assert client.call("DELETE", "/tickets/1/snooze").json()["snoozed"] is None
    assert client.call("PUT", "/tickets/1/snooze", {"until": "2020-01-01T00:00:00Z"}).status_code == 422
