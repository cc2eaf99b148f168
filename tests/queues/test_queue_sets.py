"""Which four queues a tenant is given: checked for every pair of sets, and for every beginning of the list."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.queues import queue_sets
from portal.errors import Invalid

COUNTS = {8: 14, 16: 140, 32: 1_240, 64: 10_416}


@pytest.mark.parametrize(("queues", "number"), COUNTS.items())
def test_there_are_as_many_sets_as_the_formula_says_and_each_stands_there_once(queues: int, number: int) -> None:
    every = queue_sets.sets(queues)
    assert len(every) == len(set(every)) == number == queues * (queues - 1) * (queues - 2) // 24
    assert all(queue_sets.is_set(one, queues) for one in every)


@pytest.mark.parametrize("queues", COUNTS)
def test_any_three_queues_are_in_one_set_alone_so_no_two_sets_share_more_than_two(queues: int) -> None:
    threes = Counter(frozenset(three) for one in queue_sets.sets(queues) for three in combinations(sorted(one), 3))
    assert set(threes.values()) == {1}


@pytest.mark.parametrize("queues", COUNTS)
def test_any_beginning_of_the_list_loads_all_queues_alike(queues: int) -> None:
    load = Counter(dict.fromkeys(range(queues), 0))
    for one in queue_sets.sets(queues):
        load.update(one)
        assert max(load.values()) - min(load.values()) <= 1


@pytest.mark.parametrize(("queues", "tenants"), [(16, 20), (32, 40), (64, 336)])
def test_the_first_tenants_share_at_most_one_queue(queues: int, tenants: int) -> None:
    first = queue_sets.sets(queues)[:tenants]
    assert max(len(one & other) for one, other in combinations(first, 2)) == 1


@pytest.mark.parametrize(("before", "after"), [(8, 16), (8, 32), (16, 32), (32, 64)])
def test_sets_stay_sets_when_queues_are_added(before: int, after: int) -> None:
    assert set(queue_sets.sets(before)) <= set(queue_sets.sets(after))


@pytest.mark.parametrize(("before", "after"), [(8, 16), (8, 32), (16, 32), (32, 64)])
def test_after_queues_were_added_new_tenants_are_given_sets_that_use_them(before: int, after: int) -> None:
    old = queue_sets.sets(before)
    given = queue_sets.sets(after, beyond=before)
    new = given[: len(given) - len(old)]
    assert all(max(one) >= before for one in new)
    assert not set(new) & set(old)
    assert set(given) == set(queue_sets.sets(after))


@pytest.mark.parametrize(("before", "after"), [(8, 16), (16, 32), (32, 64)])
def test_the_added_queues_are_never_given_to_fewer_new_tenants_than_the_old_ones(before: int, after: int) -> None:
    load = Counter(dict.fromkeys(range(after), 0))
    for one in queue_sets.sets(after, beyond=before)[: -len(queue_sets.sets(before))]:
        load.update(one)
        assert max(load[queue] for queue in range(before)) <= min(load[queue] for queue in range(before, after)) + 1


@given(queues=st.sampled_from([8, 16, 32]), position=st.integers(0, 10_000), tenants=st.integers(1, 400))
def test_past_the_end_of_the_list_sets_repeat_evenly(queues: int, position: int, tenants: int) -> None:
    assert queue_sets.nth(position, queues) == queue_sets.nth(position + COUNTS[queues], queues)
    used = Counter(queue_sets.nth(i, queues) for i in range(tenants))
    assert max(used.values()) - min(used[one] for one in queue_sets.sets(queues)) <= 1


@given(numbers=st.frozensets(st.integers(-1, 9), min_size=3, max_size=5))
def test_what_is_none_of_the_sets_is_told_apart(numbers: frozenset[int]) -> None:
    assert queue_sets.is_set(numbers, 8) == (numbers in queue_sets.sets(8))


@pytest.mark.parametrize("queues", [-8, 0, 1, 4, 12, 33, 128])
def test_other_numbers_of_queues_are_refused(queues: int) -> None:
    with pytest.raises(Invalid, match="power of two from 8 to 64"):
        queue_sets.sets(queues)
