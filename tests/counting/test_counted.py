"""The numbers as a person would count them, after what people do: every rule that writes a ticket, through its door."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.conf import LazySettings

from portal import clock
from tenants.tenancy.context import TenantContext
from tests.support import archives, commands
from tests.support.folding import Follower, kept_counts, numbers, recounted
from tests.support.world import World
from tickets.desk import bulk, changing, commenting, creating
from tickets.desk.changing import TicketState
from tickets.desk.history import History, PastEntry
from tickets.requesters import requesters
from tickets.ticket.fields import Channel, Priority, Status

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)  # a Wednesday
DAY, NEXT = "2026-11-18", "2026-11-19"
At = Callable[..., None]


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> At:
    """`at(hours=3)` makes it three hours past that Wednesday's noon, and every look at the clock a moment later."""

    def move(**past: float) -> None:
        start, ticks = NOON + timedelta(**past), 0

        def now() -> datetime:
            nonlocal ticks
            ticks += 1
            return start + timedelta(microseconds=ticks)

        monkeypatch.setattr(clock, "now", now)

    move()
    return move


def counted(tenant: TenantContext) -> dict[str, int]:
    """The numbers that readers see, which are those of a recount as well."""
    Follower().fold()
    assert kept_counts(tenant) == recounted(tenant)
    return numbers(tenant)


def version(tenant: TenantContext, number: int) -> int:
    return int(changing.read(tenant, number).version)


def test_an_opened_ticket(alice: TenantContext, at: At) -> None:
    creating.create(alice, title="VPN", priority=Priority.HIGH, tags=["vpn"])
    assert counted(alice) == {
        "open.high": 1,
        "unassigned.open": 1,
        "w.2026-11-16": 1,
        "tag open.vpn": 1,
        f"{DAY} created": 1,
        "reported": 1,
        **{f"{place} h.2.12": 1 for place in ("a/2026-11/", "c/2026-11/hand", "t/2026-11/vpn")},
    }


def test_a_ticket_that_came_by_mail(alice: TenantContext, at: At) -> None:
    creating.create(alice, title="VPN", channel=Channel.MAIL)
    assert counted(alice).items() >= {"mail.open": 1, f"{DAY} created": 1, f"{DAY} created.mail": 1}.items()
    at(days=1)
    changing.change_status(alice, 1, to=Status.CLOSED, version=1)
    found = counted(alice)
    assert (found["mail.closed"], found[f"{DAY} created.mail"], "mail.open" in found) == (1, 1, False)


def test_an_answer_that_resolves(alice: TenantContext, bob: TenantContext, at: At) -> None:
    creating.create(alice, title="VPN")
    at(hours=2)
    commenting.comment(bob, 1, body="Restart it.", then=Status.RESOLVED)
    found = counted(alice)
    assert (found["resolved.normal"], "open.normal" in found, "w.2026-11-16" in found) == (1, False, False)
    assert found[f"{DAY} commented"] == found[f"{DAY} resolved"] == 1
    assert (found[f"{DAY} first.n"], found[f"{DAY} done.n"]) == (1, 1)
    assert found[f"{DAY} first.sum"] == found[f"{DAY} done.sum"] == 2 * 3600
    assert found[f"{DAY} first.7200"] == found[f"{DAY} done.7200"] == 1


def test_neither_the_requester_nor_a_note_answers_and_a_note_is_no_comment(
    alice: TenantContext, bob: TenantContext, at: At
) -> None:
    creating.create(alice, title="VPN")
    commenting.comment(alice, 1, body="It still does not work.")
    commenting.comment(bob, 1, body="Strange.", internal=True)
    found = counted(alice)
    assert found[f"{DAY} commented"] == 1
    assert f"{DAY} first.n" not in found
    at(minutes=20)
    commenting.comment(bob, 1, body="Restart it.")
    commenting.comment(bob, 1, body="And again.")
    found = counted(alice)
    assert (found[f"{DAY} commented"], found[f"{DAY} first.n"], found[f"{DAY} first.1800"]) == (3, 1, 1)


def test_nobody_outside_the_desk_answers_and_what_they_write_counts_apart(
    alice: TenantContext, bob: TenantContext, at: At
) -> None:
    jane, joe = (requesters.ensure(alice, address) for address in ("jane@example.org", "joe@example.org"))
    number = creating.create(alice, title="VPN", requester=jane, channel=Channel.MAIL)
    for minutes, person in ((5, jane), (10, joe)):  # the requester, and somebody who reads along
        at(minutes=minutes)
        outside = replace(alice, user_id=person.id, user_name=person.label)
        commenting.comment(outside, number, body="It still does not work.")
    found = counted(alice)
    assert (found[f"{DAY} commented"], found[f"{DAY} received"]) == (2, 2)
    assert f"{DAY} first.n" not in found
    at(minutes=20)
    commenting.comment(alice, number, body="Restart it.")  # by whom the ticket was opened: for Jane
    found = counted(alice)
    assert (found[f"{DAY} commented"], found[f"{DAY} received"]) == (3, 2)
    assert (found[f"{DAY} first.n"], found[f"{DAY} first.sum"]) == (1, 20 * 60)


def test_an_old_history_tells_the_same_of_people_outside(alice: TenantContext, bob: TenantContext, at: At) -> None:
    jane = requesters.ensure(alice, "jane@example.org")
    noon = clock.now()
    comments = [PastEntry("comment", noon, who.id, "Jane", body="Well?") for who in (jane, jane)]
    answer = PastEntry("comment", noon + timedelta(minutes=20), bob.user_id, bob.user_name, body="Restart it.")
    facts = History("", {}, noon, noon, "", "Somebody else", "", (*comments, answer)).facts("UTC")
    assert facts["responded_at"] == clock.stamp(answer.at)
    assert facts["days"] == {f"{DAY}c": 3, f"{DAY}q": 2}


def test_a_ticket_that_is_reopened_and_resolved_again(alice: TenantContext, bob: TenantContext, at: At) -> None:
    creating.create(alice, title="VPN")
    changing.change_status(bob, 1, to=Status.RESOLVED, version=1)
    at(days=1)
    changing.change_status(bob, 1, to=Status.OPEN, version=2)
    found = counted(alice)
    assert (found[f"{DAY} resolved"], found[f"{NEXT} reopened"], found["open.normal"]) == (1, 1, 1)
    assert f"{DAY} done.n" not in found, "a resolution that did not hold has no time to resolve"
    changing.change_status(bob, 1, to=Status.CLOSED, version=3)
    found = counted(alice)
    assert (found[f"{DAY} resolved"], found[f"{NEXT} resolved"], found[f"{NEXT} done.n"]) == (1, 1, 1)
    assert found[f"{NEXT} done.sum"] == 24 * 3600


def test_closing_what_was_resolved_resolves_nothing_again(alice: TenantContext, bob: TenantContext, at: At) -> None:
    creating.create(alice, title="VPN")
    changing.change_status(bob, 1, to=Status.RESOLVED, version=1)
    at(days=1)
    changing.change_status(bob, 1, to=Status.CLOSED, version=2)
    found = counted(alice)
    assert (found["closed.normal"], found[f"{DAY} resolved"], found[f"{DAY} done.n"]) == (1, 1, 1)
    assert f"{NEXT} resolved" not in found


def test_an_edit_of_priority_and_tags(alice: TenantContext, at: At) -> None:
    creating.create(alice, title="VPN", tags=["vpn", "mail"])
    changing.edit(alice, 1, version=1, title="VPN", description="", priority=Priority.URGENT, tags=["mail", "wifi"])
    found = counted(alice)
    assert (found["open.urgent"], found["tag open.mail"], found["tag open.wifi"]) == (1, 1, 1)
    assert not {"open.normal", "tag open.vpn"} & found.keys()
    changing.edit(alice, 1, priority=Priority.LOW, version=2)
    assert counted(alice)["open.low"] == 1


def test_a_ticket_that_goes_from_hand_to_hand(alice: TenantContext, bob: TenantContext, at: At) -> None:
    creating.create(alice, title="VPN")
    changing.assign(alice, 1, to=bob.user_id, version=1)
    assert counted(alice)[f"r.{bob.user_id}.open"] == 1
    changing.assign(alice, 1, to="", version=2)
    found = counted(alice)
    assert found["unassigned.open"] == 1
    assert f"r.{bob.user_id}.open" not in found


def test_many_at_once(alice: TenantContext, bob: TenantContext, world: World, at: At) -> None:
    world.tickets("acme", 5)
    at(days=1)
    bulk.change_status(bob, [TicketState(n, 1, Status.OPEN, "") for n in range(1, 5)], to=Status.CLOSED)
    found = counted(alice)
    assert (found["closed.normal"], found["open.normal"], found[f"{NEXT} resolved"]) == (4, 1, 4)
    bulk.change_status(bob, [TicketState(n, 2, Status.CLOSED, "") for n in (1, 2)], to=Status.OPEN)
    found = counted(alice)
    assert (found["closed.normal"], found["open.normal"], found[f"{NEXT} reopened"]) == (2, 3, 2)
    assert (found[f"{NEXT} resolved"], found[f"{NEXT} done.n"]) == (4, 2)


def test_tenants_are_counted_apart(world: World, at: At) -> None:
    world.tickets("acme", 2)
    world.tickets("globex", 3)
    assert counted(world.context("charlie", "globex"))["open.normal"] == 3
    assert counted(world.context("alice", "acme"))["open.normal"] == 2


def test_an_imported_archive_is_counted_at_its_own_times(alice: TenantContext, tmp_path: Path) -> None:
    closed = {"state": "CLOSED", "closedAt": "2024-03-03T09:00:00Z", "labels": ["bug"]}
    rows = [archives.issue(1, comments=2), archives.issue(2, **closed), archives.issue(3, comments=1, **closed)]
    archives.imported(archives.write(tmp_path / "archive.json", *rows))
    found = counted(alice)
    assert (found["open.normal"], found["closed.normal"], found["tag closed.bug"]) == (1, 2, 2)
    assert (found["2024-03-01 created"], found["2024-03-02 commented"], found["2024-03-03 resolved"]) == (3, 3, 2)
    assert (found["2024-03-03 done.n"], found["2024-03-03 done.sum"]) == (2, 2 * 2 * 86400)
    assert (found["2024-03-02 first.n"], found["w.2024-02-26"]) == (2, 1)


def test_the_demonstration_is_counted(engine: None, settings: LazySettings) -> None:
    settings.DEBUG = True
    ended = commands.run("seed", "--tenants", 1, "--tickets", 40, "--users", 2, "--today", DAY)
    assert ended.status == 0, ended.err
    Follower().fold()
    ended = commands.run("verify_aggregates", "--settle", 0)
    assert (ended.status, "1 tenant, 40 tickets" in ended.out) == (0, True)
