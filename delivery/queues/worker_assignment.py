"""Tell which queues each worker serves: by its number alone, so that neither a worker nor a sender has to ask.

The assignment is static on purpose. A lease would hand the queue of a message that kills its worker to the next worker,
and to the next, until none is left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from portal.errors import Invalid
from portal.schema import keys

_SPREAD: Final = 8  # a queue is served by an eighth of the workers, so that four queues reach half of them at most


def queues_of(worker: int, *, of: int, queues: int) -> tuple[int, ...]:
    """Return the queues, numbered from 0, that the worker of this number, from 1, serves among `of` workers.

    Every queue is served by an eighth of the workers, and by one at least; no two workers differ by more than one
    queue. Raises Invalid for a number that no worker has.
    """
    if not 1 <= worker <= of:
        raise Invalid(f"Workers are numbered from 1 to {of:,}; there is no worker {worker:,}.")
    return tuple(q for q, serving in enumerate(workers_of(of, queues)) if worker - 1 in serving)


@lru_cache(maxsize=8)
def workers_of(workers: int, queues: int) -> tuple[frozenset[int], ...]:
    """Return the workers of each queue, both numbered from 0: those that serve the fewest so far, shuffled by a
    digest."""
    load = [0] * workers
    serving: list[frozenset[int]] = []
    for queue in range(queues):
        shuffled = sorted((load[w], keys.digest(f"{queue}/{w}", size=4), w) for w in range(workers))
        chosen = frozenset(w for _, _, w in shuffled[: max(1, workers // _SPREAD)])
        for worker in chosen:
            load[worker] += 1
        serving.append(chosen)
    return tuple(serving)


def load_of_workers(loads: Sequence[float], workers: int) -> list[float]:
    """Return, by queue, how much each of its workers has to do, those of its other queues included, from the loads of
    all queues."""
    serving = workers_of(workers, len(loads))
    of_worker: dict[int, float] = defaultdict(float)
    for load, those in zip(loads, serving, strict=True):
        for worker in those:
            of_worker[worker] += load / len(those)
    return [sum(of_worker[worker] for worker in those) / len(those) for those in serving]
