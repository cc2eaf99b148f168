"""A list of the queue as a table: its filters, every row of it, and no cell that does anything."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter
from tests.support.world import World
from tickets.custom_fields.definitions import NOTHING_DEFINED
from tickets.data import exporting
from tickets.desk import changing, creating, lists
from tickets.ticket.fields import Priority, Status

EXPORT = "/tickets/export/"


def table(answer: Any) -> list[list[str]]:
    assert answer.status_code == 200
    return list(csv.reader(io.StringIO(answer.getvalue().decode())))


def test_a_list_is_exported_with_its_filters(world: World) -> None:
    alice = world.context("alice", "acme")
    creating.create(alice, title="Mine, and “urgent”", priority=Priority.URGENT, tags=["a", "b"])
    creating.create(alice, title="Other", tags=["a"])
    changing.assign(alice, 1, to=alice.user_id, version=1)

    browser = world.browser("alice", "acme")
    filters: dict[str, object] = {"status": "any", "resolver": "me", "priority": "urgent", "tag": "a", "name": "Alice"}
    answer = browser.send(EXPORT, filters)

    head, *rows = table(answer)
    assert head == list(exporting.columns(NOTHING_DEFINED))
    (row,) = [dict(zip(head, row, strict=True)) for row in rows]
    told = {"number": "1", "title": "Mine, and “urgent”", "status": "open", "priority": "urgent", "tags": "a, b"}
    told |= {"requester": "Alice Example", "assignee": "Alice Example", "comments": "0"}
    assert row | told == row
    assert answer["Content-Disposition"].startswith('attachment; filename="tickets-acme-')  # type: ignore[index]


def test_the_queues_page_offers_the_export_of_just_what_it_lists(world: World) -> None:
    world.tickets("acme", 1)
    browser = world.browser("vera", "acme")

    page = browser.get("/tickets/?status=unresolved&priority=normal")

    assert page.context["export_params"] == {"status": "unresolved", "priority": "normal"}
    assert "/acme/tickets/export/" in page.content.decode()
    assert len(table(browser.send(EXPORT, page.context["export_params"]))) == 2


def test_every_row_comes_once_and_a_ticket_that_is_changed_meanwhile_comes_last(
    sharded_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = sharded_world
    monkeypatch.setattr(exporting, "_PAGE", 3)
    alice = world.context("alice", "acme")
    numbers = world.tickets("acme", 10)
    rows = exporting.everything(alice, statuses=[Status.OPEN])

    first = next(rows)
    changing.edit(alice, 2, priority=Priority.HIGH, version=1)  # read later, and now before all others
    changing.edit(alice, first.number, priority=Priority.LOW, version=1)  # read before
    others = list(rows)

    assert sorted(row.number for row in [first, *others]) == numbers
    assert (others[-1].number, others[-1].priority) == (2, "high")


def test_a_filter_that_hardly_anything_matches_is_followed_to_the_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = world.context("alice", "acme")
    creating.create(alice, title="Old", tags=["rare"])
    world.tickets("acme", 8)
    monkeypatch.setattr(lists, "READ_LIMIT", 4)
    monkeypatch.setattr(lists, "_FIRST_ROUND", 2)
    monkeypatch.setattr(exporting, "_PAGE", 2)

    browser = world.browser("alice", "acme")
    assert [row[1] for row in table(browser.send(EXPORT, {"tag": "rare"}))[1:]] == ["Old"]


def test_an_export_is_in_the_audit_trail_and_a_title_that_is_a_formula_is_text(world: World) -> None:
    creating.create(world.context("alice", "acme"), title="=HYPERLINK(1)")
    bob = world.browser("bob", "acme")
    assert table(bob.send(EXPORT, {"status": "open"}))[1][1] == "'=HYPERLINK(1)"
    row = browsing.page(world.context("alice", "acme").repository, only=TrailFilter()).rows[0]
    told = (row.action, row.actor, row.entity, row.after)
    assert told == ("export.made", "bob@example.com", "tickets", {"status": "open"})


def test_a_filter_that_means_nothing_is_refused_and_so_is_a_look_at_it(world: World) -> None:
    alice = world.browser("alice", "acme")
    filters = ({"status": "lost"}, {"tag": "a,b"}, {"resolver": "x"}, {"created": "never"})
    answers: list[Any] = [alice.send(EXPORT, wrong) for wrong in filters]
    assert [answer.status_code for answer in answers] == [400] * 4
    assert alice.get(EXPORT).status_code == 405
