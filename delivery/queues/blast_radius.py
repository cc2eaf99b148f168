"""Count who shares queues with whom: in a real installation, in a published one, and by chance.

All counts are exact: the pairs that share at least k queues are counted by the groups of k, and the rest follows by
inclusion and exclusion, at a cost that grows with the number of different sets.

The slides are: Anton Aleksandrov (AWS), "Serverless Shuffle Sharding". They call a queue with its worker a processor.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Final, Generic, TypeVar

from delivery.queues.queue_sets import QueueSet

T = TypeVar("T", bound=Hashable)

# Twenty tenants on eight processors, three each, as published: Anton Aleksandrov (AWS), slides on shuffle sharding for
# serverless applications. Tenants 6 and 10 have the same three, 7 and 13 too, and 20 is the noisy one.
PUBLISHED_QUEUES: Final = 8
PUBLISHED_NOISY: Final = 20
PUBLISHED: Final[Mapping[int, QueueSet]] = {
    1: frozenset({2, 1, 6}), 2: frozenset({4, 8, 3}), 3: frozenset({6, 8, 5}), 4: frozenset({1, 3, 6}),
    5: frozenset({3, 2, 8}), 6: frozenset({2, 7, 4}), 7: frozenset({5, 1, 4}), 8: frozenset({3, 5, 6}),
    9: frozenset({4, 3, 7}), 10: frozenset({2, 4, 7}), 11: frozenset({3, 2, 1}), 12: frozenset({1, 5, 8}),
    13: frozenset({1, 4, 5}), 14: frozenset({7, 8, 2}), 15: frozenset({1, 8, 6}), 16: frozenset({2, 6, 7}),
    17: frozenset({4, 5, 2}), 18: frozenset({1, 2, 5}), 19: frozenset({4, 5, 3}), 20: frozenset({7, 8, 6}),
}  # fmt: skip


@dataclass(frozen=True)
class WorstPair(Generic[T]):
    """Two tenants that share as many queues as any two do."""

    one: T
    other: T
    shared: QueueSet


# The slides' table of "the probability of using the same processors set", by number of processors: the size of a
# tenant's set, and the probability that two, three and four tenants have the same one, in the slides' own digits.
PUBLISHED_ODDS: Final[Mapping[int, tuple[int, tuple[str, str, str]]]] = {
    1: (1, ("100", "100", "100")),
    3: (1, ("33", "11", "4")),
    5: (2, ("10", "1", "0.1")),
    8: (3, ("2", "0.0319", "0.0006")),
    10: (3, ("0.83", "0.0069", "0.00006")),
    20: (3, ("0.0877", "0.0000769", "0.00000067")),
    50: (3, ("0.00510", "0.000000260", "0.000000000133")),
}
# Amazon Route 53's name servers, and how many of them each domain has: "730 billion possible shuffle shards".
ROUTE_53: Final = (2048, 4)


def same_set_odds(processors: int, size: int) -> tuple[int, list[float]]:
    """Return how many sets there are, N, and the probability that two, three and four tenants that draw one have the
    same: 1/N, 1/N^2 and 1/N^3."""
    every = comb(processors, size)
    return every, [1 / every**others for others in (1, 2, 3)]


def others_with_the_set(tenants: int, processors: int, size: int) -> int:
    """Return how many others have a tenant's very set where sets are given out in turn, as the slides count them."""
    return max(0, tenants // comb(processors, size) - 1)


def on_its_processor(tenants: int, processors: int) -> int:
    """Return how many tenants a processor of simple sharding has, the noisy one included: roundup(T/P)."""
    return -(-tenants // processors)


def pairs_by_shared(assigned: Mapping[T, QueueSet]) -> list[float]:
    """Count the pairs of tenants that share exactly 0, 1, 2, ... queues."""
    return pairs_of_sets(Counter(assigned.values()))


def pairs_of_sets(tenants: Mapping[QueueSet, int]) -> list[float]:
    """Count the same, from the number of tenants that have each set."""
    size = max(map(len, tenants), default=0)
    at_least = [float(comb(sum(tenants.values()), 2))]
    for k in range(1, size + 1):
        groups = Counter[tuple[int, ...]]()
        for one, number in tenants.items():
            groups.update(dict.fromkeys(combinations(sorted(one), k), number))
        at_least.append(float(sum(comb(number, 2) for number in groups.values())))
    return [
        sum((-1) ** (k - exactly) * comb(k, exactly) * at_least[k] for k in range(exactly, size + 1))
        for exactly in range(size + 1)
    ]


def by_chance(queues: int, size: int, tenants: int) -> list[float]:
    """Return how many pairs would share exactly 0, 1, 2, ... queues if each tenant drew its set: on average."""
    every = comb(queues, size)
    return [
        comb(tenants, 2) * comb(size, shared) * comb(queues - size, size - shared) / every for shared in range(size + 1)
    ]


def mean_affected(pairs: list[float], tenants: int) -> float:
    """Return with how many others a tenant shares at least one queue, on average."""
    return 2 * sum(pairs[1:]) / tenants if tenants else 0.0


def neighbours(assigned: Mapping[T, QueueSet], tenant: T) -> dict[T, QueueSet]:
    """Return those that share queues with a tenant, and which: the most first, else in the order given."""
    own = assigned[tenant]
    shared = {other: own & theirs for other, theirs in assigned.items() if other != tenant and own & theirs}
    return dict(sorted(shared.items(), key=lambda item: -len(item[1])))


def worst_pair(assigned: Mapping[T, QueueSet]) -> WorstPair[T] | None:
    """Return two that share the most queues, the first such in the order given; None where no two share any."""
    for k in range(max(map(len, assigned.values()), default=0), 0, -1):
        first: dict[tuple[int, ...], T] = {}
        for tenant, queues in assigned.items():
            for group in combinations(sorted(queues), k):
                if group in first:
                    return WorstPair(first[group], tenant, frozenset(group))
                first[group] = tenant
    return None


def load(assigned: Mapping[T, QueueSet], queues: int) -> list[int]:
    counted: dict[int, int] = defaultdict(int)
    for one in assigned.values():
        for queue in one:
            counted[queue] += 1
    return [counted[queue] for queue in range(queues)]
