"""The measurements, at a size at which they measure nothing: they run to their end, and see where sizes differ."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError
from django.conf import settings

from benchmarks import fill, floor, measure, measured_pages, memory, release, summary
from benchmarks.__main__ import arguments
from benchmarks.fill import Filled
from benchmarks.measure import Count, Round, Timing
from benchmarks.measured_pages import SignedInVisitor
from benchmarks.stream_work import ROWS
from benchmarks.ticket_ranges import BULK, COMMENTS, SMALLEST, Layout
from portal import clock
from tests.support import quick_benchmarks
from tests.support.world import World
from tickets.ticket import stored
from tickets.ticket.stored import TICKETS

# Twenty seconds of work, but two processors may have other work as well.
pytestmark = pytest.mark.timeout(1800)

PAGES = {"list", "mine", "next", "ticket", "ticket-cold", "new", "comment", "bulk", "dashboard", "chooser"}
PAGES |= {"api-list", "api-ticket", "api-new", "form", "requester", "article"}
SEARCHES = {"search", "type-ahead"}  # an index grows with what it holds
PAGES |= SEARCHES


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", quick_benchmarks.__name__, "--engine", "ministack", *arguments]
    return subprocess.run(command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False, timeout=1700)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    path = tmp_path_factory.mktemp("benchmarks") / "report.json"
    done = run("--sizes", "310", "--requests", "1", "--concurrency", "2", "--json", str(path))
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(path.read_text()), done.stdout


def test_every_page_is_counted_timed_and_judged(report: tuple[dict[str, Any], str]) -> None:
    figures, text = report
    assert set(figures["pages"]) == {v["page"] for v in figures["verdicts"]} == PAGES
    tenants = {"bench-310-1", "bench-310-4"}
    assert {(c["page"], c["tenant"]) for c in figures["counts"]} == {(p, t) for p in PAGES for t in tenants}
    timed = {(t["page"], t["tenant"], t["concurrency"]) for t in figures["timings"]}
    assert timed == {(p, t, c) for p in PAGES for t in tenants for c in (1, 2)}
    assert all(0 < t["p50"] <= t["p95"] and t["per_second"] > 0 for t in figures["timings"])
    for title in figures["pages"].values():
        assert title in text
    over_the_list = text.rpartition("over the list")[2]
    assert len(re.findall(r"\| \d+\.\d\d +\| \d+\.\d\d to \d+\.\d\d +\|", over_the_list)) == 3


def test_a_tenant_in_shards_takes_as_many_trips(report: tuple[dict[str, Any], str]) -> None:
    counts = {(c["page"], c["tenant"]): c["trips"] for c in report[0]["counts"]}
    for page in PAGES:
        assert counts[page, "bench-310-4"] == counts[page, "bench-310-1"] > 0, page
    assert {v["differs"] for v in report[0]["verdicts"]} == {""}


ALIKE = Count(trips=3, calls=5, items=50, size=20_000, read_units=4.0, write_units=2.0)


def filled(world: World, size: int, shards: int = 1) -> Filled:
    return Filled(f"bench-{size}-{shards}", size, shards, Layout(size), world.context("alice", "acme"), clock.now())


def differing(world: World, *, large: Count = ALIKE, sharded: Count = ALIKE) -> dict[str, str]:
    """What is said of each page where all of them cost so much in a larger tenant, and in one with shards."""
    costs = {filled(world, 300): ALIKE, filled(world, 1000): large, filled(world, 300, 4): sharded}
    counts = {(page.name, tenant.slug): count for page in measured_pages.PAGES for tenant, count in costs.items()}
    timings = []
    for page in measured_pages.PAGES:
        for tenant in costs:
            visitor = SignedInVisitor(tenant, "", "", "", "", [], 1, "", {})
            timings.append(Timing(page, visitor, 1, [Round((0.1,), 0.1, 0.0, 0.0)]))
    return {verdict.page: verdict.differs for verdict in summary.judge(list(costs), counts, timings)}


def test_a_page_that_costs_more_in_a_larger_tenant_is_said(world: World) -> None:
    assert set(differing(world).values()) == {""}
    for name in ("calls", "items", "read_units", "write_units"):
        dearer = replace(ALIKE, **{name: getattr(ALIKE, name) + 1})
        for page, differs in differing(world, large=dearer).items():
            assert differs == ("" if page in SEARCHES else name), page
    one_more_block = replace(ALIKE, read_units=ALIKE.read_units + summary.READ_ROUNDING)
    assert set(differing(world, large=one_more_block).values()) == {""}


def test_a_page_that_takes_more_trips_in_a_larger_tenant_or_in_shards_is_said(world: World) -> None:
    more = replace(ALIKE, trips=ALIKE.trips + 1)
    assert set(differing(world, large=more).values()) == {"trips"}
    assert set(differing(world, sharded=more).values()) == {"trips"}
    assert set(differing(world, sharded=replace(more, trips=ALIKE.trips, calls=8)).values()) == {""}


@pytest.mark.parametrize(("name", "trips"), [("search", 3), ("list", 4)])
def test_of_a_search_the_look_counts_at_a_process_that_knows_the_index(world: World, name: str, trips: int) -> None:
    page = next(page for page in measured_pages.PAGES if page.name == name)
    looks = iter([4, 4, 3])
    visitor = SimpleNamespace(request=lambda *_: None, tenant=None)

    def send(request: object) -> Any:
        bill = f"dur=1.0, {next(looks)} trips, 5 calls, 9 items, 99 B, 34 RCU, 0 WCU"
        return SimpleNamespace(header=lambda _: bill)

    unchecked = SimpleNamespace(rest=0, grows=page.grows, check=lambda *_: None, title=page.title)
    assert measure.count(send, visitor, unchecked).trips == trips  # type: ignore[arg-type]


def test_what_a_page_shows_is_as_long_in_every_size(world: World) -> None:
    """Else sizes would differ by their texts: lists show the newest tickets, and pages of tickets the first."""
    small, large = filled(world, 310), filled(world, 1000, 4)
    alice = world.users["alice"]

    def seen(tenant: Filled, number: int) -> tuple[Any, ...]:
        past = fill._history(tenant, alice, number)
        said = tuple((e.kind, e.author_name, e.body.partition("About")[0], e.changes) for e in past.entries)
        shown = [past.values[name] for name in ("title", "description", "status", "priority", "tags")]
        return *shown, past.resolver_name, said

    for number in (*small.layout.mine, *small.layout.talked):
        assert seen(small, number)[:2] == seen(large, number)[:2], number
        assert seen(small, number)[-1] == seen(large, number)[-1], number
    for rank in range(len(small.layout.others)):
        assert seen(small, small.size - rank) == seen(large, large.size - rank), rank


def test_the_worker_and_a_rebuild_have_figures_of_their_own(report: tuple[dict[str, Any], str]) -> None:
    figures, text = report
    counted, rebuilt, indexed, imported = figures["stream_work"]
    assert counted["number"] == 310 + 310
    assert 310 <= rebuilt["number"] < 410, "the smallest, and what was opened in it meanwhile"
    assert indexed["number"] == rebuilt["number"]
    assert imported["number"] == ROWS
    assert all(one["per_second"] > 0 and one["title"] in text for one in figures["stream_work"])
    assert all(one["cpu"] > 0 for one in figures["stream_work"])


def test_every_page_is_compared_with_the_last_release_and_with_its_floor(report: tuple[dict[str, Any], str]) -> None:
    figures, text = report
    now = release.figures(figures)
    for name, page in now["pages"].items():
        assert page["floor_p50"] > 0, name
        assert 2 <= figures["floors"][name]["trips"] <= page["trips"], name
        assert page["title"] in text
    ratios = release.as_text(now, release.kept())
    assert ratios in text
    kept = release.kept()["pages"]  # of pages that were measured then
    assert {name for name in kept if set(kept[name]) != set(now["pages"][name])} == set()


def test_a_ratio_is_the_figure_over_that_of_the_release() -> None:
    page = {"title": "list", "p50": 6.0, "floor_p50": 2.0, "trips": 3}
    then = {"p50": 4.0, "floor_p50": 1.0}
    assert release._page(page, then) == ["list", "1.50", "-", "-", "-", "-", "-", "3.00 (4.00)", "- (-)"]


def test_the_memory_of_web_engine_and_worker_is_said(report: tuple[dict[str, Any], str]) -> None:
    names = [each["name"] for each in report[0]["memory"]]
    assert set(names) == {"web", "engine", "stream worker"}
    assert names.count("web") == 1 + 1, "gunicorn, and its worker"
    assert all(each["rss"] >= each["pss"] >= memory.SHELL for each in report[0]["memory"])


def test_the_memory_of_a_process_includes_that_of_its_children() -> None:
    child = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = memory.resident(os.getpid())
        process.communicate()
    assert any("sys.stdin.read" in each.name for each in found[1:])


def test_a_recorded_write_can_be_sent_again(world: World) -> None:
    put = {
        "TableName": TICKETS.full_name,
        "Item": {"pk": {"S": world.context("alice", "acme").repository.key(stored.counter)}, "sk": {"S": "again"}},
        "ConditionExpression": "attribute_not_exists(pk) AND attribute_not_exists(sk)",
    }
    bare = floor.BareClient()
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        bare.replay([[("PutItem", put)]], 2, engine_group=0)
    transaction = {"TransactItems": [{"Put": put}], "ClientRequestToken": "one"}
    assert floor.repeatable(transaction).keys() == {"TransactItems"}
    again = [[("PutItem", floor.repeatable(put))], [("TransactWriteItems", floor.repeatable(transaction))]]
    assert len(bare.replay(again, 3, engine_group=0).seconds) == 3


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
