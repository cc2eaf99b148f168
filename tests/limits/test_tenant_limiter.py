"""The limiter of one process: by a clock in the test's hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as budget
from hypothesis import strategies as st

from portal.dynamo import meter
from portal.load.tenant_limiter import TenantLimiter
from tests.limits.test_token_bucket import HandClock

ACME, GLOBEX = "a" * 32, "b" * 32


class Door:
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
def door() -> Door:
    return Door()


def test_a_rested_tenant_may_spend_ten_seconds_worth_at_once_and_then_its_rate(door: Door) -> None:
    assert door.flood() == 50
    door.clock.now += 3
    assert door.flood() == 15


def test_a_change_takes_more_and_is_refused_earlier(door: Door) -> None:
    assert door.flood(units=5) == 10
    door.clock.now += 0.5
    assert not door.spend(5)
    assert door.spend(1)


def test_a_tenants_flood_takes_nothing_of_anothers(door: Door) -> None:
    door.flood()
    assert door.flood(tenant=GLOBEX) == 50


def test_a_tenant_without_a_limit_is_counted_and_never_refused(door: Door) -> None:
    assert all(door.limiter.spend(ACME, 5, per_second=0) is None for _ in range(1000))
    assert door.limiter.asked()[ACME] == (0, 5000)


def test_what_was_refused_is_counted_apart(door: Door) -> None:
    door.flood()
    door.spend(5)
    assert door.limiter.asked()[ACME] == (5, 56)


def test_a_rate_that_is_raised_counts_from_the_next_request_on(door: Door) -> None:
    door.flood()
    door.spend(rate=100)
    door.clock.now += 1
    assert door.flood(rate=100) == 100


def test_nothing_is_foreseen_of_a_tenant_that_was_never_heard_of(door: Door) -> None:
    assert door.limiter.foresee(ACME, 1) is None


def test_a_refusal_is_foreseen_where_it_is_certain_and_takes_nothing(door: Door) -> None:
    door.spend()
    assert door.limiter.foresee(ACME, 1) is None
    assert door.flood() == 49, "what was foreseen has taken nothing"
    foreseen = door.limiter.foresee(ACME, 1)
    assert foreseen is not None
    assert not foreseen.allowed


def test_now_and_then_a_request_is_let_through_to_hear_of_a_raised_rate(door: Door) -> None:
    door.flood(units=0.1, rate=0.01)
    assert door.limiter.foresee(ACME, 5) is not None
    door.clock.now += 6
    assert door.limiter.foresee(ACME, 5) is None


def test_the_headers_tell_the_quota_what_is_left_and_when_to_come_back(door: Door) -> None:
    answer = door.limiter.spend(ACME, 5, per_second=5)
    assert answer is not None
    assert answer.headers == {"RateLimit-Policy": '"desk";q=50;w=10', "RateLimit": '"desk";r=45;t=1'}
    door.flood()
    refused = door.limiter.spend(ACME, 5, per_second=5)
    assert refused is not None
    assert refused.headers["RateLimit"] == '"desk";r=0;t=1'
    door.clock.now += refused.seconds
    assert door.spend(5), "who comes back when it was told to is let through"


def test_memory_is_bounded_by_the_tenants_that_were_met_last() -> None:
    door = Door(most=3)
    for number in range(10):
        door.spend(tenant=f"{number:032x}")
    assert [tenant[-1] for tenant in door.limiter.asked()] == ["7", "8", "9"]


def test_a_process_with_a_share_of_the_rate_lets_that_much_through(door: Door) -> None:
    door.limiter.divide(0.5, {})
    assert door.flood() == 25
    door.limiter.divide(0.5, {ACME: 1.0})
    door.spend()
    door.clock.now += 2
    assert door.flood() == 10


def test_even_a_small_share_takes_a_form_or_two(door: Door) -> None:
    door.limiter.divide(0.001, {})
    assert door.flood(units=5) == 2


def test_deciding_calls_nothing(door: Door) -> None:
    with meter.measure() as bill:
        door.flood()
    assert bill.calls == []


@budget(max_examples=60)
@given(jumps=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20))
def test_a_clock_that_jumps_gives_no_free_budget_and_locks_nobody_out(jumps: list[float]) -> None:
    door = Door()
    door.flood()
    for jump in jumps:
        door.clock.now += jump
        # As if it had rested: a full bucket, once. Back: nothing.
        assert door.flood() <= (50 if jump > 0 else 0)
        door.clock.now += 1
        assert 4 <= door.flood() <= 6, "the next second gives a second's worth, wherever the clock was"
