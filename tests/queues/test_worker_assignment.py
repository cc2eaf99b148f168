"""Which worker serves which queue: each queue is served, the work is even, and no tenant reaches more than half."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from delivery.queues.limits import queues_of
from portal.errors import Invalid

QUEUES = 32


def served(workers: int, queues: int = QUEUES) -> list[tuple[int, ...]]:
    return [queues_of(number, of=workers, queues=queues) for number in range(1, workers + 1)]


@pytest.mark.parametrize("workers", range(8, 33))
def test_any_four_of_32_queues_reach_at_most_half_of_the_workers(workers: int) -> None:
    reached = [0] * QUEUES  # a bit for each worker
    for worker, queues in enumerate(served(workers)):
        for queue in queues:
            reached[queue] |= 1 << worker
    assert max((a | b | c | d).bit_count() for a, b, c, d in combinations(reached, 4)) <= workers // 2


@given(st.integers(1, 70), st.sampled_from([8, 16, 32, 64]))
def test_every_queue_is_served_and_no_worker_has_more_than_one_queue_more_than_another(
    workers: int, queues: int
) -> None:
    loads = served(workers, queues)
    assert {queue for own in loads for queue in own} == set(range(queues))
    assert max(map(len, loads)) - min(map(len, loads)) <= 1


def test_one_worker_serves_all() -> None:
    assert served(1) == [tuple(range(QUEUES))]


@pytest.mark.parametrize("worker", [0, -1, 4])
def test_a_number_that_no_worker_has_is_refused(worker: int) -> None:
    with pytest.raises(Invalid, match="numbered from 1 to 3"):
        queues_of(worker, of=3, queues=QUEUES)
