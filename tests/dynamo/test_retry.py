"""What was refused for a passing reason is repeated, within one budget, after pauses drawn by lot."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from portal.dynamo import client, retry
from portal.dynamo.retry import retrying
from portal.errors import Conflict, PortalError, Reason, Throttled, TransactionRefused, Unavailable
from portal.quotas import RecentTenants, TokenBucket


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The bound that each pause was drawn below; nobody sleeps."""
    drawn: list[float] = []
    monkeypatch.setattr(retry, "uniform", lambda low, high: (drawn.append(high), low)[1])
    monkeypatch.setattr(retry, "sleep", lambda seconds: None)
    return drawn


class Failing:
    """Raises Throttled the first `times` times, and counts how often it is called."""

    def __init__(self, times: int) -> None:
        self.times, self.calls = times, 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise Throttled("busy")
        return "done"


def throttled(error: PortalError) -> bool:
    return isinstance(error, Throttled)


def test_what_succeeds_is_done_once(bounds: list[float]) -> None:
    attempt = Failing(0)
    assert retrying(attempt, again=throttled, attempts=5) == "done"
    assert (attempt.calls, bounds) == (1, [])


def test_a_pause_is_drawn_below_a_bound_that_doubles_up_to_the_longest(bounds: list[float]) -> None:
    attempt = Failing(5)
    assert retrying(attempt, again=throttled, attempts=6, first=0.1, longest=0.5) == "done"
    assert bounds == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_the_last_error_is_raised_when_the_attempts_are_used_up(bounds: list[float]) -> None:
    attempt = Failing(10)
    with pytest.raises(Throttled, match="busy"):
        retrying(attempt, again=throttled, attempts=4)
    assert attempt.calls == 4


def test_another_error_can_be_raised_when_the_attempts_are_used_up(bounds: list[float]) -> None:
    with pytest.raises(Conflict) as caught:
        retrying(Failing(10), again=throttled, attempts=2, given_up=lambda: Conflict("Too much at the same time."))
    assert isinstance(caught.value.__cause__, Throttled)


def test_an_error_that_does_not_pass_is_raised_at_once(bounds: list[float]) -> None:
    def attempt() -> None:
        raise Unavailable("away")

    with pytest.raises(Unavailable):
        retrying(attempt, again=throttled, attempts=5)
    assert bounds == []


def nested(attempt: Callable[[], str]) -> Callable[[], str]:
    return lambda: retrying(attempt, again=throttled, attempts=10)


def test_a_repetition_inside_a_repetition_spends_the_outer_budget(bounds: list[float]) -> None:
    attempt = Failing(1000)
    with pytest.raises(Throttled):
        retrying(nested(nested(attempt)), again=throttled, attempts=4)
    # Once for each of three pauses; and when the budget is empty neither of the outer two begins again.
    assert (attempt.calls, len(bounds)) == (4, 3)


def test_calls_that_fan_out_share_the_budget_of_the_repetition_around_them(bounds: list[float]) -> None:
    attempts = [Failing(1000) for _ in range(4)]
    with pytest.raises(Throttled):
        retrying(lambda: client.fan_out([nested(a) for a in attempts]), again=throttled, attempts=5)
    assert len(bounds) == 4


def test_a_budget_ends_with_its_repetition(bounds: list[float]) -> None:
    for _ in range(2):
        attempt = Failing(3)
        assert retrying(attempt, again=throttled, attempts=4) == "done"


# --- refusals by name ---

FAILED = Reason("ConditionalCheckFailed", "", None)
CONFLICT = Reason("TransactionConflict", "", None)


def refused(**reasons: Reason | None) -> TransactionRefused:
    return TransactionRefused([*reasons.values()], names=tuple(reasons))


def test_a_refusal_is_asked_by_the_name_of_a_member() -> None:
    error = refused(seat=FAILED, tenant=None)
    assert error.reason("seat") is FAILED
    assert error.reason("tenant") is None


def test_of_members_that_share_a_name_the_first_refused_answers() -> None:
    error = TransactionRefused([None, FAILED, CONFLICT], names=("account", "account", "account"))
    assert error.reason("account") is FAILED


def test_a_name_that_no_member_has_is_a_mistake() -> None:
    with pytest.raises(KeyError):
        refused(seat=FAILED).reason("saet")


def test_a_refusal_passes_where_only_conflicts_and_moving_members_stand_in_the_way() -> None:
    assert refused(seat=CONFLICT, chain=None).is_passing()
    assert refused(seat=CONFLICT, chain=FAILED).is_passing("chain")
    assert not refused(seat=FAILED, chain=FAILED).is_passing("chain")
    assert not TransactionRefused([FAILED]).is_passing("chain")


# --- one bucket for each tenant ---

ACME, GLOBEX = "a" * 32, "b" * 32


@pytest.fixture
def buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each tenant may repeat three times, and the clock stands."""
    made = RecentTenants(lambda _: TokenBucket(per_second=1, burst=3, clock=lambda: 0.0))
    monkeypatch.setattr(retry, "_buckets", made)


def repeated(tenant_id: str) -> int:
    """How often something that never succeeds is tried for a tenant."""
    attempt = Failing(1000)
    with pytest.raises(Throttled), retry.on_behalf_of(tenant_id):
        retrying(attempt, again=throttled, attempts=3)
    return attempt.calls


def test_all_repetitions_of_a_tenant_come_out_of_one_bucket_and_those_of_others_do_not(
    bounds: list[float], buckets: None
) -> None:
    assert [repeated(ACME) for _ in range(3)] == [3, 2, 1]
    assert repeated(GLOBEX) == 3


def test_workers_and_commands_repeat_as_their_budgets_say(bounds: list[float], buckets: None) -> None:
    for _ in range(4):
        attempt = Failing(2)
        assert retrying(attempt, again=throttled, attempts=3) == "done"
