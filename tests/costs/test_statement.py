"""A desk's statement has all capacity that was used for it, as DynamoDB tells, and nothing of another desk."""

from __future__ import annotations

import math
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from portal import clock
from portal.dynamo import meter
from portal.dynamo.client import each_client
from portal.errors import Unavailable
from portal.hosting import prices
from portal.load import measurement, reporting, spending
from portal.load.spending import COUNT, CostBatch, Ledger
from portal.load.stored import CostItem
from portal.schema import keys, registry
from portal.web import price_presenters
from tenants.tenancy import tenant_directory
from tests.support.noise import telling
from tests.support.world import World
from tickets.costs import statement
from tickets.costs.statement import Statement, Units

PAGE = "/desk/settings/costs/"
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


# --- an independent account of what the engine was asked for and answered ---


def _bytes(value: dict[str, Any]) -> int:
    """Size a value by AWS's rules, written anew: "DynamoDB item sizes and formats"."""
    ((kind, content),) = value.items()
    if kind == "M":
        return 3 + sum(1 + len(name.encode()) + _bytes(one) for name, one in content.items())
    if kind == "L":
        return 3 + sum(1 + _bytes(one) for one in content)
    if kind == "N":
        digits = re.sub(r"^0+|0+$", "", content.lstrip("-").replace(".", ""))
        return (len(digits) + 1) // 2 + 1 + content.startswith("-")
    if kind in ("BOOL", "NULL"):
        return 1
    if kind.endswith("S") and len(kind) == 2:
        return sum(_bytes({kind[0]: one}) for one in content)
    return len(content.encode() if isinstance(content, str) else content)


def _units(items: list[Any], rate: float) -> float:
    size = sum(len(name.encode()) + _bytes(value) for item in items for name, value in item.items())
    return max(1, math.ceil(size / 4096)) * rate


@contextmanager
def independently(totals: Counter[str]) -> Iterator[None]:
    """Add up, beside the meter, the reads by AWS's rules and the writes as the engine reports them."""
    on = [True]

    def sent(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        context["account"] = params

    def answered(model: Any, parsed: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
        asked = context.get("account") or {}
        if not on[0] or "Error" in parsed:
            return
        rate = 1.0 if asked.get("ConsistentRead") else 0.5
        if model.name == "GetItem":
            totals["reads"] += _units([parsed.get("Item") or {}], rate)
        elif model.name == "Query":
            totals["reads"] += _units(parsed["Items"], rate)
        elif model.name == "BatchGetItem":
            for name, wanted in asked["RequestItems"].items():
                found = parsed["Responses"].get(name, [])
                each = 1.0 if wanted.get("ConsistentRead") else 0.5
                totals["reads"] += sum(_units([one], each) for one in found) + each * (len(wanted["Keys"]) - len(found))
        else:
            consumed = parsed.get("ConsumedCapacity") or []
            for one in consumed if isinstance(consumed, list) else [consumed]:
                totals["all writes"] += one["CapacityUnits"]
                indexes = one.get("GlobalSecondaryIndexes") or {}
                totals["index writes"] += sum(part["CapacityUnits"] for part in indexes.values())

    def attach(client: Any) -> None:
        client.meta.events.register_last("before-parameter-build", sent)
        client.meta.events.register_last("after-call.dynamodb", answered)

    each_client(attach)
    try:
        yield
    finally:
        on[0] = False


def work_of(world: World) -> None:
    """Let people of both desks, and nobody's requests, do a bit of everything over HTTP."""
    for who, where in (("alice", "acme"), ("charlie", "globex")):
        browser = world.browser(who, where)
        for title in ("Printer on fire", "Cable " + "x" * 80):
            form = {"title": title, "description": "It *broke*. " * 60, "priority": "high", "tags": "A b, c"}
            assert browser.send("/tickets/new/", form | {"request_id": uuid.uuid4().hex}).status_code == 302
        world.tickets(where, 2, who=who)
        for path in ("/tickets/", "/tickets/1/", "/tickets/dashboard/", "/search/?q=printer", "/desk/members/"):
            assert browser.get(path).status_code == 200
        comment = {"body": "Try this. " * 200, "request_id": uuid.uuid4().hex}
        assert browser.send("/tickets/1/comment/", comment).status_code == 302
    anybody = type(world.browser("alice", "acme"))()
    anybody.get("/login/")
    anybody.sign_in("alice@example.com")


def all_units(world: World) -> tuple[dict[str, Units], Units]:
    month = statement.this_month()
    of_desks = {slug: statement.stored_of(one.tenant_id, month).units for slug, one in world.tenants.items()}
    return of_desks, statement.of_platform(month).units


def test_the_statements_of_all_desks_and_the_platform_are_what_dynamodb_charged(
    world: World, settings: LazySettings
) -> None:
    totals = Counter[str]()
    with telling(settings), independently(totals):
        work_of(world)
        measured = Counter(totals)
    desks, platform = all_units(world)
    units = sum(desks.values(), platform)
    assert units.index_writes == measured["index writes"] > 0
    assert units.writes + units.index_writes == measured["all writes"] > 40
    assert units.reads == pytest.approx(measured["reads"], rel=0.01)
    assert all(one.writes > 15 and one.reads > 15 for one in desks.values())
    assert 0 < platform.dollars < units.dollars / 2, "what is done for a desk is the desk's"


def test_what_a_command_spent_is_written_at_its_end_for_desks_and_the_platform(
    engine: None, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.NOISE_NOTED = settings.DEBUG = True
    totals, measured, written = Counter[str](), Counter[str](), reporting._write_now

    def write(*, last: bool = False) -> bool:
        measured.update(totals)
        return written(last=last)

    monkeypatch.setattr(reporting, "_write_now", write)
    with independently(totals):
        call_command("seed", tenants=2, tickets=3, users=0)
    month = statement.this_month()
    desks = [statement.stored_of(one.tenant_id, month).units for one in tenant_directory.all_tenants()]
    units = sum(desks, statement.of_platform(month).units)
    assert units.writes + units.index_writes == measured["all writes"] > 100
    assert units.reads == pytest.approx(measured["reads"], rel=0.01)
    assert sum(one.writes > 20 for one in desks) == 2, "desks pay for their own tickets"


def test_each_declared_table_belongs_to_one_feature() -> None:
    named = [table for feature in statement.FEATURES for table in feature.tables]
    assert sorted(named) == [table.name for table in registry.tables()]


# --- the ledger of a process ---


def rows(world: World, slug: str = "acme") -> dict[str, Counter[str]]:
    """Return the amounts that are written, by day."""
    items = world.context("alice", slug).repository.query_all(CostItem, keys.tenant)
    return {item.day: spending.amounts_of(item) for item in items}


def ledger_at(*moments: datetime) -> Ledger:
    times = iter(moments)
    last = [moments[0]]

    def now() -> float:
        last[0] = next(times, last[0])
        return last[0].timestamp()

    return Ledger(clock=now)


def test_a_row_is_written_once_it_is_worth_a_write_and_at_the_end_of_the_utc_day(world: World) -> None:
    kept = ledger_at(NOW)
    kept.add("a" * 32, [("w:Support.Tickets", spending.WORTH - 1)])
    assert kept.due() == []
    kept.add("a" * 32, [("r:Support.Tickets", 5)])
    assert [one.worth for one in kept.due()] == [spending.WORTH], "five reads are worth a write"
    evening = datetime(2026, 11, 30, 23, 59, 59, tzinfo=UTC)
    kept = ledger_at(evening, evening, evening, evening + timedelta(seconds=1))
    kept.add("a" * 32, [("w:Support.Tickets", 1)])
    kept.add("a" * 32, [("w:Support.Tickets", 2)])
    assert kept.due() == []
    (late,) = kept.due()
    assert (late.day, late.amounts["w:Support.Tickets"]) == ("2026-11-30", 3), "of the month in which it was spent"


def test_a_write_that_is_sent_again_adds_nothing(world: World) -> None:
    batch = CostBatch(world.tenants["acme"].tenant_id, "2026-11-20", Counter({"w:Support.Tickets": 7}))
    for _ in range(2):
        spending.write(batch, "platform")
    other = CostBatch(batch.tenant_id, batch.day, Counter({"w:Support.Tickets": 1.5, "n:mails": 2}))  # type: ignore[dict-item]
    spending.write(other, "platform")
    (row,) = rows(world).values()
    assert row == {"w:Support.Tickets": 8.5, "n:mails": 2}
    assert rows(world, "globex") == {}


def test_rows_that_cannot_be_written_are_written_later_under_the_same_id(
    world: World, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme, real, seen = world.tenants["acme"].tenant_id, spending.write, list[str]()

    def away(batch: CostBatch, role: Any) -> None:
        seen.append(batch.id)
        real(batch, role)
        if len(seen) == 1:
            raise Unavailable("The answer was lost.")

    monkeypatch.setattr(spending, "write", away)
    with telling(settings):
        spending.ledger.add(acme, [("w:Support.Tickets", 600)])
        assert spending.write_due("platform") == 0
        assert spending.write_due("platform") == 1
        assert seen[0] == seen[1]
    assert rows(world)[spending.day_of(clock.now())]["w:Support.Tickets"] == 600


def test_a_killed_process_loses_less_than_its_bound_for_each_desk_and_a_stopped_one_nothing(
    world: World, settings: LazySettings
) -> None:
    acme = world.tenants["acme"].tenant_id
    with telling(settings):
        for _ in range(1000):
            spending.charge(acme, [meter.CapacityPart("Support.Tickets", meter.WRITE, 3)])
            spending.write_due("platform")
        (row,) = rows(world).values()
        assert 3000 - spending.WORTH < row["w:Support.Tickets"] < 3000
    (row,) = rows(world).values()
    assert row["w:Support.Tickets"] == 3000


def test_writing_costs_down_costs_less_than_half_a_percent_of_them(world: World, settings: LazySettings) -> None:
    names = [f"{kind}:{table.name}" for table in registry.tables() for kind in "rwi"]
    with telling(settings), meter.measure() as bill:
        for number in range(20 * spending.WORTH // 5):
            spending.ledger.add(world.tenants["acme"].tenant_id, [(names[number % 60], 5.0)])
            spending.write_due("platform")
    worth = sum(
        one.units.dollars for one in [statement.stored_of(world.tenants["acme"].tenant_id, statement.this_month())]
    )
    assert bill.write_units * prices.WRITE_UNIT < 0.005 * worth


def test_no_statement_pays_for_itself(world: World, settings: LazySettings) -> None:
    with telling(settings):
        spending.ledger.add(world.tenants["acme"].tenant_id, [("w:Support.Tickets", 600)])
        spending.write_due("platform")
        assert [one.tenant_id for one in spending.ledger.due(last=True)] == [""], "the platform pays for the writing"


# --- the statement ---


def given(world: World, day: str, **amounts: float) -> None:
    """Let a desk have spent this much on a day: `w` and `r` are units of tickets."""
    names = {"w": "w:Support.Tickets", "r": "r:Support.Tickets"}
    counted = Counter({names.get(name, f"{COUNT}:{name}"): amount for name, amount in amounts.items()})
    spending.write(CostBatch(world.tenants["acme"].tenant_id, day, counted), "platform")  # type: ignore[arg-type]


@pytest.fixture
def noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)


def of_acme(world: World, month: str = "2026-11") -> Statement:
    return statement.of(world.context("alice", "acme"), month)


def test_a_forecast_is_what_was_spent_and_the_mean_of_the_last_whole_days(world: World, noon: None) -> None:
    given(world, "2026-11-02", w=1e6)
    for day in range(13, 20):
        given(world, f"2026-11-{day}", w=7e6)
    given(world, "2026-11-20", w=1e6)
    found = of_acme(world)
    assert found.total == pytest.approx((1 + 49 + 1) * 0.625)
    assert found.forecast == pytest.approx(found.total + 10.5 * 7 * 0.625), "ten and a half days are left, at 7 million"


def test_a_desk_that_is_younger_than_a_week_has_the_mean_of_its_days(world: World, noon: None) -> None:
    assert of_acme(world).forecast is None
    given(world, "2026-11-18", w=4e6)
    found = of_acme(world)
    assert found.forecast == pytest.approx(4 * 0.625 + 10.5 * 2 * 0.625), "one of the two days had no use"


def test_what_is_counted_beside_units_has_its_price(world: World, noon: None) -> None:
    given(world, "2026-11-03", mails=3000, messages=1e6, downloads=1e6, download_bytes=2**31, requests=10, r=8e6)
    found = of_acme(world)
    assert {name: round(one.dollars, 6) for name, one in found.counted.items() if one.dollars} == {
        "mails": 0.3, "messages": 1.2, "downloads": 0.58,
    }  # fmt: skip
    assert (found.requests, found.units.dollars) == (10, 1.0)


def test_the_size_of_tickets_is_that_of_a_sample_and_measured_once_a_week(world: World, settings: LazySettings) -> None:
    world.tickets("acme", 3)
    acme = world.context("alice", "acme")
    with telling(settings), meter.measure() as first:
        found = statement.of(acme, statement.this_month())
    with meter.measure() as second:
        again = statement.of(acme, statement.this_month())
    assert found.stored_bytes == again.stored_bytes
    assert 3_000 < (found.stored_bytes or 0) < 30_000
    assert [call.operation for call in second.calls] == ["Query"]
    assert [call.operation for call in first.calls].count("Query") == 1 + 3, "a page of many tickets reads SAMPLE"


def test_months_end_by_utc(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: datetime(2026, 12, 1, 0, 0, 1, tzinfo=UTC))
    given(world, "2026-11-30", w=1e6)
    given(world, "2026-12-01", w=2e6)
    november, december = of_acme(world), of_acme(world, "2026-12")
    assert (november.units.writes, november.is_over, november.forecast) == (1e6, True, None)
    assert (december.units.writes, december.is_over) == (2e6, False)
    assert november.stored_bytes is not None, "measured on the day after, since nobody had asked before"


# --- the page ---


def test_the_page_shows_what_was_spent_until_now_and_nothing_of_another_desk(
    world: World, settings: LazySettings
) -> None:
    with telling(settings):
        spending.ledger.add(world.tenants["globex"].tenant_id, [("w:Support.Search", 77_777)])
        spending.ledger.add(world.tenants["acme"].tenant_id, [("w:Support.Search", 4321)])
        page = world.browser("alice", "acme").get(PAGE).content.decode()
    assert "4,321" in page
    assert "77,777" not in page
    assert "$0.0027" in page


def test_figures_never_get_smaller_whichever_process_shows_them(world: World, settings: LazySettings) -> None:
    acme, browser, totals = world.tenants["acme"].tenant_id, world.browser("alice", "acme"), list[float]()
    with telling(settings):
        here, there = spending.ledger, Ledger()
        for turn in range(4):
            spending.ledger = (here, there)[turn % 2]
            spending.ledger.add(acme, [("w:Support.Search", 100)])
            browser.get(PAGE)
            totals.append(statement.stored_of(acme, statement.this_month()).total)
        spending.ledger = here
    assert [one >= 100 * turn * prices.WRITE_UNIT for turn, one in enumerate(totals, 1)] == [True] * 4
    assert totals == sorted(totals)


def test_a_month_without_figures_and_a_wrong_one_say_so(world: World) -> None:
    alice = world.browser("alice", "acme")
    assert "Nothing was measured in this month." in alice.get(f"{PAGE}?month=2026-01").content.decode()
    for wrong in ("2026-13", "9999-01", "<b>", "2026-1"):
        page = alice.get(f"{PAGE}?month={wrong}")
        assert page.status_code == 400
        assert 'role="alert"' in page.content.decode()
        assert alice.get(f"{PAGE}file/?month={wrong}").status_code == 400


@pytest.mark.parametrize(
    ("requests", "said", "has_price"),
    [(1, "1 request by", False), (999, "999 requests by", False), (1000, "1,000 requests by", True)],
)
def test_a_million_requests_have_a_price_once_a_thousand_were_counted(
    world: World, noon: None, requests: int, said: str, has_price: bool
) -> None:
    given(world, "2026-11-03", requests=requests, r=8e6)
    page = world.browser("alice", "acme").get(f"{PAGE}?month=2026-11").content.decode()
    assert (said in page, "A million of them" in page) == (True, has_price)


def test_the_file_has_the_days_of_each_feature_and_adds_up_to_the_page(world: World) -> None:
    world.tickets("acme", 3)
    month = statement.this_month()
    given(world, f"{month}-01", w=1e6, r=10.5, mails=4)
    alice = world.browser("alice", "acme")
    text = alice.get(f"{PAGE}file/").content.decode()
    lines = text.splitlines()
    assert text[0] == "\ufeff", "by which a spreadsheet knows the letters"
    assert lines[1:3] == [f"{month}-01,Tickets,10.5,1000000,0,,0.6250013125", f"{month}-01,Mail sent,,,,4,0.0004000000"]
    assert [line.rpartition(",")[0] for line in lines[4:]] == [f"{month},Files stored,,,,0"]
    total = sum(float(line.rpartition(",")[2]) for line in lines[1:])
    assert total == pytest.approx(statement.of(world.context("alice", "acme"), month).total, abs=1e-9)


def test_the_file_and_the_page_have_the_marks_of_their_reader(world: World) -> None:
    given(world, f"{statement.this_month()}-01", w=1e6, r=10.5)
    alice = world.browser("alice", "acme", headers={"accept-language": "de"})
    assert (
        f"{statement.this_month()}-01;Tickets;10,5;1000000;0;;0,6250013125"
        in alice.get(f"{PAGE}file/").content.decode()
    )
    assert ">0,625\xa0$<" in alice.get(PAGE).content.decode()


@pytest.mark.parametrize(
    ("amount", "decimals", "shown"),
    [(0.9375, 3, "$0.938"), (7.5 * 0.125e-6 * 1e6, 3, "$0.938"), (0, 6, "$0.000000"), (3e-8, 6, "under $0.000001")],
)
def test_money_is_rounded_half_up_and_little_is_not_free(amount: float, decimals: int, shown: str) -> None:
    assert price_presenters.dollars(amount, decimals=decimals) == shown


def test_a_desk_costs_nothing_in_months_before_it_and_stores_nothing_in_the_days_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.tickets("acme", 3)
    monkeypatch.setattr(clock, "now", lambda: NOW)
    created = replace(world.context("alice", "acme"), created_at="2026-11-15T12:00:00+00:00")
    given(world, "2026-11-16", w=1)
    assert statement.of(created, "2026-10").total == 0
    assert list(statement.lines(created, "2026-10")) == []
    found = statement.of(created, "2026-11")
    month = (found.stored_bytes or 0) / 2**30 * prices.STORED_GB
    assert found.counted["stored"].dollars == pytest.approx(month * 5 / 30, abs=1e-12)


def test_the_price_of_a_page_leads_owners_to_the_costs(world: World) -> None:
    page = world.browser("alice", "acme").get("/tickets/").content.decode()
    assert '<a href="/acme/desk/settings/costs/">' in page.partition("This page:")[2]


def test_nothing_is_kept_where_nobody_writes_it_down(world: World) -> None:
    world.browser("alice", "acme").get("/tickets/")
    assert spending.ledger.due(last=True) == []
    assert not measurement._taken
    assert reporting._reporter is None
