"""`hot_spots`: each promise, the simulated partitions, and the command once, small. No time is measured."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings

from portal.errors import Forbidden
from proofs.hot_spots import heat_promises, hot_spot_report, page_prices, suffix_skew, throttle_trial
from proofs.hot_spots.hot_spot_report import HotSpotsSeen
from proofs.hot_spots.page_prices import PagePrice
from proofs.hot_spots.partition_buckets import PartitionBuckets
from proofs.hot_spots.throttle_trial import ThrottlePlan, ThrottleTrial
from tests.support import commands
from tests.support.world import World
from tickets.sharding import hot_tenants

ROW_KB = 40  # a hundred writes a second that take as many units as four thousand small ones
PLACE = ("index", "TENANT#a|OPEN#0")


def test_with_200_shards_the_fullest_has_at_most_1_35_of_the_mean() -> None:
    (numbers,) = [
        skew.fullest_to_mean
        for skew in suffix_skew.measured([200], ids=["ticket numbers"])
        if skew.function == suffix_skew.OURS
    ]
    assert 1 < numbers <= 1.35
    _, median, _ = suffix_skew.of_uuids(3)
    assert 1 < median <= 1.35


def test_the_product_of_code_points_sends_all_uuids_into_one_shard() -> None:
    found = {skew.function: skew for skew in suffix_skew.measured([200], count=2000, ids=["UUIDs"])}
    assert (found["code point product"].used, found["code point product"].fullest_to_mean) == (1, 200)
    assert found["random"].used > 190


def test_the_remainder_fails_where_numbers_have_a_step() -> None:
    found = {skew.function: skew.used for skew in suffix_skew.measured([100], count=2000, ids=["numbers by hundreds"])}
    assert (found["remainder"], found[suffix_skew.OURS]) == (1, 100)


def test_a_partition_takes_a_thousand_write_units_and_three_thousand_read_units_a_second() -> None:
    buckets = PartitionBuckets(burst_seconds=0)
    for second in (0, 1, 2):
        assert sum(buckets.write(second, [(PLACE, 1)]) for _ in range(5000)) == 1000
        assert sum(buckets.read(second, [(PLACE, 1)]) for _ in range(5000)) == 3000
    assert buckets.write(2, [(("index", "another"), 1)])


def test_what_was_not_used_is_kept_for_five_minutes_and_no_longer() -> None:
    buckets = PartitionBuckets()
    assert buckets.write(0, [(PLACE, 300_000)])
    assert not buckets.write(0, [(PLACE, 1)])
    assert buckets.write(10, [(PLACE, 10_000)])
    assert not buckets.write(10_000, [(PLACE, 300_001)])
    assert buckets.write(10_000, [(PLACE, 300_000)])


def test_a_write_that_one_partition_refuses_takes_nothing_from_the_others() -> None:
    buckets = PartitionBuckets(burst_seconds=0)
    assert buckets.write(0, [(PLACE, 600)])
    other = ("table", "TENANT#a|TICKET#1")
    assert not buckets.write(0, [(other, 1000), (PLACE, 300), (PLACE, 300)])
    assert buckets.write(0, [(other, 1000), (PLACE, 400)])


def carried_out(design: str, burst_seconds: float = 0) -> ThrottleTrial:
    return ThrottleTrial(ThrottlePlan(design, burst_seconds, 500, ROW_KB)).run()


def test_who_writes_4000_times_a_second_is_throttled_under_1_percent_once_it_was_resharded_by_itself() -> None:
    trial = carried_out("ours")
    ((begun, asked),) = trial.begun
    ((ended, got),) = trial.ended
    assert (asked, got) == (16, 16)
    assert trial.writes.share(noisy=True, until=begun) > 0.8
    assert heat_promises.after(trial) < 0.01
    assert trial.seconds - ended >= throttle_trial.CALM_SECONDS
    assert trial.writes.share(noisy=False) == trial.reads.share(noisy=False) == 0


def test_who_gets_too_few_shards_is_throttled_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hot_tenants, "wanted_shards", lambda shards, units, hot: 2)
    monkeypatch.setattr(throttle_trial, "COOL_DOWN", timedelta())
    trial = carried_out("ours")
    assert trial.ended[0][1] == 2
    assert heat_promises.after(trial) > 0.5


@pytest.mark.parametrize(("design", "noisy", "quiet"), [("status", 0.8, 0.5), ("one", 0.8, 0), ("product", 0.05, 0)])
def test_other_keys_throttle(design: str, noisy: float, quiet: float) -> None:
    trial = carried_out(design)
    assert trial.writes.share(noisy=True) > noisy
    assert trial.writes.share(noisy=False) >= quiet
    assert trial.begun == []


def test_the_same_trial_gives_the_same_figures() -> None:
    one, other = carried_out("one"), carried_out("one")
    assert one.writes == other.writes


def priced(shards: int, read_units: float, trips: int = 1) -> PagePrice:
    return PagePrice(shards, 5, 40, 400, read_units, read_units, trips, trips)


def test_a_promise_is_missed_when_a_page_costs_too_much_or_takes_another_trip() -> None:
    def kept(*prices: PagePrice) -> list[bool]:
        return [promise.kept for promise in heat_promises.judge_prices(prices)]

    assert kept(priced(1, 2), priced(8, 5)) == [True, True]
    assert kept(priced(1, 2), priced(8, 5.5)) == [False, True]
    assert kept(priced(1, 2), priced(8, 5, trips=2)) == [True, False]


def test_it_is_refused_in_production(engine: None) -> None:
    with pytest.raises(Forbidden):
        page_prices.measured(tickets=1)
    ended = commands.run("hot_spots", "--quick")
    assert (ended.status, "DEBUG=1" in ended.err) == (1, True)


def test_the_command_measures_reports_and_says_when_a_promise_is_missed(
    world: World, settings: LazySettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DEBUG = True
    machines, people = tmp_path / "found.json", tmp_path / "found.html"
    seen: list[HotSpotsSeen] = []
    measure = hot_spot_report.measure

    def once(*args: Any) -> HotSpotsSeen:
        seen.extend([] if seen else [measure(*args)])
        return seen[0]

    monkeypatch.setattr(hot_spot_report, "measure", once)
    before = commands.everything()
    ended = commands.run("hot_spots", "--quick", "--json", machines, "--html", people)
    assert ended.status == 0, ended.err
    assert "All 8 promises are kept." in ended.out
    assert commands.everything() == before
    found = json.loads(machines.read_text())
    prices = {price["shards"]: price for price in found["prices"]}
    assert list(prices) == [1, 2, 4, 8, 16]
    assert prices[8]["ratio"] <= 2.5
    assert {price["most_trips"] for price in prices.values()} == {1}
    page = people.read_text()
    assert page.count('<svg viewBox="0 0 620') == 4
    assert not re.search(r"<script|https?://|src=|@import", page)
    monkeypatch.setattr(heat_promises, "SKEW", 1.0)
    again = commands.run("hot_spots", "--quick")
    assert (again.status, "2 of 8 promises are not kept." in again.err) == (1, True)
    assert again.out.count("MISSED") == 2
