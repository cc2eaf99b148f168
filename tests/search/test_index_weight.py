"""What an index weighs: items, headers, and what comes to one partition in one second."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofs.search import scale_trial
from proofs.search.scale_trial import LargestSegment
from tests.support.commands import run
from tickets.search.index import write_pace
from tickets.search.index.write_pace import WritePace

# 16 blocks of 16 KB are sent side by side.
GROUP = 256


def test_every_item_header_and_partition_is_within_its_limit(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    ended = run("weigh_search", "--tickets", 400, "--bytes", 4_000_000, "--seed", 1, "--json", figures)
    assert ended.status == 0, ended.err
    assert "Every item, header and partition is within its limit." in ended.out
    found = json.loads(figures.read_text())
    assert found["grown"]["segments"] >= 1
    assert found["largest"]["blocks"] > 500


def test_what_is_out_of_bounds_is_named() -> None:
    grown = scale_trial.grow(20, rate=100, seed=1)
    good = LargestSegment(1000, 1, largest_item=4096, header_bytes=300, busiest=700)
    assert scale_trial.limits(grown, good)[1] == []
    bad = LargestSegment(1000, 1, largest_item=16_385, header_bytes=65_537, busiest=1001)
    assert len(scale_trial.limits(grown, bad)[1]) == 3


@pytest.mark.parametrize("units", [1, 16, GROUP])
def test_no_second_gets_more_than_a_partition_takes(units: int) -> None:
    now = 0.0
    sent: dict[int, int] = {}

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    pace = WritePace(now=lambda: now, sleep=sleep)
    for _ in range(10_000 // units):
        pace.wait()
        sent[int(now)] = sent.get(int(now), 0) + units
        pace.spend(units)
    assert max(sent.values()) <= scale_trial.PARTITION_LIMIT
    assert now == pytest.approx(10_000 / write_pace.UNITS_A_SECOND, abs=1)


def test_a_small_merge_waits_for_nothing() -> None:
    pace = WritePace(now=lambda: 0.0, sleep=lambda seconds: pytest.fail("it waited"))
    pace.spend(write_pace.BURST)
    pace.wait()
