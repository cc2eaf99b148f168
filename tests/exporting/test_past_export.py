"""Exporting the tickets of one desk as they were at a moment: what was exported then is what is exported of then."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portal import clock
from tenants.audit_trail import browsing
from tenants.audit_trail.browsing import TrailFilter
from tenants.tenancy.context import Role
from tests.support.commands import everything, run
from tests.support.world import World
from tickets.desk import changing, commenting, creating
from tickets.desk.changing import Wishes
from tickets.ticket import stored
from tickets.ticket.fields import Priority, Status
from tickets.ticket.stored import ActivityItem


def exported(path: Path, *options: str) -> list[dict[str, Any]]:
    ended = run("export_tickets", "--tenant", "acme", "--output", path, *options)
    assert ended.status == 0, ended.err
    return [json.loads(line) for line in path.read_text().splitlines()]


def busy_with_pauses(world: World, path: Path) -> dict[str, list[dict[str, Any]]]:
    """What an export said after each of many acts, by the moment."""
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    said: dict[str, list[dict[str, Any]]] = {}
    acts: list[Callable[[], object]] = [
        lambda: creating.create(alice, title="Größe", description="It *broke*.", priority=Priority.HIGH, tags=["a"]),
        lambda: commenting.comment(bob, 1, body="An answer."),
        lambda: commenting.comment(bob, 1, body="Between us.", internal=True),
        lambda: changing.assign(alice, 1, to=bob.user_id, version=1),
        lambda: creating.create(bob, title="Second"),
        lambda: changing.edit(
            bob, 1, version=2, title="Renamed", description="Longer.", priority=Priority.URGENT, tags=["b"]
        ),
        lambda: commenting.comment(alice, 1, body="Done.", then=Status.RESOLVED),
        lambda: changing.change_status(alice, 1, to=Status.OPEN, version=4),
        lambda: changing.assign(alice, 1, to="", version=5),
        lambda: changing.change(alice, 2, Wishes(status=Status.CLOSED)),
        lambda: commenting.comment(bob, 2, body="Late."),
    ]
    for act in acts:
        act()
        said[clock.stamp()] = exported(path)
        time.sleep(0.002)  # so that no entry has the moment of the one before
    return said


def test_at_each_moment_the_export_is_what_was_exported_then(world: World, tmp_path: Path) -> None:
    said = busy_with_pauses(world, tmp_path / "acme.jsonl")
    for moment, lines in said.items():
        assert exported(tmp_path / "then.jsonl", "--at", moment) == lines, moment
    assert exported(tmp_path / "before.jsonl", "--at", "2020-01-01T00:00:00") == []


def test_a_past_export_is_imported_like_any_other_and_changes_nothing_of_the_desk_or_of_others(
    world: World, tmp_path: Path
) -> None:
    moment, lines = list(busy_with_pauses(world, tmp_path / "acme.jsonl").items())[6]
    world.join("bob", "globex", Role.AGENT)

    def tickets_of(slug: str) -> list[dict[str, Any]]:
        tenant_id = world.tenants[slug].tenant_id
        return [item for item in everything() if item["pk"]["S"].startswith(tenant_id)]

    before = [tickets_of("acme"), tickets_of("globex")]
    exported(tmp_path / "then.jsonl", "--at", moment)
    assert [tickets_of("acme"), tickets_of("globex")] == before
    ended = run("import_archive", tmp_path / "then.jsonl", "--tenant", "globex")
    assert (ended.status, ended.err) == (0, "")
    there = tmp_path / "globex.jsonl"
    assert run("export_tickets", "--tenant", "globex", "--output", there).status == 0
    assert [json.loads(line) | {"desk": "acme"} for line in there.read_text().splitlines()] == lines


def test_what_the_history_does_not_hold_is_named_and_is_as_it_is_today(world: World, tmp_path: Path) -> None:
    alice = world.context("alice", "acme")
    creating.create(alice, title="One", description="Of then.")
    moment = clock.stamp()
    changing.edit(alice, 1, version=1, title="Two", description="Of now.", priority=Priority.LOW, tags=[])
    _, _, *entries = alice.repository.query_all(stored.TICKET_ITEMS, stored.ticket, 1, descending=True)
    (edited,) = [one for one in entries if isinstance(one, ActivityItem) and one.former_description]
    # As versions wrote it that kept the length of the text alone.
    alice.repository.update(edited, [ActivityItem.former_description.remove()])

    ended = run("export_tickets", "--tenant", "acme", "--at", moment)

    told = json.loads(ended.out)
    assert (told["title"], told["description"], told["not_kept"]) == ("One", "Of now.", ["description"])
    assert "The history of 1 ticket does not hold the description of that moment" in ended.err


def test_the_trail_says_of_which_moment_an_export_was(world: World) -> None:
    world.tickets("acme", 1)
    assert run("export_tickets", "--tenant", "acme", "--at", "2026-01-02T03:04:05").status == 0
    row = browsing.page(world.context("alice", "acme").repository, only=TrailFilter()).rows[0]
    assert (row.action, row.entity) == ("export.made", "tickets as of 2026-01-02T03:04:05.999999Z")


@pytest.mark.parametrize("moment", ["yesterday", "2999-01-01T00:00:00"])
def test_a_moment_that_cannot_be_is_refused_before_anything_is_written(world: World, moment: str) -> None:
    ended = run("export_tickets", "--tenant", "acme", "--at", moment)
    assert (ended.status, ended.out) == (1, "")
