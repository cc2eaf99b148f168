"""Where `torture_stream` is refused, and what it deletes with. A small one runs in test_torture_on_engines.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import LazySettings

from portal.errors import Forbidden
from proofs import cleanup
from proofs.counting import journal
from tests.support import commands
from tests.support.world import World
from tickets.ticket import keys


def test_it_is_refused_in_production(engine: None) -> None:
    ended = commands.run("torture_stream", "--events", 1)
    assert (ended.status, "DEBUG=1" in ended.err) == (1, True)


def test_what_it_deletes_with_works_nowhere_but_on_a_local_engine(engine: None, settings: LazySettings) -> None:
    with pytest.raises(Forbidden):
        cleanup.delete_summary("a" * 32, 1)
    settings.DEBUG = True
    cleanup.delete_summary("a" * 32, 1)
    settings.DYNAMODB_ENDPOINT_URL = ""
    with pytest.raises(Forbidden):
        cleanup.delete_summary("a" * 32, 1)


def test_it_deletes_the_whole_of_a_ticket_and_no_other(world: World, settings: LazySettings) -> None:
    settings.DEBUG = True
    world.tickets("acme", 12)
    acme = world.tenants["acme"].tenant_id
    assert cleanup.delete_tickets(acme, [1, 2]) == 6  # summary, detail and first event of each
    left = {raw["pk"]["S"] for raw in commands.everything() if raw["sk"]["S"] == keys.SUMMARY}
    assert left == {keys.ticket(acme, n) for n in range(3, 13)}


def test_what_a_killed_process_told_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "told.jsonl"
    journal.Journal(str(path)).write(events=1)
    journal.Journal(str(path)).write(events=2)
    assert [line["events"] for line in journal.lines(path)] == [1, 2]
    assert list(journal.lines(tmp_path / "nobody.jsonl")) == []
