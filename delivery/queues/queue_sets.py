"""Tell which sets of four queues there are, in the order in which tenants are given them.

Queues are numbered from 0, and there are a power of two of them. Each set is {a, b, c, a ^ b ^ c}, so two different
sets share at most two queues: 14 sets of 8 queues, 1,240 of 32, 10,416 of 64. A set is {q, q ^ d, q ^ e, q ^ d ^ e} for
a plane of differences {d, e, d ^ e}. The sets of one plane cover every queue once, so the list goes plane by plane, the
one with the least used differences next, and any beginning of it loads all queues alike. When queues are added, the
sets of before are sets still.

Source of the sets: the boolean Steiner quadruple systems (H. Hanani, "On quadruple systems", 1960).
"""

from __future__ import annotations

from functools import cache
from typing import Final

from portal.errors import Invalid
from portal.schema import keys

SIZE: Final = 4
FEWEST: Final = 8  # queues; of 4 there would be one set only
MOST: Final = 64  # queues; 10,416 sets, and each worker still has few enough queues to ask

COUNTS: Final = (8, 16, 32, 64)  # the powers of two between them

QueueSet = frozenset[int]
_Plane = tuple[int, int, int]


def valid_count(queues: int) -> int:
    """Return a number of queues that can be. Raises Invalid for any other than 8, 16, 32 and 64."""
    if queues not in COUNTS:
        raise Invalid(f"The number of queues is a power of two from {FEWEST} to {MOST}, not {queues}.")
    return queues


@cache
def sets(queues: int, *, beyond: int = 0) -> tuple[QueueSet, ...]:
    """Return all sets in their order. With `beyond`, first those that use a queue from that number on, then the rest.

    Raises Invalid for a number of queues that cannot be.
    """
    every = [one for plane in _planes(valid_count(queues)) for one in _sets_of(plane, queues)]
    return tuple(sorted(every, key=lambda one: max(one) < beyond))


def nth(position: int, queues: int, *, beyond: int = 0) -> QueueSet:
    """Return the set that the tenant in this position is given, counted from 0; past the end of the list it begins
    anew, so that no set is given a third time before each has been given twice."""
    every = sets(queues, beyond=beyond)
    return every[position % len(every)]


def without_allocation(tenant_id: str, queues: int) -> QueueSet:
    """Return the set of a tenant that has been given none yet, or none of these queues: the same in each process."""
    return nth(int(keys.digest(tenant_id, size=4), 16), queues)


def is_set(numbers: frozenset[int], queues: int) -> bool:
    """Tell whether these are the numbers of one of the sets."""
    if len(numbers) != SIZE or not all(0 <= number < queues for number in numbers):
        return False
    a, b, c, d = numbers
    return a ^ b ^ c ^ d == 0


def _planes(queues: int) -> list[_Plane]:
    left = [(d, e, d ^ e) for d in range(1, queues) for e in range(d + 1, queues) if d ^ e > e]
    used = [0] * queues
    ordered = []
    while left:
        plane = min(left, key=lambda p: (max(used[d] for d in p), sum(used[d] for d in p)))
        left.remove(plane)
        ordered.append(plane)
        for difference in plane:
            used[difference] += 1
    return ordered


def _sets_of(plane: _Plane, queues: int) -> list[QueueSet]:
    first, second, third = plane
    found = {queue: frozenset((queue, queue ^ first, queue ^ second, queue ^ third)) for queue in range(queues)}
    return list(dict.fromkeys(found.values()))
