"""A tenant has a rate; a token bucket holds it to that in each process, by a clock that the test sets."""

from __future__ import annotations

import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured
from hypothesis import given
from hypothesis import strategies as st

from portal.dynamo import meter
from portal.load import tenant_limiter
from portal.load.tenant_limiter import UNLIMITED, TenantLimiter
from portal.quotas import TokenBucket

# --- rates ---


@pytest.mark.parametrize(
    ("text", "plan", "own", "rate"),
    [
        ("standard=50 large=250.5", "large", None, 250.5),
        ("standard=50 large=250.5", "large", 3, 3),
        ("standard=50 large=250.5", "gold", None, 50),
        ("large=250", "gold", None, UNLIMITED),
        ("off", "standard", 3, UNLIMITED),
    ],
)
def test_a_rate_is_the_tenants_own_or_its_plans_or_the_standard_one(
    settings: LazySettings, text: str, plan: str, own: float | None, rate: float
) -> None:
    settings.TENANT_RATES = text
    assert tenant_limiter.of(plan, own) == rate


@pytest.mark.parametrize(
    "text", ["standard", "standard=0", "standard=-1", "standard=many", "a b=1", "standard=1000000"]
)
def test_rates_that_cannot_be_read_are_refused(settings: LazySettings, text: str) -> None:
    settings.TENANT_RATES = text
    with pytest.raises(ImproperlyConfigured, match="TENANT_RATES"):
        tenant_limiter.of("standard", None)


# --- a bucket ---


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


# --- the limiter of one process ---


ACME, GLOBEX = "a" * 32, "b" * 32


class SteppedLimiter:
    """A limiter with a clock that stands until it is set; one tenant's rate is 5 units a second."""

    def __init__(self, *, most: int = 10_000) -> None:
        self.clock = HandClock()
        self.limiter = TenantLimiter(clock=self.clock, most=most)

    def spend(self, units: float = 1, *, tenant: str = ACME, rate: float = 5) -> bool:
        answer = self.limiter.spend(tenant, units, per_second=rate)
        return answer is None or answer.allowed

    def flood(self, **how: object) -> int:
        """Ask until it is refused, and return how often it was not."""
        count = 0
        while self.spend(**how):  # type: ignore[arg-type]
            count += 1
        return count


@pytest.fixture
def limited() -> SteppedLimiter:
    return SteppedLimiter()


def test_a_rested_tenant_may_spend_ten_seconds_worth_at_once_and_then_its_rate(limited: SteppedLimiter) -> None:
    assert limited.flood() == 50
    limited.clock.now += 3
    assert limited.flood() == 15


def test_a_change_takes_more_and_is_refused_earlier(limited: SteppedLimiter) -> None:
    assert limited.flood(units=5) == 10
    limited.clock.now += 0.5
    assert not limited.spend(5)
    assert limited.spend(1)


def test_a_tenants_flood_takes_nothing_of_anothers_and_calls_nothing(limited: SteppedLimiter) -> None:
    with meter.measure() as bill:
        limited.flood()
        assert limited.flood(tenant=GLOBEX) == 50
    assert bill.calls == []


def test_a_tenant_without_a_limit_is_counted_and_never_refused(limited: SteppedLimiter) -> None:
    assert all(limited.limiter.spend(ACME, 5, per_second=0) is None for _ in range(1000))
    assert limited.limiter.asked()[ACME] == (0, 5000)


def test_what_was_refused_is_counted_apart(limited: SteppedLimiter) -> None:
    limited.flood()
    limited.spend(5)
    assert limited.limiter.asked()[ACME] == (5, 56)


def test_a_rate_that_is_raised_counts_from_the_next_request_on(limited: SteppedLimiter) -> None:
    limited.flood()
    limited.spend(rate=100)
    limited.clock.now += 1
    assert limited.flood(rate=100) == 100


def test_a_refusal_is_foreseen_where_it_is_certain_and_takes_nothing(limited: SteppedLimiter) -> None:
    assert limited.limiter.foresee(ACME, 1) is None, "never heard of"
    limited.spend()
    assert limited.limiter.foresee(ACME, 1) is None
    assert limited.flood() == 49, "what was foreseen has taken nothing"
    foreseen = limited.limiter.foresee(ACME, 1)
    assert foreseen is not None
    assert not foreseen.allowed


def test_now_and_then_a_request_is_let_through_to_hear_of_a_raised_rate(limited: SteppedLimiter) -> None:
    limited.flood(units=0.1, rate=0.01)
    assert limited.limiter.foresee(ACME, 5) is not None
    limited.clock.now += 6
    assert limited.limiter.foresee(ACME, 5) is None


def test_the_headers_tell_the_quota_what_is_left_and_when_to_come_back(limited: SteppedLimiter) -> None:
    answer = limited.limiter.spend(ACME, 5, per_second=5)
    assert answer is not None
    assert answer.headers == {"RateLimit-Policy": '"desk";q=50;w=10', "RateLimit": '"desk";r=45;t=1'}
    limited.flood()
    refused = limited.limiter.spend(ACME, 5, per_second=5)
    assert refused is not None
    assert refused.headers["RateLimit"] == '"desk";r=0;t=1'
    limited.clock.now += refused.seconds
    assert limited.spend(5), "who comes back when it was told to is let through"


def test_memory_is_bounded_by_the_tenants_that_were_met_last() -> None:
    limited = SteppedLimiter(most=3)
    for number in range(10):
        limited.spend(tenant=f"{number:032x}")
    assert [tenant[-1] for tenant in limited.limiter.asked()] == ["7", "8", "9"]


def test_a_process_with_a_share_of_the_rate_lets_that_much_through(limited: SteppedLimiter) -> None:
    limited.limiter.divide(0.5, {})
    assert limited.flood() == 25
    limited.limiter.divide(0.5, {ACME: 1.0})
    limited.spend()
    limited.clock.now += 2
    assert limited.flood() == 10


def test_even_a_small_share_takes_a_form_or_two(limited: SteppedLimiter) -> None:
    limited.limiter.divide(0.001, {})
    assert limited.flood(units=5) == 2


@given(jumps=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_a_clock_that_jumps_gives_no_free_budget_and_locks_nobody_out(jumps: list[float]) -> None:
    limited = SteppedLimiter()
    limited.flood()
    for jump in jumps:
        limited.clock.now += jump
        # As if it had rested: a full bucket, once. Back: nothing.
        assert limited.flood() <= (50 if jump > 0 else 0)
        limited.clock.now += 1
        assert 4 <= limited.flood() <= 6, "the next second gives a second's worth, wherever the clock was"
