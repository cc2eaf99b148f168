"""How long things took: means are exact, medians are estimates from the classes of a histogram."""

from __future__ import annotations

import math
import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickets.counting.contributions import BUCKETS
from tickets.dashboards import charts
from tickets.dashboards.durations import Durations


def counted(*seconds: int) -> Durations:
    """As the counting counts them."""
    counts: Counter[str] = Counter({"first.n": len(seconds), "first.sum": sum(seconds)})
    for one in seconds:
        counts["first." + next((str(b) for b in BUCKETS if one <= b), "over")] += 1
    return Durations.of(counts, "first")


def test_nothing_has_no_mean_and_no_median() -> None:
    assert (Durations().mean, Durations().median, Durations().p95) == (None, None, None)


def test_the_mean_is_exact() -> None:
    assert counted(100, 200, 4500).mean == 1600


def test_a_median_is_told_within_its_class() -> None:
    # Four between an hour and two: the second of four lies in the middle of that class.
    assert counted(4000, 4000, 7000, 7000).median == 5400


def test_what_lies_beyond_the_last_bound_has_no_end() -> None:
    assert counted(10, 10, 10**8).p95 == math.inf
    assert counted(10, 10, 10**8).median == pytest.approx(225)


@given(st.lists(st.integers(0, BUCKETS[-1]), min_size=1, max_size=60))
def test_an_estimate_is_never_further_off_than_its_class(seconds: list[int]) -> None:
    estimate = counted(*seconds).median
    true = statistics.median_low(seconds)
    bounds = (0, *BUCKETS)
    low, high = next((a, b) for a, b in zip(bounds, BUCKETS, strict=False) if true <= b)
    assert estimate is not None
    assert low <= estimate <= high


@given(st.lists(st.integers(0, 10**8), max_size=30), st.lists(st.integers(0, 10**8), max_size=30))
def test_days_add_up_to_their_period(some: list[int], others: list[int]) -> None:
    assert Durations.total([counted(*some), counted(*others)]) == counted(*some, *others)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "\N{EN DASH}"), (0.0, "0 s"), (45.2, "45 s"), (60.0, "1 min"), (3599.0, "60 min"), (5400.0, "1.5 h"),
        (40_000.0, "11 h"), (108_000.0, "30 h"), (259_200.0, "3.0 days"), (math.inf, "over 90 days"),
    ],
)  # fmt: skip
def test_a_duration_is_said_as_a_person_would(seconds: float | None, words: str) -> None:
    assert charts.duration(seconds) == words


@pytest.mark.parametrize(
    ("largest", "top"), [(0, 2), (1, 2), (3, 4), (12, 12), (13, 16), (17, 20), (1_234_567, 1_600_000)]
)
def test_a_scale_ends_at_a_round_number(largest: int, top: int) -> None:
    assert charts.nice_top(largest) == top
