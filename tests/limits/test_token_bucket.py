"""A token bucket lets a burst through, and then so many a second; a clock in the test's hand says how late it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.quotas import TokenBucket


class HandClock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def full_bucket(per_second: float = 2.0, burst: float = 3) -> tuple[TokenBucket, HandClock]:
    clock = HandClock()
    return TokenBucket(per_second=per_second, burst=burst, clock=clock), clock


def test_a_full_bucket_lets_its_burst_through_and_no_more() -> None:
    bucket, _ = full_bucket(burst=3)
    assert [bucket.take() for _ in range(4)] == [True, True, True, False]


def test_a_token_that_was_not_needed_can_be_given_back_and_never_overfills_it() -> None:
    bucket, _ = full_bucket(burst=1)
    assert bucket.take()
    bucket.give_back()
    bucket.give_back()
    assert [bucket.take(), bucket.take()] == [True, False]


def test_a_clock_that_goes_back_fills_nothing() -> None:
    bucket, clock = full_bucket(burst=1)
    assert bucket.take()
    clock.now -= 100
    assert not bucket.take()


@given(
    per_second=st.floats(0.1, 500),
    burst=st.integers(1, 50),
    steps=st.lists(st.floats(0, 5), min_size=1, max_size=60),
)
def test_no_stretch_of_time_lets_more_through_than_burst_and_rate(
    per_second: float, burst: int, steps: list[float]
) -> None:
    bucket, clock = full_bucket(per_second, burst)
    taken = 0
    for step in steps:
        clock.now += step
        while bucket.take():
            taken += 1
        assert taken <= burst + (clock.now - HandClock.now) * per_second + 1e-6


@given(per_second=st.floats(0.01, 500), before=st.floats(0, 3))
def test_who_waits_as_long_as_it_says_gets_a_token(per_second: float, before: float) -> None:
    bucket, clock = full_bucket(per_second, burst=1)
    bucket.take()
    clock.now += before
    clock.now += bucket.seconds_to_next()
    assert bucket.take()


@pytest.mark.parametrize(("per_second", "burst"), [(0.0, 1), (-1.0, 1), (1.0, 0)])
def test_a_bucket_that_never_lets_anything_through_is_refused(per_second: float, burst: float) -> None:
    with pytest.raises(ValueError, match="a bucket"):
        TokenBucket(per_second=per_second, burst=burst)
