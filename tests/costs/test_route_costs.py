"""Operators see what the requests of each route cost, by day and release, and hear of a route that got dearer."""

from __future__ import annotations

import json
import logging
import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.conf import LazySettings

from portal import clock
from portal.dynamo import meter
from portal.dynamo.meter import Call, Meter
from portal.dynamo.platform import PLATFORM
from portal.load import measurement, reporting, route_costs, spending
from portal.load.route_costs import READS, TRIPS, WRITES, RouteCosts, RouteDay
from portal.load.spending import CostBatch
from portal.version_number import VERSION
from tenants.lifecycle.stored import CERTIFICATES, CertificateItem
from tests.support.noise import telling
from tests.support.operators import Operator, calls, make_operator, text_of
from tests.support.world import World

PAGE = "/admin/route-costs/"
QUEUE = "GET /<slug:desk>/tickets/"


def bill(reads: float, writes: float = 0, trips: int = 2) -> Meter:
    return Meter(calls=[Call("Query", "P.Support.Tickets", None, 1, 1, reads, writes, 0.0)], trips=trips)


def served(route: str, reads: list[float], *, release: str = VERSION, days_ago: int = 0, writes: float = 0) -> None:
    """A process of a release answered requests that used so many read units each."""
    at = (clock.now() - timedelta(days=days_ago)).timestamp()
    counted = RouteCosts(clock=lambda: at, release=release)
    for one in reads:
        counted.note(route, bill(one, writes))
    assert counted.write_due(last=True) == 1


def found() -> list[RouteDay]:
    return route_costs.read(route_costs.latest(clock.now()))


def test_percentiles_are_those_of_all_requests_of_all_processes(world: World) -> None:
    rng = random.Random(7)  # noqa: S311  # it has to be repeatable
    numbers = [round(rng.expovariate(1 / 30) * 2) / 2 for _ in range(999)]
    for part in (numbers[:400], numbers[400:]):
        served(QUEUE, part, writes=4)
    (row,) = found()
    for percent, place in ((50, 499), (99, 989)):
        assert row.percentile(READS, percent) == pytest.approx(sorted(numbers)[place], rel=0.025)
    assert (row.requests, row.percentile(WRITES, 99), row.percentile(TRIPS, 50)) == (999, 4, 2)
    assert RouteDay("", "").percentile(READS, 50) == 0


@pytest.mark.parametrize(
    ("number", "kept"), [(0, 0), (3.5, 3.5), (19.5, 19.5), (20.5, 20), (23.6, 24), (104, 100), (1234.5, 1200)]
)
def test_numbers_are_kept_exactly_or_with_two_digits(number: float, kept: float) -> None:
    assert route_costs.rounded(number) == kept


def test_requests_over_http_are_counted_by_route_and_method(world: World, settings: LazySettings) -> None:
    browser = world.browser("alice", "acme")
    with telling(settings), meter.measure():
        for path in ("/tickets/", "/tickets/", "/tickets/?status=solved", "/nowhere/"):
            browser.get(path)
    (row,) = [one for one in found() if one.route == QUEUE]
    assert (row.requests, row.release, row.day) == (3, VERSION, spending.day_of(clock.now()))
    assert row.percentile(READS, 50) >= 3.5
    assert not [one for one in found() if "?" in one.route]


def test_a_process_writes_a_row_early_and_seldom(world: World) -> None:
    counted, many, shown = RouteCosts(), 3 * route_costs.WRITTEN, 0
    with meter.measure() as spent:
        for served_now in range(1, many + 1):
            counted.note(QUEUE, bill(6))
            shown += counted.write_due() and served_now - shown
            assert served_now // 4 <= shown, "a quarter of what was served is always written"
    assert len(spent.calls) == spent.write_units <= many / route_costs.WRITTEN + 6


_HUNDRED = [6.0] * 100


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (_HUNDRED, [8.0] * 100, ["median of read units 8", "99th percentile of read units 8"]),
        (_HUNDRED, [7.0] * 100, []),  # no fifth
        ([1.0] * 100, [1.5] * 100, []),  # no unit
        (_HUNDRED, [6.0] * 97 + [30.0] * 3, ["99th percentile of read units 30"]),
        (_HUNDRED, [3.0] * 100, []),
        (_HUNDRED[1:], [8.0] * 100, []),  # too few requests
        (_HUNDRED, [8.0] * 99, []),
    ],
)
def test_a_route_is_dearer_from_a_fifth_and_a_unit_on(
    world: World, before: list[float], now: list[float], said: list[str]
) -> None:
    served(QUEUE, before, release="1.1.0", days_ago=3)
    served(QUEUE, now)
    served("GET /other/", [50.0] * 200)
    served("GET /gone/", [1.0] * 200, release="1.1.0", days_ago=3)
    heard = [str(one) for one in route_costs.dearer(found())]
    assert len(heard) == len(said)
    assert all(any(words in one for one in heard) for words in said)
    assert all("6 in 1.1.0" in one and QUEUE in one for one in heard)


def test_this_release_is_compared_with_the_latest_one_before_it(world: World) -> None:
    served(QUEUE, [20.0] * 100, release="1.0.0", days_ago=9)
    served(QUEUE, _HUNDRED, release="1.1.0", days_ago=1)
    served(QUEUE, _HUNDRED, release="1.1.0")  # on the day of the deployment both serve
    served(QUEUE, [9.0] * 100)
    assert {(one.former, one.before) for one in route_costs.dearer(found())} == {("1.1.0", 6)}


def test_a_dearer_route_is_in_the_log_the_metric_and_on_the_operators_front_page(
    world: World, settings: LazySettings, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    make_operator()
    root = Operator.signed_in()
    assert "This release costs more" not in text_of(root.get("/admin/"))
    served(QUEUE, _HUNDRED, release="1.1.0", days_ago=1)
    settings.CLOUDWATCH_METRICS = True
    with telling(settings), caplog.at_level(logging.WARNING, "pooldesk.costs"):
        for _ in range(2):
            for _ in range(route_costs.WRITTEN):
                measurement.answered(QUEUE, 200, 1.0, bill(9))
            reporting.turn()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "DearerRoutes" in line]
    assert [line["DearerRoutes"] for line in lines] == [2], "once an hour at most"
    assert "median of read units 9 in" in caplog.text
    front = text_of(root.get("/admin/"))
    assert f"This release costs more: {QUEUE}" in front
    assert "99th percentile of read units 9" in text_of(root.get(PAGE))


def test_the_page_shows_each_route_with_its_numbers_of_a_week_ago(world: World) -> None:
    make_operator()
    root = Operator.signed_in()
    empty = text_of(root.get(PAGE))
    assert "A route is here two minutes after its first request." in empty
    assert "Nothing can be compared yet" in empty
    served(QUEUE, [6.0] * 98 + [41.0] * 2, days_ago=8, writes=1)
    served(QUEUE, [7.0] * 98 + [50.0] * 2)
    row = "200 7 / 50 was 6 / 41 0 / 0 was 1 / 1 2 / 2 $0.88 / $6.25 was $1.38 / $5.75 at most $6.25"
    assert f"{QUEUE} {row}" in text_of(root.get(PAGE))
    with calls() as made:
        root.get(PAGE)
    assert [call.operation for call in made].count("Query") == route_costs.COMPARED_DAYS


def test_the_page_finds_routes_and_the_one_whose_single_requests_cost_most(world: World) -> None:
    make_operator()
    root = Operator.signed_in()
    served(QUEUE, [6.0] * 1055)
    served("GET /rare/", [90.0])

    def order(query: str = "") -> list[str]:
        return [row["route"] for row in root.get(PAGE + query).context["rows"]]

    assert (order(), order("?order=each")) == ([QUEUE, "GET /rare/"], ["GET /rare/", QUEUE])
    assert (order("?q=Tickets"), order("?q=nowhere")) == ([QUEUE], [])
    assert "1,055" in text_of(root.get(PAGE))


@pytest.fixture
def november(world: World, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """A day of November, on the day before which two desks, a deleted one and the platform have spent something."""
    make_operator()
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 11, 20, 12, tzinfo=UTC))
    spent = {world.tenants["acme"].tenant_id: 1e6, world.tenants["globex"].tenant_id: 2e6, "d" * 32: 4e6, "": 3e6}
    for tenant_id, units in spent.items():
        spending.write(CostBatch(tenant_id, "2026-11-19", Counter({"w:Support.Tickets": units})), "platform")  # type: ignore[dict-item]
    at = "2026-11-20T10:00:00Z"
    gone = CertificateItem(CERTIFICATES, "1", tenant_id="d" * 32, title="Gone", created_at=at, content="{}", digest="0")
    PLATFORM.put(gone)
    return Operator.signed_in()


def test_all_desks_and_the_platform_together_are_all_that_was_written_down(november: Operator) -> None:
    page = text_of(november.get("/admin/costs/"))
    for row in (
        "acme 0 0 1,000,000 0 $0.625000 $0.625000 10.0%",
        "globex 0 0 2,000,000 0 $1.250000 $1.250000 20.0%",
        "These desks 0 0 3,000,000 0 $1.875000 $1.875000 30.0%",
        "Deleted desks 0 0 4,000,000 0 $2.500000 $2.500000 40.0%",
        "The platform \N{EN DASH} 0 3,000,000 0 $1.875000 $1.875000 30.0%",
        "Together 0 0 10,000,000 0 $6.250000 $6.250000 100.0%",
    ):
        assert row in page
    names = [row["name"] for row in november.get("/admin/costs/?order=cost").context["rows"]]
    assert names == ["globex", "acme"]
    lines = november.get("/admin/costs/?file=1").getvalue().decode().splitlines()
    assert [line.split(",")[0] for line in lines] == ["Desk", "acme", "globex", "Deleted desks", "The platform"]
    assert sum(float(line.split(",")[6]) for line in lines[1:]) == 6.25


def test_a_page_of_desks_says_that_it_is_one_and_the_file_has_all(
    november: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tickets.admin.cost_pages.DESKS", 1)
    first = text_of(november.get("/admin/costs/"))
    assert "globex" not in first
    assert "These are some of the desks" in first
    second = text_of(november.get("/admin/costs/?month=2026-11&after=acme"))
    assert "globex 0 0 2,000,000" in second
    assert "Next page" not in second
    assert len(november.get("/admin/costs/?file=1").getvalue().splitlines()) == 5


def test_a_desks_features_are_shown_by_its_name_and_storage_is_in_no_comparison(
    november: Operator, world: World
) -> None:
    acme = world.tenants["acme"].tenant_id
    sizes = {"stored_bytes": 2**30, "file_bytes": 0}
    spending.write(CostBatch(acme, "2026-11-20", Counter({"r:Support.Search": 8e6}), sizes=sizes), "platform")  # type: ignore[dict-item]
    page = november.get("/admin/costs/", {"of": acme})
    assert "By feature: acme" in text_of(page)
    assert [(row["title"], row["dollars"]) for row in page.context["features"]] == [
        ("Search", "$1.000000"), ("Tickets", "$0.625000"),
    ]  # fmt: skip
    first, second = page.context["rows"]
    assert (first["use"], second["storage"]) == ("$1.625000", "not measured")
    assert first["storage"].startswith("$")


def test_operators_alone_see_what_desks_cost_and_a_wrong_month_says_so(november: Operator, world: World) -> None:
    for wrong in ("2026-13", "2027-01", "x"):
        assert 'role="alert"' in november.get(f"/admin/costs/?month={wrong}").content.decode()
    assert world.browser("alice", "acme").get("/admin/costs/").status_code == 403
