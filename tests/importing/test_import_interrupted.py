"""An import can be interrupted anywhere, killed too, and run again; and it holds one row at a time in memory."""

from __future__ import annotations

import json
import re
import signal
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from portal.dynamo import meter
from portal.dynamo.store import RawItems
from portal.errors import Unavailable
from tests.support import archives
from tests.support.archives import imported, issue, pull, sound
from tests.support.commands import broken_at, everything, finish, start
from tests.support.kills import Killed, killed_at
from tests.support.waiting import wait_until
from tests.support.world import World
from tickets.data import importer, stored
from tickets.ticket.stored import SUMMARY, TICKETS


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "archive.json"


@pytest.mark.parametrize("moment", ["before", "after"])
def test_an_import_that_ends_at_any_of_its_writes_is_finished_by_the_next(
    world: World, path: Path, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "TRANSACTION_LIMIT", 9)
    monkeypatch.setattr(importer, "AT_ONCE", 1)
    monkeypatch.setattr(importer, "PART", 4)
    monkeypatch.setattr(importer, "BLOCK", 2)
    rows = [issue(1, comments=1), issue(2, comments=10), issue(3)]
    expected = {"issue-000000000001": 1, "issue-000000000002": 10, "issue-000000000003": 0, "pull-000000000004": 0}
    for write in count(1):
        source = f"{moment} {write}"
        archives.write(path, *rows, pulls=(pull(4),), repo=source)
        with broken_at(write, moment, Unavailable("The database cannot be reached.")) as writes:
            ended = imported(path)
        if len(writes) >= write:
            assert (ended.status, "Check DYNAMODB_ENDPOINT_URL" in ended.err) == (1, True)
            sound(world)
            ended = imported(path)
        assert ended.status == 0, ended.err
        assert {row: comments for row, (_, comments) in sound(world, source).items()} == expected
        if len(writes) < write:
            # The name of the archive, two blocks of numbers, a row at one stroke, one with a claim, three batches and
            # an end, and two more rows at one stroke.
            assert len(writes) == 10
            return


def test_a_large_row_that_changed_while_it_was_half_imported_leaves_nothing_behind(
    world: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archives.write(path, issue(7, comments=150))
    with broken_at(6, "after", KeyboardInterrupt()):
        assert imported(path).status == 130

    archives.write(path, issue(7, comments=120, title="Shorter now"))
    assert imported(path).status == 0
    assert sound(world) == {"issue-000000000007": (2, 120)}


def test_ctrl_c_gives_back_the_numbers_that_were_not_used(world: World, path: Path) -> None:
    archives.write(path, *(issue(i) for i in range(1, 6)))
    with broken_at(3, "after", KeyboardInterrupt()):  # the rows, behind the name of the archive and their numbers
        ended = imported(path)

    assert (ended.status, ended.err) == (130, "What was imported stays; run it again to continue.")
    assert world.tickets("acme", 1) == [6]


def test_an_import_that_is_stopped_or_killed_is_finished_by_the_next(
    world: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C, SIGTERM and a kill; each run goes on where the one before was ended."""
    total, many = 60, 2000
    archives.write(path, *(issue(i, comments=i % 3) for i in range(1, many)))
    for number in (signal.SIGINT, signal.SIGTERM):
        already = taken(world)
        process = start("import_archive", path, "--tenant", "acme")
        # It is at work by then, and hears signals.
        wait_for(lambda already=already: taken(world) > already, process)
        process.send_signal(number)
        ended = finish(process)
        assert (number, ended.status) == (number, 130)
        assert ended.err == "Stopped: What was imported stays; run it again to continue.\n"
        assert re.search(r"\brows? read in\b", ended.out)

    rows = {f"issue-{i:012d}" for i in (*range(1, total), many)}
    archives.write(path, issue(many, comments=250), *(issue(i, comments=i % 3) for i in range(1, total)))
    with pytest.raises(Killed), killed_at(monkeypatch, 5, writes_only=True):  # in the midst of the large one
        imported(path)
    assert not rows <= {*sound(world)}
    assert imported(path).status == 0
    done = sound(world)
    assert rows <= {*done}
    assert done[f"issue-{many:012d}"][1] == 250
    assert f"{total} unchanged" in imported(path).out


def test_two_imports_at_the_same_time_make_no_ticket_twice(world: World, path: Path) -> None:
    archives.write(path, *(issue(i) for i in range(1, 60)), issue(60, comments=150))
    with ThreadPoolExecutor(2) as both:
        ended = [*both.map(imported, [path] * 2)]

    assert {e.status for e in ended} <= {0, 3}, ended
    assert imported(path).status == 0
    assert len(sound(world)) == 60
    assert sum(item["sk"]["S"] == SUMMARY for item in everything()) == 60


def test_rows_share_a_transaction_and_one_that_another_import_has_written_is_refused_alone(
    world: World, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = importer.write

    def second_row_first(tenant: Any, rows: Any) -> Any:
        write(tenant, rows[1:2])
        return write(tenant, rows)

    archives.write(path, *(issue(i) for i in range(1, 26)))
    with meter.measure() as bill:
        assert imported(path).status == 0
    writes = [call.operation for call in bill.calls if "Write" in call.operation]
    assert writes == ["TransactWriteItems"] * 2  # the rows, and the numbers that were not used

    monkeypatch.setattr(importer, "write", second_row_first)
    ended = imported(archives.write(path, *(issue(i) for i in range(26, 36))))
    assert (ended.status, ended.err.count("It was left out")) == (3, 1)
    assert "Issue 27 is being imported by somebody else at this moment. It was left out." in ended.err
    assert len(sound(world)) == 35


def taken(world: World) -> int:
    """The rows that are known, by one cheap Query: looking on must not slow the import down."""
    repository = world.context("alice", "acme").repository
    return len(repository.query(RawItems(TICKETS), stored.import_source, "example/project").items)


def wait_for(condition: Any, process: Any) -> None:
    wait_until(lambda: condition() or process.poll() is not None)


# --- memory ---


def test_memory_is_bounded_by_a_row_not_by_the_file(world: World, path: Path) -> None:
    archives.write(path, issue(1))
    peak(path)  # what is loaded by the first is nothing of a file's
    small = peak(path)
    large = peak(_large(path, rows=600))

    size = path.stat().st_size
    assert size > 4_000_000
    assert large < small + size / 3


def _large(path: Path, *, rows: int) -> Path:
    with path.open("w") as file:
        file.write('{"repo": "large", "issues": [')
        for number in range(1, rows + 1):
            file.write(("," if number > 1 else "") + json.dumps(issue(number, body="x" * 9000, comments=1)))
        file.write('], "pulls": []}')
    return path


def peak(path: Path) -> int:
    """Bytes that a dry run takes at most. What a system says of a process counts what its parent had, too."""
    tracemalloc.start()
    try:
        assert imported(path, "--dry-run").status == 0
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
