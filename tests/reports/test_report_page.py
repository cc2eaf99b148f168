"""The report of a month: from tickets through the stream to the page and the file, what it costs, and who sees it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from datetime import datetime
from typing import Any

import pytest

from portal import clock
from tests.dashboards.test_dashboard import drill_downs
from tests.desk.test_cost import IDENTITY, spent
from tests.support import folding
from tests.support.folding import Follower, plant_all
from tests.support.world import Browser, World
from tickets.counting.contributions import MONTH, Part
from tickets.counting.months import MonthPlace, MonthScope
from tickets.desk import changing, commenting, creating
from tickets.reports import report as reports
from tickets.ticket.fields import Channel, Status

PAGE = "/tickets/reports/"
OCTOBER = "2026-10"
DAYS = "2026-10-01..2026-10-31"


@pytest.fixture
def desk(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """Four tickets of Acme of October: two of Bob's, one of them answered and resolved in November; and one of
    September that was answered in October."""
    alice, bob = world.context("alice", "acme"), world.context("bob", "acme")
    now = datetime.fromisoformat("2026-09-30T10:00:00+00:00")
    monkeypatch.setattr(clock, "now", lambda: now)
    creating.create(alice, title="Old", channel=Channel.MAIL)
    now = datetime.fromisoformat("2026-10-06T09:30:00+00:00")  # a Tuesday
    commenting.comment(bob, 1, body="Looking.")
    for tags in (["vpn"], ["vpn", "=1+1"], []):
        creating.create(alice, title="VPN", tags=tags, channel=Channel.MAIL if tags else Channel.HAND)
    creating.create(alice, title="Late", resolver=bob.user_id)
    changing.assign(bob, 2, to=bob.user_id, version=1)
    now = datetime.fromisoformat("2026-11-02T09:30:00+00:00")
    commenting.comment(bob, 2, body="Done.", then=Status.RESOLVED)
    Follower().fold()
    return world


@pytest.fixture
def owner(desk: World) -> Browser:
    return desk.browser("alice", "acme")


def page(browser: Browser, **query: str) -> Any:
    response = browser.get(PAGE, query)
    assert response.status_code == 200
    return response


def rows(answer: Any, of: str = "rows") -> dict[str, tuple[int, ...]]:
    """What each line says of opened, unresolved, answered and resolved tickets."""
    return {
        row.name: (row.created.count, row.unresolved.count, row.answered.count, row.resolved.count)
        for row in answer.context[of]
    }


def test_events_count_in_the_month_in_which_they_happened(owner: Browser) -> None:
    trend = rows(page(owner, month="2026-11"), "trend")
    assert trend["November 2026"] == (0, 0, 1, 1)
    assert trend["October 2026"] == (4, 3, 1, 0)
    assert trend["September 2026"] == (1, 1, 0, 0)
    assert len(trend) == 12


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("tag", {"vpn": (2, 1, 0, 0), "=1+1": (1, 1, 0, 0)}),
        ("assignee", {"Bob Example": (2, 1, 0, 0), "Unassigned": (2, 2, 1, 0)}),
        ("channel", {"Mail": (2, 1, 1, 0), "By hand": (2, 2, 0, 0)}),
        ("group", {}),
    ],
)
def test_a_month_is_told_by_each_scope(owner: Browser, by: str, expected: dict[str, tuple[int, ...]]) -> None:
    assert rows(page(owner, month=OCTOBER, by=by)) == expected


def test_no_two_columns_of_a_table_have_one_name(owner: Browser) -> None:
    tables = re.findall(r"<thead>.*?</thead>", page(owner, by="tag", month="2026-10").content.decode(), re.DOTALL)
    assert tables
    for heads in tables:
        names = re.findall(r"<th[^>]*>(.+?)</th>", heads)
        assert len(names) == len({*names}), names


def test_of_one_value_all_months_are_told(owner: Browser) -> None:
    answer = page(owner, month="2026-11", by="tag", value="vpn")
    trend = rows(answer, "trend")
    assert (trend["November 2026"], trend["October 2026"]) == ((0, 0, 1, 1), (2, 1, 0, 0))
    assert "vpn" in answer.content.decode()


def test_hours_are_those_of_the_desk_by_weekday(owner: Browser) -> None:
    answer = page(owner, month=OCTOBER)
    tuesday = next(day for day in answer.context["hours"] if day["name"] == "Tuesday")
    assert [one.count for one in tuesday["hours"]] == [4 if hour == 9 else 0 for hour in range(24)]
    assert answer.context["busiest"] == "Busiest: Tuesday from 9:00 to 10:00, with 4 of 4 tickets."


@pytest.mark.parametrize(
    "query", [{}, {"by": "assignee"}, {"by": "channel"}, {"by": "tag"}, {"by": "tag", "value": "vpn"}]
)
def test_every_number_leads_to_a_list_of_that_many_tickets(owner: Browser, query: dict[str, str]) -> None:
    html = page(owner, month=OCTOBER, **query).content.decode()
    found = [(count, url) for count, url in drill_downs(html) if not url.startswith("#")]
    assert len(found) > 3
    for count, url in dict.fromkeys(found):
        assert len(owner.get(url).context["page"]["rows"]) == count, url
    assert 'id="about-first"' in html, "where the numbers of first answers lead"


def test_the_page_says_how_many_tickets_are_not_counted_yet(desk: World, owner: Browser) -> None:
    folding.plant(desk.context("alice", "acme"), "TOTALS", open_normal=3)
    assert "3 of 8 tickets are not in the reports yet" in page(owner, month=OCTOBER).content.decode()


def test_a_month_that_is_none_is_told_at_its_field_and_kept(owner: Browser) -> None:
    answer = owner.get(PAGE, {"month": "soon", "by": "tag"})
    assert answer.status_code == 400
    html = answer.content.decode()
    assert "Write a month as 2026-11." in html
    assert 'value="soon"' in html
    assert '<option value="tag" selected>' in html


@pytest.mark.parametrize("month", ["0000-13", "0000-01", "0001-01", "9999-12", "\u0662\u0660\u0662\u0666-11", "2026-1"])
def test_a_month_that_no_calendar_has_is_refused_on_the_page_and_as_a_file(owner: Browser, month: str) -> None:
    for path in (PAGE, f"{PAGE}file/"):
        answer = owner.get(path, {"month": month, "by": "tag", "value": "vpn"})
        assert (answer.status_code, "Write a month as 2026-11." in answer.content.decode()) == (400, True)


@pytest.mark.parametrize("value", ["%(name)s", "a/b", "<b>", "\x00", "\U0001f600" * 200])
def test_a_value_that_no_ticket_has_is_an_empty_report(owner: Browser, value: str) -> None:
    for by in ("group", "assignee", "channel", "tag"):
        for name in ("value", "after"):
            html = page(owner, month=OCTOBER, by=by, **{name: value}).content.decode()
            assert value != "<b>" or "&lt;b&gt;" in html or by in ("group", "assignee") or name == "after"


def test_a_month_without_anything_says_so(owner: Browser) -> None:
    assert "Nothing happened" in page(owner, month="2019-02").content.decode()


# --- the file ---


def test_the_file_has_all_values_and_no_formula(owner: Browser) -> None:
    answer = owner.get(f"{PAGE}file/", {"month": OCTOBER, "by": "tag"})
    assert answer["Content-Disposition"] == 'attachment; filename="report-acme-2026-10-tag.csv"'
    head, *lines = csv.reader(io.StringIO(answer.content.decode("utf-8-sig")))
    assert head[:4] == ["Month", "Tag", "Opened", "Still unresolved"]
    assert [line[:4] for line in lines] == [[OCTOBER, "vpn", "2", "1"], [OCTOBER, "'=1+1", "1", "1"]]


# --- what it costs, and that it is bounded ---


def plant(desk: World, tags: int, each: int) -> None:
    """Months of a desk with so many tags, of which every month of a year has tickets."""
    alice = desk.context("alice", "acme")
    for back in range(12):
        month = reports.shifted("2026-11", -back)
        places = [(MonthScope.ALL, ""), *((MonthScope.TAG, f"tag-{n:05}") for n in range(tags))]
        for start in range(0, len(places), 40):
            some = places[start : start + 40]
            plant_all(alice, {Part(MONTH, str(MonthPlace(scope, month, v)), 0): {"h.1.9": each} for scope, v in some})
            folding.merge_all(alice)


def test_a_report_costs_the_same_for_ten_tickets_and_for_ten_million(world: World) -> None:
    owner = world.browser("alice", "acme")
    bills = []
    for each in (1, 1_000_000):
        plant(world, 3, each)
        bills.append(spent(owner, f"{PAGE}?month=2026-11&by=tag"))
    few, many = bills
    assert few.trips == many.trips == 2
    assert sorted(c.operation for c in few.calls) == ["BatchGetItem", *["GetItem"] * 2, *["Query"] * 4]
    assert len(many.calls) == len(few.calls)
    assert many.items == few.items
    assert many.read_units == few.read_units <= IDENTITY + 4.5
    assert many.write_units == 0


def test_of_very_many_tags_a_page_reads_a_bounded_number_and_leads_to_the_next_ones(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MOST", 20)
    plant(world, 50, 1)
    owner, seen = world.browser("alice", "acme"), Counter[str]()
    url, pages = f"{PAGE}?month=2026-11&by=tag", 0
    while url:
        assert spent(owner, url).trips == 2
        context = owner.get(url).context
        assert len(context["rows"]) <= 20
        seen.update(row.name for row in context["rows"])
        url, pages = context["more_url"], pages + 1
    assert seen == Counter({f"tag-{n:05}": 1 for n in range(50)})
    assert pages == 3


def test_what_no_merge_has_moved_yet_is_on_the_page_where_it_belongs(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "MOST", 20)
    plant(world, 30, 1)
    alice, owner = world.context("alice", "acme"), world.browser("alice", "acme")
    tags = ("tag-00003", "tag-00003b", "tag-00025", "zebra")
    recent = {Part(MONTH, str(MonthPlace(MonthScope.TAG, "2026-11", tag)), 0): {"h.1.9": 5} for tag in tags}
    plant_all(alice, recent)
    first = page(owner, month="2026-11", by="tag")
    found = rows(first) | rows(owner.get(first.context["more_url"]))
    assert [found[tag][0] for tag in tags] == [6, 5, 6, 5]
    assert len(found) == 32


# --- who sees it ---


def test_agents_and_viewers_are_refused_and_other_desks_see_their_own(desk: World) -> None:
    for who in ("bob", "vera"):
        assert desk.browser(who, "acme").get(PAGE).status_code == 403
    assert rows(page(desk.browser("charlie"), month=OCTOBER, by="tag")) == {}
