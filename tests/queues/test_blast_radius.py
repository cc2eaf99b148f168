"""Who shares queues with whom: counted cleverly, and held against counting every pair."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.queues import blast_radius, queue_sets
from delivery.queues.blast_radius import PUBLISHED, PUBLISHED_NOISY

assignments = st.lists(st.frozensets(st.integers(0, 9), min_size=1, max_size=4), max_size=25).map(
    lambda drawn: dict(enumerate(drawn))
)


def pair_by_pair(assigned: dict[int, frozenset[int]]) -> Counter[int]:
    return Counter(len(one & other) for one, other in combinations(assigned.values(), 2))


@given(assigned=assignments)
def test_the_count_is_that_of_every_pair(assigned: dict[int, frozenset[int]]) -> None:
    counted = {shared: int(n) for shared, n in enumerate(blast_radius.pairs_by_shared(assigned)) if n}
    assert counted == pair_by_pair(assigned)


@given(assigned=assignments)
def test_no_pair_shares_more_than_the_worst_one(assigned: dict[int, frozenset[int]]) -> None:
    worst = blast_radius.worst_pair(assigned)
    most = max(pair_by_pair(assigned), default=0)
    assert (len(worst.shared) if worst else 0) == most
    if worst:
        assert worst.one != worst.other
        assert assigned[worst.one] & assigned[worst.other] == worst.shared


@given(assigned=assignments.filter(bool), data=st.data())
def test_neighbours_are_those_that_share_a_queue_the_most_first(
    assigned: dict[int, frozenset[int]], data: st.DataObject
) -> None:
    tenant = data.draw(st.sampled_from(sorted(assigned)))
    found = blast_radius.neighbours(assigned, tenant)
    shared = {o: assigned[tenant] & q for o, q in assigned.items() if o != tenant and assigned[tenant] & q}
    assert found == shared
    assert [len(queues) for queues in found.values()] == sorted(map(len, shared.values()), reverse=True)


def test_the_mean_of_those_affected_is_that_of_counting_each() -> None:
    pairs = blast_radius.pairs_by_shared(PUBLISHED)
    each = [len(blast_radius.neighbours(PUBLISHED, tenant)) for tenant in PUBLISHED]
    assert blast_radius.mean_affected(pairs, len(PUBLISHED)) == pytest.approx(sum(each) / len(each))


def test_the_published_table_is_as_the_slides_count_it() -> None:
    assert (len(PUBLISHED), {len(queues) for queues in PUBLISHED.values()}) == (20, {3})
    affected = blast_radius.neighbours(PUBLISHED, PUBLISHED_NOISY)
    # Thirteen, as the slides say. They name 11, which shares nothing, in place of 12.
    assert sorted(affected) == [1, 2, 3, 4, 5, 6, 8, 9, 10, 12, 14, 15, 16]
    assert max(map(len, affected.values())) == 2


def test_two_pairs_of_tenants_of_the_published_table_have_the_same_three() -> None:
    assert blast_radius.pairs_by_shared(PUBLISHED)[3] == 2
    assert PUBLISHED[7] == PUBLISHED[13]
    worst = blast_radius.worst_pair(PUBLISHED)
    assert worst is not None
    assert (worst.one, worst.other, len(worst.shared)) == (6, 10, 3)


def test_ours_lets_nobody_share_more_than_two_of_four_up_to_1240_tenants() -> None:
    assigned = dict(enumerate(queue_sets.sets(32)))
    pairs = blast_radius.pairs_by_shared(assigned)
    assert pairs[3:] == [0, 0]
    chance = blast_radius.by_chance(32, 4, 1_240)
    assert sum(chance) == pytest.approx(sum(pairs)) == 1_240 * 1_239 / 2
    assert chance[4] > 20  # pairs that would have the very same four


def test_each_queue_has_as_many_tenants_as_were_given_it() -> None:
    assert blast_radius.load({"a": frozenset({0, 1}), "b": frozenset({1, 3})}, 4) == [1, 2, 0, 1]


def rounding(printed: str) -> float:
    """Return half of the last digit's worth."""
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


@pytest.mark.parametrize("processors", blast_radius.PUBLISHED_ODDS)
def test_the_probability_of_the_same_set_is_that_of_the_slides(processors: int) -> None:
    size, printed = blast_radius.PUBLISHED_ODDS[processors]
    possible, odds = blast_radius.same_set_odds(processors, size)
    assert possible == {1: 1, 3: 3, 5: 10, 8: 56, 10: 120, 20: 1_140, 50: 19_600}[processors]
    # In two cells the slides have lost a zero.
    misprints = [0, 0, processors in (20, 50)]
    for chance, text, misprinted in zip(odds, printed, misprints, strict=True):
        assert chance * 100 * (10 if misprinted else 1) == pytest.approx(float(text), abs=rounding(text))


def test_of_20000_tenants_none_has_the_noisy_ones_set_and_of_100000_four_do() -> None:
    assert [blast_radius.others_with_the_set(tenants, 50, 3) for tenants in (20_000, 100_000)] == [0, 4]


def test_simple_sharding_affects_three_of_twenty() -> None:
    assert blast_radius.on_its_processor(20, 8) == 3


def test_route_53_has_730_billion_sets() -> None:
    possible, _ = blast_radius.same_set_odds(*blast_radius.ROUTE_53)
    assert round(possible / 1e9, -1) == 730


@given(sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6))
def test_counting_sets_is_counting_tenants(sizes: list[int]) -> None:
    sets = queue_sets.sets(8)
    assigned = {(place, n): sets[place] for place, many in enumerate(sizes) for n in range(many)}
    assert blast_radius.pairs_of_sets(Counter(assigned.values())) == blast_radius.pairs_by_shared(assigned)
