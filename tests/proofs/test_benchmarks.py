"""The measurements, at a size at which they measure nothing: they run to their end, and see where sizes differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from benchmarks import fill, measure, memory
from benchmarks.__main__ import arguments
from benchmarks.fill import BULK, COMMENTS, Filled, Layout
from benchmarks.measure import Round
from benchmarks.measured_pages import PAGES
from benchmarks.stack import SMALLEST
from benchmarks.work import ROWS
from portal import clock
from tests.support import quick_benchmarks
from tests.support.world import World

COST = {"trips": 3.0, "calls": 5.0, "items": 50.0, "read_units": 4.0, "write_units": 2.0}
PAGE = {page.name: page for page in PAGES}


@pytest.mark.timeout(1800)  # twenty seconds of work, but two processors may have other work as well
def test_a_small_run_counts_times_and_compares_every_page_and_the_work_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    small = ("--engine=ministack", f"--sizes={SMALLEST}", "--requests=1", "--concurrency=2", f"--json={path}")
    command = [sys.executable, "-m", quick_benchmarks.__name__, *small]
    done = subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False, timeout=1700)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(path.read_text())
    assert report["pages"].keys() == PAGE.keys()
    for one in report["pages"].values():
        assert one["differs"] == [], "a tenant in shards takes as many trips"
        assert (one["trips"] > 0, 0 < one["p50"] <= one["p95"], one["per_second"] > 0) == (True, True, True)
        assert one["p50_of"].keys() == {"310", "310 in 4 shards"}
        assert one["title"] in done.stdout
        assert one["floor_p50"] > 0
    floors = {name: one["floor_trips"] for name, one in report["pages"].items() if name != "bulk"}  # closes, then opens
    assert floors == {name: report["pages"][name]["trips"] for name in floors}, "the same requests, sent again"
    assert report["pages"]["dashboard"]["items"] > 30, "thirty days of counts"
    counted, rebuilt, indexed, imported = (one["number"] for one in report["work"].values())
    assert (counted, imported) == (2 * SMALLEST, ROWS)
    assert SMALLEST <= rebuilt == indexed < SMALLEST + 100, "the smallest, and what was opened in it meanwhile"
    names = [each["name"] for each in report["memory"]]
    assert (set(names), names.count("web")) == ({"web", "engine", "stream worker"}, 2)
    assert all(each["rss"] >= each["pss"] >= memory.SHELL for each in report["memory"])


@pytest.mark.parametrize(
    ("page", "large", "sharded", "said"),
    [
        *(("list", {name: COST[name] + 1}, {}, [name]) for name in ("trips", "calls", "items", "read_units")),
        ("list", {"read_units": COST["read_units"] + measure.READ_ROUNDING}, {}, []),
        ("list", {}, {"trips": 4.0}, ["trips"]),
        ("list", {}, {"calls": 8.0}, []),
        ("search", {"calls": 6.0, "items": 70.0, "read_units": 9.0}, {}, []),
        ("search", {"trips": 4.0}, {}, ["trips"]),
    ],
)
def test_a_page_that_costs_more_in_a_larger_tenant_or_in_shards_is_said(
    page: str, large: dict[str, float], sharded: dict[str, float], said: list[str]
) -> None:
    assert measure.differences(PAGE[page], [COST, COST | large], [COST | sharded]) == said


@pytest.mark.parametrize(
    ("large", "verdict"), [((1, 1), (1.0, "flat")), ((2, 2), (2.0, "grows")), ((1, 2), (1.5, "noisy"))]
)
def test_a_page_is_flat_or_grows_and_noisy_where_the_rounds_disagree(
    large: tuple[int, int], verdict: tuple[float, str]
) -> None:
    small = [Round([0.1], 0.1, 0.0, 0.0)] * 2
    assert measure.growth(small, [Round([0.1 * times], 0.1, 0.0, 0.0) for times in large]) == verdict


def test_what_a_page_shows_is_as_long_in_every_size(world: World) -> None:
    """Else sizes would differ by their texts: lists show the newest tickets, and pages of tickets the first."""
    desk, alice = world.context("alice", "acme"), world.users["alice"]
    small, large = (Filled(f"bench-{size}-1", size, 1, desk, clock.now()) for size in (SMALLEST, 1000))

    def seen(tenant: Filled, number: int) -> tuple[Any, ...]:
        past = fill.history(tenant, alice, number)
        said = tuple((e.kind, e.author_name, e.body.partition("About")[0], e.changes) for e in past.entries)
        return past.values, past.resolver_name, said

    for number in (*small.layout.mine, *small.layout.talked):
        assert seen(small, number)[1:] == seen(large, number)[1:], number
    for rank in range(len(small.layout.others)):
        assert seen(small, small.size - rank) == seen(large, large.size - rank), rank


def test_no_ticket_serves_two_pages() -> None:
    for size in (SMALLEST, 1000, 100_000):
        layout = Layout(size)
        parts = [layout.mine, layout.talked, layout.commented, *layout.groups, layout.others]
        assert [n for part in parts for n in part] == list(range(1, size + 1))
        assert {len(group) for group in layout.groups} == {BULK}
        assert sum(layout.pending(n) for n in layout.others) > 100  # two pages of a list, and one more
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
        arguments(["--sizes", "50"])
    assert ended.value.code == 2
    assert f"at least {SMALLEST} tickets" in capsys.readouterr().err
