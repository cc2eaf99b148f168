"""Count who shares queues with whom: in a real installation, in a published one, and by chance.

All counts are exact and their cost grows with the number of tenants, not with that of pairs: the pairs that share at
least some k queues are counted by the groups of k, and the rest follows by inclusion and exclusion.
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


def pairs_by_shared(assigned: Mapping[T, QueueSet]) -> list[float]:
    """Count the pairs of tenants that share exactly 0, 1, 2, ... queues."""
    size = max(map(len, assigned.values()), default=0)
    at_least = [float(comb(len(assigned), 2))]
    for k in range(1, size + 1):
        groups = Counter(group for one in assigned.values() for group in combinations(sorted(one), k))
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
    """Count the tenants of each queue, by number."""
    counted: dict[int, int] = defaultdict(int)
    for one in assigned.values():
        for queue in one:
            counted[queue] += 1
    return [counted[queue] for queue in range(queues)]
