"""Lists with filters: what the address asks for is what a person would pick, in order, at a bounded price."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portal import clock
from portal.dynamo import meter
from portal.errors import Invalid
from tests.fakes import index_row, tenant_in_memory
from tests.test_cost import fill, spent
from tests.world import Browser, World
from tickets import lifecycle, lists
from tickets.fields import Priority, Status
from tickets.filters import Days, Filter

ACME = "ac" * 16
START = datetime(2026, 1, 1, tzinfo=UTC)
DAYS = 10
quick = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])

hours = st.integers(0, DAYS * 24 - 1)


@st.composite
def rows(draw: st.DrawFn) -> dict[str, Any]:
    """A ticket as the rules may have left it: its events lie between its opening and its last change."""
    moments = sorted(draw(st.lists(hours, min_size=2, max_size=5)))
    status = draw(st.sampled_from(Status))
    row: dict[str, Any] = {
        "status": status,
        "created_at": stamp(moments[0]),
        "updated_at": stamp(moments[-1]),
        "priority": draw(st.sampled_from(Priority)).value,
        "tags": draw(st.lists(st.sampled_from(["billing", "printer", "vpn"]), unique=True, max_size=2)),
    }
    if status in (Status.RESOLVED, Status.CLOSED):
        row["resolved_at"] = stamp(draw(st.sampled_from(moments)))
    if draw(st.booleans()):
        row["commented_at"] = stamp(draw(st.sampled_from(moments)))
    return row


def stamp(hour: int) -> str:
    return clock.stamp(START + timedelta(hours=hour))


def day(number: int) -> str:
    return (START + timedelta(days=number)).date().isoformat()


@st.composite
def days(draw: st.DrawFn) -> Days:
    first, last = sorted(draw(st.tuples(st.integers(0, DAYS - 1), st.integers(0, DAYS - 1))))
    which = draw(st.sampled_from(["both", "first", "last"]))
    return Days(day(first) if which != "last" else "", day(last) if which != "first" else "")


filters = st.builds(
    Filter,
    priority=st.none() | st.sampled_from(Priority),
    tag=st.sampled_from(["", "billing", "vpn"]),
    created=st.none() | days(),
    resolved=st.none() | days(),
    commented=st.none() | days(),
)
groups = st.sampled_from([(Status.OPEN,), (Status.OPEN, Status.PENDING), tuple(Status)])


def stored(made: list[dict[str, Any]], shards: int) -> tuple[Any, Any]:
    tenant, index = tenant_in_memory(ACME, shards=shards)
    for number, row in enumerate(made, start=1):
        raw = index_row(ACME, number, row["updated_at"], shards=shards, status=row["status"])
        raw["tags"] = {"L": [{"S": tag} for tag in row["tags"]]}
        raw |= {name: {"S": row[name]} for name in row if name in ("created_at", "priority") or name.endswith("ed_at")}
        index.rows.append(raw)
    return tenant, index


def picked(made: list[dict[str, Any]], statuses: tuple[Status, ...], only: Filter) -> list[int]:
    """By hand: every condition asked of every ticket."""

    def fits(row: dict[str, Any]) -> bool:
        within = []
        for name in ("created", "resolved", "commented"):
            if asked := getattr(only, name):
                at = row.get(f"{name}_at", "")[:10]
                within.append(bool(at) and at >= asked.first and (not asked.last or at <= asked.last))
        return (
            row["status"] in statuses
            and (only.priority is None or row["priority"] == only.priority)
            and (not only.tag or only.tag in row["tags"])
            and all(within)
        )

    return [number for number, row in enumerate(made, start=1) if fits(row)]


@quick
@given(st.lists(rows(), max_size=40), groups, filters, st.integers(1, 4), st.integers(1, 12))
def test_the_pages_hold_what_a_person_would_pick_newest_change_first(
    made: list[dict[str, Any]], statuses: tuple[Status, ...], only: Filter, shards: int, size: int
) -> None:
    tenant, _ = stored(made, shards)
    forward, after = [], None
    while True:
        page = lists.page(tenant, status=statuses, only=only, after=after, size=size)
        forward.append(page)
        if (after := page.next) is None:
            break
        assert len(forward) < 200, "the links lead in a circle"
    found = [row.number for page in forward for row in page.rows]
    assert sorted(found) == picked(made, statuses, only)
    stamps = [row.updated_at for page in forward for row in page.rows]
    assert stamps == sorted(stamps, reverse=True)
    back = [forward[-1]]
    while back[-1].previous is not None:
        back.append(lists.page(tenant, status=statuses, only=only, after=back[-1].previous, size=size))
        assert len(back) < 200, "the links lead in a circle"
    assert [row.number for page in back[::-1] for row in page.rows] == found


def test_a_page_that_finds_nothing_stops_reading_and_leads_on() -> None:
    made = [
        {"status": Status.OPEN, "created_at": stamp(0), "updated_at": stamp(n % 200), "priority": "low", "tags": []}
        for n in range(1200)
    ]
    tenant, index = stored(made, 1)
    page = lists.page(tenant, status=Status.OPEN, only=Filter(priority=Priority.HIGH))
    assert page.rows == []
    assert page.stopped
    assert page.looked_at <= lists.READ_LIMIT
    assert index.queries == 3
    looked = page.looked_at
    while page.next:
        page = lists.page(tenant, status=Status.OPEN, only=Filter(priority=Priority.HIGH), after=page.next)
        looked += page.looked_at
    assert looked == 1200


@pytest.mark.parametrize(
    "text",
    [
        "",
        "..",
        "2026-1-1",
        "2026-02-30",
        "2026-01-02..2026-01-01",
        "yesterday",
        "2026-01-01...2026-01-02",
        "²026-01-01",
    ],
)
def test_days_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(Invalid):
        Days.parse(text, field="created")


@pytest.mark.parametrize("text", ["2026-01-01", "2026-01-01..2026-01-07", "..2026-01-07", "2026-01-01.."])
def test_days_are_written_as_they_are_read(text: str) -> None:
    assert str(Days.parse(text, field="created")) == text


# --- over HTTP ---


@pytest.fixture
def mixed(world: World) -> Browser:
    """1 urgent and about billing; 2 resolved today; 3 pending; 4 plain."""
    alice = world.context("alice", "acme")
    lifecycle.create(alice, title="Urgent bill", priority=Priority.URGENT, tags=["billing"])
    for title in ("Done already", "Waits for them", "Plain"):
        lifecycle.create(alice, title=title)
    lifecycle.change_status(alice, 2, to=Status.RESOLVED, version=1)
    lifecycle.change_status(alice, 3, to=Status.PENDING, version=1)
    return world.browser("bob", "acme")


def shown(browser: Browser, query: str) -> list[int]:
    response = browser.get(f"/tickets/?{query}")
    assert response.status_code == 200
    return sorted(row.number for row in response.context["page"]["rows"])


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("status=any", [1, 2, 3, 4]),
        ("status=unresolved", [1, 3, 4]),
        ("priority=urgent", [1]),
        ("tag=billing&status=any", [1]),
        ("tag=billing&priority=low", []),
        ("status=any&resolved={today}", [2]),
        ("status=any&resolved=..2020-01-01", []),
        ("status=any&created={today}..", [1, 2, 3, 4]),
        ("status=any&resolver=none&tag=billing", [1]),
        ("status=any&reopened={today}", []),
    ],
)
def test_filters_combine(mixed: Browser, query: str, numbers: list[int]) -> None:
    assert shown(mixed, query.format(today=clock.stamp()[:10])) == numbers


def test_a_filter_is_a_chip_that_leads_to_the_list_without_it(mixed: Browser) -> None:
    response = mixed.get("/tickets/?status=any&priority=urgent&tag=billing")
    chips = {chip["label"]: chip["url"] for chip in response.context["chips"]}
    assert chips == {
        "priority: urgent": "/tickets/?status=any&tag=billing",
        "tag: billing": "/tickets/?status=any&priority=urgent",
    }
    assert all(url.replace("&", "&amp;") in response.content.decode() for url in chips.values())


def test_a_tab_keeps_the_filters(mixed: Browser) -> None:
    response = mixed.get("/tickets/?priority=urgent")
    assert {tab["url"] for tab in response.context["status_tabs"]} == {
        f"/tickets/?status={s.value}&priority=urgent" for s in Status
    }


def test_a_list_of_several_statuses_says_the_status_of_each_row(mixed: Browser) -> None:
    page = mixed.get("/tickets/?status=any").content.decode()
    assert page.count('class="cell-status"') == 4
    assert 'class="cell-status"' not in mixed.get("/tickets/").content.decode()


def test_rows_of_several_statuses_change_together(mixed: Browser) -> None:
    rows = mixed.get("/tickets/?status=unresolved").context["page"]["rows"]
    mixed.send("/tickets/bulk/", {"tickets": [row.select_value for row in rows], "to": "closed", "back": "/tickets/"})
    assert shown(mixed, "status=closed") == [1, 3, 4]


def test_the_form_of_filters_leads_to_a_tidy_address(mixed: Browser) -> None:
    asked = "status=any&priority=&tag=Billing&created_from=2026-02-01&created_to=2026-01-01"
    response = mixed.get(f"/tickets/?{asked}")
    assert response.headers["Location"] == "/tickets/?status=any&tag=billing&created=2026-01-01..2026-02-01"


@pytest.mark.parametrize(
    "query",
    [
        "status=wrong", "priority=wrong", "tag=a,b", "tag=a%7Cb", "tag=" + "x" * 41, "created=soon", "resolved=..",
        "created_from=x&created_to=y", "commented=2026-01-02..2026-01-01", "resolver=somebody", "after=x",
    ],
)  # fmt: skip
def test_what_means_nothing_is_answered_with_a_reason(mixed: Browser, query: str) -> None:
    response = mixed.get(f"/tickets/?{query}")
    assert response.status_code == 400
    assert "Back to the queue" in response.content.decode() or "/tickets/" in response.content.decode()


def test_an_empty_list_offers_to_drop_each_filter(mixed: Browser) -> None:
    response = mixed.get("/tickets/?priority=low&tag=vpn")
    ways = {action["label"]: action["url"] for action in response.context["empty"]["actions"]}
    assert ways["Drop “priority: low”"] == "/tickets/?status=open&tag=vpn"
    assert ways["Drop “tag: vpn”"] == "/tickets/?status=open&priority=low"


def test_a_cursor_of_one_filter_means_nothing_to_another(world: World) -> None:
    fill(world, "acme", 60)
    browser = world.browser("bob", "acme")
    after = browser.get("/tickets/?tag=billing").context["page"]["next_url"].partition("after=")[2]
    assert browser.get(f"/tickets/?tag=billing&after={after}").status_code == 200
    for other in ("tag=printer", "status=any&tag=billing", ""):
        assert browser.get(f"/tickets/?{other}&after={after}").status_code == 400


def test_a_filter_that_every_row_passes_costs_what_the_plain_list_does(world: World) -> None:
    fill(world, "acme", 200)
    browser = world.browser("bob", "acme")
    plain, filtered = spent(browser, "/tickets/"), spent(browser, "/tickets/?tag=billing")
    assert cost(filtered) == cost(plain)


def test_a_filter_that_no_row_passes_reads_at_most_its_limit(world: World) -> None:
    fill(world, "acme", 700)
    bill = spent(world.browser("bob", "acme"), "/tickets/?priority=low")
    assert bill.trips == 4
    assert sum(c.items for c in bill.calls if c.operation == "Query") <= lists.READ_LIMIT


def test_two_statuses_are_read_in_one_round_trip(world: World) -> None:
    fill(world, "acme", 60)
    bill = spent(world.browser("bob", "acme"), "/tickets/?status=unresolved")
    assert (bill.trips, len(bill.calls)) == (2, 3)


def cost(bill: meter.Meter) -> tuple[int, int, float]:
    return bill.trips, len(bill.calls), bill.read_units
