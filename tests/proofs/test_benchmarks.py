"""The measurements, at a size at which they measure nothing: they run to their end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from benchmarks import fill, memory
from benchmarks.__main__ import arguments
from benchmarks.fill import BULK, COMMENTS, Filled
from benchmarks.measured_pages import PAGES
from benchmarks.stack import SMALLEST
from portal import clock
from tests.support import quick_benchmarks
from tests.support.world import World

PAGE = {page.name: page for page in PAGES}


@pytest.mark.timeout(1800)  # twenty seconds of work, but two processors may have other work as well
def test_a_small_run_counts_times_and_compares_every_page_and_the_work_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    small = ("--engine=ministack", f"--tickets={SMALLEST}", "--requests=1", "--concurrency=2", f"--json={path}")
    command = [sys.executable, "-m", quick_benchmarks.__name__, *small]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False, timeout=1700)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(path.read_text())
    assert report["pages"].keys() == PAGE.keys()
    for one in report["pages"].values():
        assert (one["trips"] > 0, 0 < one["p50"] <= one["p95"], one["per_second"] > 0) == (True, True, True)
        assert one["title"] in done.stdout
        assert one["floor_p50"] > 0
    floors = {name: one["floor_trips"] for name, one in report["pages"].items() if name != "bulk"}  # closes, then opens
    assert floors == {name: report["pages"][name]["trips"] for name in floors}, "the same requests, sent again"
    assert report["pages"]["dashboard"]["items"] > 30, "thirty days of counts"
    counted, rebuilt, indexed = (one["number"] for one in report["work"].values())
    assert counted == SMALLEST
    assert SMALLEST <= rebuilt == indexed < SMALLEST + 100, "and what was opened meanwhile"
    names = [each["name"] for each in report["memory"]]
    assert (set(names), names.count("web")) == ({"web", "engine", "stream worker"}, 2)
    assert all(each["rss"] >= each["pss"] >= memory.SHELL for each in report["memory"])


def test_what_a_page_shows_is_as_long_in_every_size(world: World) -> None:
    """Else sizes would differ by their texts: lists show the newest tickets, and pages of tickets the first."""
    desk, alice = world.context("alice", "acme"), world.users["alice"]
    small, large = (Filled(size, desk, clock.now()) for size in (SMALLEST, 1000))

    def seen(tenant: Filled, number: int) -> tuple[Any, ...]:
        past = fill.history(tenant, alice, number)
        said = tuple((e.kind, e.author_name, e.body.partition("About")[0], e.changes) for e in past.entries)
        return past.values, past.resolver_name, said

    for number in (*small.mine, *small.talked):
        assert seen(small, number)[1:] == seen(large, number)[1:], number
    for rank in range(len(small.others)):
        assert seen(small, small.size - rank) == seen(large, large.size - rank), rank


def test_no_ticket_serves_two_pages(world: World) -> None:
    for size in (SMALLEST, 1000, 100_000):
        layout = Filled(size, world.context("alice", "acme"), clock.now())
        parts = [layout.mine, layout.talked, layout.commented, *layout.groups, layout.others]
        assert [n for part in parts for n in part] == list(range(1, size + 1))
        assert {len(group) for group in layout.groups} == {BULK}
        assert sum(layout.is_pending(n) for n in layout.others) > 100  # two pages of a list, and one more
        assert len(layout.talked) * COMMENTS <= 2500


def test_the_memory_of_a_process_includes_that_of_its_children() -> None:
    child = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = memory.resident(os.getpid())
        process.communicate()
    assert any("sys.stdin.read" in each.name for each in found[1:])


def test_a_size_that_has_no_second_page_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments(["--tickets", "50"])
    assert ended.value.code == 2
    assert f"must be {SMALLEST} or more" in capsys.readouterr().err
