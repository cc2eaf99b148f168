"""The measurements, at a size at which they measure nothing: they run to their end, and sizes cost the same."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings

from benchmarks.__main__ import arguments
from benchmarks.ticket_ranges import BULK, COMMENTS, SMALLEST, Layout

# Twenty seconds of work, but two processors may have other work as well.
pytestmark = pytest.mark.timeout(1800)

PAGES = {"list", "mine", "next", "ticket", "ticket-cold", "new", "comment", "bulk", "dashboard", "chooser"}
PAGES |= {"api-list", "api-ticket", "api-new"}
SEARCHES = {"search", "type-ahead"}  # an index grows with what it holds
PAGES |= SEARCHES


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "--engine", "ministack", *arguments]
    return subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False, timeout=1700)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    path = tmp_path_factory.mktemp("benchmarks") / "report.json"
    done = run("--sizes", "300,310", "--requests", "1", "--concurrency", "2", "--json", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(path.read_text()), done.stdout


def test_every_page_is_counted_timed_and_judged(report: tuple[dict[str, Any], str]) -> None:
    figures, text = report
    assert set(figures["pages"]) == {v["page"] for v in figures["verdicts"]} == PAGES
    tenants = {"bench-300-1", "bench-310-1", "bench-310-4"}
    assert {(c["page"], c["tenant"]) for c in figures["counts"]} == {(p, t) for p in PAGES for t in tenants}
    timed = {(t["page"], t["tenant"], t["concurrency"]) for t in figures["timings"]}
    assert timed == {(p, t, c) for p in PAGES for t in tenants for c in (1, 2)}
    assert all(0 < t["p50"] <= t["p95"] and t["per_second"] > 0 for t in figures["timings"])
    for title in figures["pages"].values():
        assert title in text


def test_a_larger_tenant_costs_the_same(report: tuple[dict[str, Any], str]) -> None:
    counts = {(c["page"], c["tenant"]): c for c in report[0]["counts"]}
    for page in PAGES:
        small, large = (counts[page, t] for t in ("bench-300-1", "bench-310-1"))
        for name in ("trips",) if page in SEARCHES else ("trips", "calls", "items", "read_units", "write_units"):
            assert small[name] == large[name], (page, name)
        assert counts[page, "bench-310-4"]["trips"] == small["trips"]
    assert {v["differs"] for v in report[0]["verdicts"]} == {""}


def test_the_worker_and_a_rebuild_have_figures_of_their_own(report: tuple[dict[str, Any], str]) -> None:
    figures, text = report
    counted, rebuilt, indexed = figures["stream_work"]
    assert counted["number"] == 300 + 310 + 310
    assert 300 <= rebuilt["number"] < 400, "the smallest, and what was opened in it meanwhile"
    assert indexed["number"] == rebuilt["number"]
    assert all(one["per_second"] > 0 and one["title"] in text for one in figures["stream_work"])
    assert all(one["cpu"] > 0 for one in figures["stream_work"])


def test_a_dashboard_is_measured_with_thirty_days_of_counts(report: tuple[dict[str, Any], str]) -> None:
    dashboards = [count for count in report[0]["counts"] if count["page"] == "dashboard"]
    assert all(count["items"] > 30 for count in dashboards)


def test_no_ticket_serves_two_pages() -> None:
    for size in (SMALLEST, 1000, 100_000):
        layout = Layout(size)
        parts = [layout.mine, layout.talked, layout.commented, *layout.groups, layout.others]
        numbers = [n for part in parts for n in part]
        assert numbers == list(range(1, size + 1))
        assert {len(group) for group in layout.groups} == {BULK}
        assert sum(layout.pending(n) for n in layout.others) > 100  # two pages of a list, and one more
        assert len(layout.talked) * COMMENTS <= 2500


def test_a_size_that_has_no_second_page_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        arguments(["--sizes", "50"])
    assert ended.value.code == 2
    assert f"at least {SMALLEST} tickets" in capsys.readouterr().err
