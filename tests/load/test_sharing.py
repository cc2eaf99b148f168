"""Many processes, one tenant's rate: simulated, each with its own limiter, on clocks that the test moves."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from portal.load.rate_sharing import DEAD_ROUNDS, ROUND_SECONDS, RateSharing, SharePost
from portal.load.tenant_limiter import TenantLimiter
from tests.load.test_tenant_limiter import HandClock

TENANT, OTHER = "a" * 32, "b" * 32
RATE = 100.0  # units a second
BURST = 10 * RATE
STEP = 0.5  # seconds
UNITS = 2  # of each request


class Fleet:
    """So many processes, and the table in which they post. Each takes its rounds at a moment of its own."""

    def __init__(self, processes: int) -> None:
        self.clock = HandClock()
        self.began = self.clock.now
        self.chance = random.Random(processes)  # noqa: S311  # repeatable
        self.stored: dict[str, SharePost] = {}
        self.writes = self.reads = 0
        self.away = False
        self.limiters: list[TenantLimiter] = []
        self.sharers: list[RateSharing] = []
        self.due: list[float] = []
        self.add(processes)

    def add(self, processes: int, *, expected: int | None = None) -> None:
        for _ in range(processes):
            self.limiters.append(TenantLimiter(clock=self.clock))
            me = f"process {len(self.sharers)}"
            self.sharers.append(RateSharing(me, processes=expected or processes, clock=self.clock))
            self.due.append(self.clock.now + self.chance.random() * ROUND_SECONDS)

    def run(self, seconds: float, load: Callable[[int], float]) -> list[float]:
        """Ask each process for so many units a second; what each let through."""
        through = [0.0] * len(self.limiters)
        carried = [0.0] * len(self.limiters)
        for _ in range(round(seconds / STEP)):
            self.clock.now += STEP
            for number, limiter in enumerate(self.limiters):
                if self.clock.now >= self.due[number]:
                    self.round(number)
                carried[number] += load(number) * STEP
                while carried[number] >= UNITS:
                    carried[number] -= UNITS
                    answer = limiter.spend(TENANT, UNITS, per_second=RATE)
                    through[number] += UNITS * (answer is not None and answer.allowed)
        return through

    def round(self, number: int) -> None:
        sharer, limiter = self.sharers[number], self.limiters[number]
        self.due[number] += ROUND_SECONDS
        sharer.count(limiter.asked())
        post = sharer.post()
        if not self.away:
            if post is not None:
                self.writes += 1
                self.stored[post.process] = post
            self.reads += 1
            sharer.read(self.stored.values())
        limiter.divide(*sharer.shares())


@pytest.fixture
def fleet() -> Fleet:
    """64 processes that know each other."""
    fleet = Fleet(64)
    fleet.run(10, lambda _: 0)
    return fleet


def evenly(units: float) -> Callable[[int], float]:
    return lambda _: units / 64


def test_64_processes_under_a_flood_stay_within_a_tenth_of_the_budget_from_its_first_second_on(fleet: Fleet) -> None:
    for seconds in (5, 15, 30):
        before = fleet.clock.now
        through = sum(fleet.run(seconds, evenly(15 * RATE)))
        burst = BURST if seconds == 5 else 0
        assert 0.9 * seconds * RATE <= through <= 1.1 * (seconds * RATE + burst), (before, through)


def test_a_flood_gets_what_its_tenant_may_have_within_a_twentieth(fleet: Fleet) -> None:
    fleet.run(20, evenly(15 * RATE))
    assert sum(fleet.run(40, evenly(15 * RATE))) == pytest.approx(40 * RATE, rel=0.05)


def test_a_flood_that_reaches_processes_unevenly_gets_the_same(fleet: Fleet) -> None:
    def load(number: int) -> float:
        return 15 * RATE / 2 ** (number + 1)

    fleet.run(20, load)
    assert sum(fleet.run(40, load)) == pytest.approx(40 * RATE, rel=0.05)


def test_one_process_alone_gets_the_whole_budget(fleet: Fleet) -> None:
    def load(number: int) -> float:
        return 3 * RATE if number == 7 else 0

    fleet.run(10, load)
    assert sum(fleet.run(40, load)) == pytest.approx(40 * RATE, rel=0.05)


def test_a_load_that_moves_to_all_processes_gets_no_more_meanwhile(fleet: Fleet) -> None:
    fleet.run(20, lambda number: 15 * RATE if number == 7 else 0)
    moved = sum(fleet.run(10, evenly(15 * RATE)))
    # Of tokens that single processes had saved while nothing came their way.
    saved = 64 * 10
    assert moved <= 1.1 * (10 * RATE + saved)
    assert sum(fleet.run(30, evenly(15 * RATE))) == pytest.approx(30 * RATE, rel=0.05)


def test_of_an_uneven_load_within_the_budget_nothing_is_refused_once_it_is_told(fleet: Fleet) -> None:
    def load(number: int) -> float:
        return RATE * {0: 0.5, 1: 0.2, 2: 0.1}.get(number, 0.0)

    fleet.run(12, load)
    assert sum(fleet.run(40, load)) == pytest.approx(40 * 0.8 * RATE, abs=8)


def test_a_tenant_with_little_to_do_costs_nothing(fleet: Fleet) -> None:
    quiet = fleet.writes
    fleet.run(40, lambda _: 0)
    idle = fleet.writes - quiet
    fleet.run(40, evenly(0.5 * RATE))
    assert fleet.writes - quiet - idle == pytest.approx(idle, abs=64)
    assert all(not post.asked for post in fleet.stored.values())


def test_when_the_flood_is_over_nobody_tells_of_it_any_more(fleet: Fleet) -> None:
    fleet.run(20, evenly(15 * RATE))
    fleet.run(40, evenly(0.2 * RATE))
    assert all(not post.asked for post in fleet.stored.values())
    assert {sharer.shares()[0] for sharer in fleet.sharers} == {1 / 64}


def test_processes_that_die_leave_their_part_to_the_others(fleet: Fleet) -> None:
    fleet.limiters, fleet.sharers, fleet.due = fleet.limiters[:16], fleet.sharers[:16], fleet.due[:16]
    fleet.run(DEAD_ROUNDS * ROUND_SECONDS + 10, lambda _: 15 * RATE / 16)
    assert {sharer.processes for sharer in fleet.sharers} == {16}
    assert sum(fleet.run(40, lambda _: 15 * RATE / 16)) == pytest.approx(40 * RATE, rel=0.05)


def test_processes_that_are_added_take_their_part_from_the_others(fleet: Fleet) -> None:
    fleet.run(20, evenly(15 * RATE))
    fleet.add(16, expected=80)
    fleet.run(6, lambda _: 15 * RATE / 80)
    assert sum(fleet.run(30, lambda _: 15 * RATE / 80)) == pytest.approx(30 * RATE, rel=0.05)


def test_while_the_database_is_away_each_process_has_an_even_part(fleet: Fleet) -> None:
    fleet.run(20, lambda number: 3 * RATE if number == 7 else 0)
    fleet.away = True
    fleet.run(10, evenly(15 * RATE))
    assert sum(fleet.run(30, evenly(15 * RATE))) == pytest.approx(30 * RATE, rel=0.05)


def test_a_process_that_knows_no_other_has_all_of_a_rate_and_one_of_two_expected_has_half() -> None:
    alone, one_of_two = RateSharing("me"), RateSharing("me", processes=2)
    assert (alone.shares(), one_of_two.shares()) == ((1, {}), (0.5, {}))


def test_a_post_tells_of_the_tenants_that_ask_for_most_and_has_a_bound() -> None:
    clock = HandClock()
    limiter, sharer = TenantLimiter(clock=clock), RateSharing("me", clock=clock)
    for number in range(300):
        limiter.spend(f"{number:032x}", 1 + number, per_second=0.1)
    clock.now += ROUND_SECONDS
    sharer.count(limiter.asked())
    post = sharer.post()
    assert post is not None
    assert sorted(post.asked) == [f"{number:032x}" for number in range(200, 300)]
