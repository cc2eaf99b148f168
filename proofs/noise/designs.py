"""Describe the designs as policies: a tenant's queues, each queue's workers, how a queue is chosen, what is bounded.

Sets, assignment of workers and limits of our own design are the product's; those of the others are the slides'.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from delivery.queues import limits, queue_sets
from delivery.queues.blast_radius import PUBLISHED
from proofs.noise.closed_loop import NOISY, QUIET_TENANTS, TENANTS

WORKERS: Final = 8  # the slides' processors
SLOTS: Final = 3  # of each: 24 in all, just enough for the slides' throughput in their second phase
OUR_QUEUES: Final = 32
ONE: Final = "one"
OURS: Final = "ours"
_EACH_ITS_OWN: Final = tuple(frozenset({worker}) for worker in range(WORKERS))


@dataclass(frozen=True)
class Design:
    """`queues_of` gives each tenant's queues and `workers_of` each queue's workers, both numbered from 0. `stale` asks
    for the slides' heuristic. `bounded` says that the product's cap and bucket bound each tenant, at the sender and at
    each worker."""

    what: str
    queues_of: Mapping[int, tuple[int, ...]]
    workers_of: tuple[frozenset[int], ...]
    stale: bool = False
    bounded: bool = False

    def queues_served_by(self, worker: int) -> tuple[int, ...]:
        return tuple(queue for queue, workers in enumerate(self.workers_of) if worker in workers)

    def reach(self, tenant: int) -> frozenset[int]:
        return frozenset[int]().union(*(self.workers_of[queue] for queue in self.queues_of[tenant]))

    def sharing(self) -> frozenset[int]:
        return frozenset(tenant for tenant in QUIET_TENANTS if self.reach(tenant) & self.reach(NOISY))


DESIGNS: Final = {
    ONE: Design(
        "One queue, and every worker takes from it.", dict.fromkeys(TENANTS, (0,)), (frozenset(range(WORKERS)),)
    ),
    "simple": Design(
        "Simple sharding: eight queues with a worker each; a tenant has one of them.",
        {tenant: (tenant % WORKERS,) for tenant in TENANTS},
        _EACH_ITS_OWN,
    ),
    "shuffle": Design(
        "Shuffle sharding as in the slides: eight queues with a worker each; a tenant has three of them, by the "
        "slides' own table, and sends to the one that had the fewest visible messages when they were last counted.",
        {tenant: tuple(number - 1 for number in sorted(PUBLISHED[tenant])) for tenant in TENANTS},
        _EACH_ITS_OWN,
        stale=True,
    ),
    OURS: Design(
        "Pooldesk: 32 queues; a tenant has four of them by closed form, and reaches half of the workers at most; the "
        "sender chooses the queue whose workers have least to do, by what it sent itself and has not seen answered; "
        "cap and bucket for each tenant.",
        {tenant: tuple(sorted(queue_sets.nth(tenant - 1, OUR_QUEUES))) for tenant in TENANTS},
        limits.workers_of(WORKERS, OUR_QUEUES),
        bounded=True,
    ),
}
