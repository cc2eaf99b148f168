"""What may begin now: a tenant gets its cap and its rate at most, the queue with the fewest running goes first."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.queues.limits import HANGS_SECONDS, DeliveryLimits, Schedule

TENANTS = ["a" * 32, "b" * 32, "c" * 32]


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Case:
    slots: int
    limits: DeliveryLimits

    def schedule(self, clock: Clock) -> Schedule:
        return Schedule(self.slots, limits_of=lambda tenant_id: self.limits, clock=clock)


cases = st.builds(
    Case,
    st.integers(1, 12),
    st.builds(DeliveryLimits, st.integers(1, 8), st.floats(0.5, 20), st.integers(1, 6)),
)


def generous(slots: int, in_flight: int) -> Schedule:
    return Schedule(slots, limits_of=lambda tenant_id: DeliveryLimits(in_flight, 1000, 1000))


steps = st.lists(
    st.one_of(
        st.tuples(st.just("begin"), st.integers(0, 4), st.sampled_from(TENANTS), st.booleans()),
        st.tuples(st.just("end"), st.integers(0, 30)),
        st.tuples(st.just("wait"), st.floats(0, 3)),
    ),
    max_size=80,
)


@given(cases, steps)
def test_whatever_comes_no_tenant_has_more_than_its_cap_its_rate_and_one_suspect(case: Case, steps: list) -> None:
    clock = Clock()
    schedule = case.schedule(clock)
    running: list[tuple[int, str, bool]] = []
    begun: Counter[str] = Counter()
    for step in steps:
        if step[0] == "begin":
            _, queue, tenant, suspect = step
            if schedule.free and not schedule.begin(queue, tenant, is_suspect=suspect):
                running.append((queue, tenant, suspect))
                begun[tenant] += 1
        elif step[0] == "end" and running:
            queue, tenant, suspect = running.pop(step[1] % len(running))
            schedule.end(queue, tenant, is_suspect=suspect)
        elif step[0] == "wait":
            clock.now += step[1]
        of_tenant = Counter(tenant for _, tenant, _ in running)
        assert schedule.running == len(running) <= case.slots
        cap = min(case.limits.in_flight, (case.slots + 1) // 2)
        assert all(of_tenant[tenant] <= cap for tenant in TENANTS)
        assert all(begun[tenant] <= case.limits.burst + case.limits.per_second * clock.now + 1e-6 for tenant in TENANTS)
        assert sum(suspect for _, _, suspect in running) <= 1


@given(cases, steps)
def test_what_is_refused_takes_nothing(case: Case, steps: list) -> None:
    schedule, again = (case.schedule(Clock()) for _ in range(2))
    taken = []
    for step in steps:
        if step[0] == "begin" and schedule.free:
            _, queue, tenant, suspect = step
            if not schedule.begin(queue, tenant, is_suspect=suspect):
                taken.append((queue, tenant, suspect))
    for queue, tenant, suspect in taken:  # without those that were refused in between, the same may begin
        assert again.begin(queue, tenant, is_suspect=suspect) == 0.0
    assert again.in_turn(range(5)) == schedule.in_turn(range(5))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_the_queue_with_the_fewest_running_goes_first_and_then_the_one_that_waits_longest(queues: list[int]) -> None:
    schedule = generous(100, 50)
    last = dict.fromkeys(range(6), -1)
    for number, queue in enumerate(queues):
        assert not schedule.begin(queue, TENANTS[0])
        last[queue] = number
    running = Counter(queues)
    assert schedule.in_turn(range(6)) == sorted(range(6), key=lambda q: (running[q], last[q], q))


def test_a_tenant_that_hangs_leaves_the_other_slots_to_the_others() -> None:
    schedule = generous(8, 2)
    hanging = [schedule.begin(0, TENANTS[0]) for _ in range(8)]
    assert hanging.count(0.0) == 2
    assert [schedule.begin(0, TENANTS[1]) for _ in range(2)] == [0.0, 0.0]
    assert schedule.free == 4


def test_a_refusal_says_when_to_try_again() -> None:
    clock = Clock()
    schedule = Case(8, DeliveryLimits(8, 0.5, 1)).schedule(clock)
    assert schedule.begin(0, TENANTS[0]) == 0.0
    seconds = schedule.begin(0, TENANTS[0])
    assert seconds == pytest.approx(2.0)
    clock.now += seconds
    assert schedule.begin(0, TENANTS[0]) == 0.0


def test_without_a_slot_nothing_can_begin() -> None:
    schedule = generous(1, 1)
    schedule.begin(0, TENANTS[0])
    with pytest.raises(RuntimeError):
        schedule.begin(1, TENANTS[1])


def test_a_suspect_that_hangs_makes_way_for_the_next() -> None:
    clock = Clock()
    schedule = Case(8, DeliveryLimits(4, 1000, 1000)).schedule(clock)
    assert schedule.begin(0, TENANTS[0], is_suspect=True) == 0.0
    assert schedule.begin(0, TENANTS[1], is_suspect=True) > 0
    clock.now += HANGS_SECONDS
    assert schedule.begin(0, TENANTS[1], is_suspect=True) == 0.0
