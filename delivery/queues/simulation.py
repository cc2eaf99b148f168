"""Simulate one noisy tenant among twenty, for the operators' page: an order of designs, not a measurement.

It is the closed loop of the published experiment: each tenant sends its next message 0.1 s after the last one was
answered, and the noisy one has 15 senders in the second phase. Eight workers have three slots each. Work takes 0.223 s
and a log-normal part (median 0.06 s), which gives the published quiet times; the n-th message of a tenant takes as long
in both phases. Nothing in it is random from one call to the next.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean
from typing import Final, Literal

WORKERS: Final = 8
SLOTS: Final = 3
NOISY_SENDERS: Final = 15
PHASE_SECONDS: Final = 60.0
REFRESH_SECONDS: Final = 12.0  # the published minute, as a part of a phase
_THINK: Final = 0.1
_HIT: Final = 1.1  # a tenant is hit when its mean grows by more


@dataclass(frozen=True)
class QueueDesign:
    """Say who sends where.

    `sets` is by tenant, in order; `servers` says which workers serve each queue; `cap` bounds what a tenant has in
    flight, 0 for no bound.
    """

    sets: tuple[tuple[int, ...], ...]
    servers: tuple[tuple[int, ...], ...]
    choice: Literal["any", "late", "own"] = "any"
    cap: int = 0


@dataclass(frozen=True)
class Simulated:
    """Compare the quiet tenants' p99 and means in both phases, and all messages of a second in the second."""

    p99_ratio: float
    hit: int
    per_second: float


@cache
def simulate(design: QueueDesign, noisy: int) -> Simulated:
    """Run both phases; `noisy` is the place of the noisy tenant. Takes some 0.3 s the first time."""
    quiet, loud = (_Run(design, noisy, senders).run() for senders in (1, NOISY_SENDERS))
    others = [tenant for tenant in range(len(design.sets)) if tenant != noisy]
    before, after = (_p99([took for tenant in others for took in phase[tenant]]) for phase in (quiet, loud))
    hit = sum(fmean(loud[tenant]) > _HIT * fmean(quiet[tenant]) for tenant in others if loud[tenant])
    return Simulated(after / before, hit, sum(map(len, loud.values())) / PHASE_SECONDS)


def _p99(values: list[float]) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * 99 // 100)]


@dataclass
class _Request:
    tenant: int
    begun: float
    work: float
    queue: int = -1


@dataclass
class _Run:
    design: QueueDesign
    noisy: int
    noisy_senders: int
    now: float = 0.0
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)
    took: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))

    def run(self) -> dict[int, list[float]]:
        """Return how long each tenant's messages took, in seconds."""
        tenants = range(len(self.design.sets))
        self.chance = random.Random(5)  # noqa: S311  # it repeats itself on purpose
        self.works = {tenant: random.Random(tenant * 7919) for tenant in tenants}  # noqa: S311  # as above
        self.queues: list[deque[_Request]] = [deque() for _ in self.design.servers]
        self.served = [[q for q, by in enumerate(self.design.servers) if worker in by] for worker in range(WORKERS)]
        self.busy: list[Counter[int]] = [Counter() for _ in range(WORKERS)]  # by worker, the queue of each slot
        self.own: Counter[int] = Counter()
        self.in_flight: Counter[int] = Counter()
        self.gate: dict[int, deque[_Request]] = defaultdict(deque)
        self.best: dict[int, int] = {}
        for tenant in tenants:
            for _ in range(self.noisy_senders if tenant == self.noisy else 1):
                self._at(self.chance.random() * 0.4, lambda tenant=tenant: self._begin(tenant))  # type: ignore[misc]
        self._refresh()
        while self.events and self.events[0][0] < PHASE_SECONDS:
            self.now, _, happen = heapq.heappop(self.events)
            happen()
        return self.took

    def _at(self, seconds: float, happen: Callable[[], None]) -> None:
        self.number = getattr(self, "number", 0) + 1
        heapq.heappush(self.events, (self.now + seconds, self.number, happen))

    def _begin(self, tenant: int) -> None:
        work = 0.223 + min(1.1, 0.06 * math.exp(0.9 * self.works[tenant].gauss(0, 1)))
        request = _Request(tenant, self.now, work)
        if self.design.cap and self.in_flight[tenant] >= self.design.cap:
            self.gate[tenant].append(request)
        else:
            self._send(request)

    def _send(self, request: _Request) -> None:
        request.queue = queue = self._choose(request.tenant)
        self.in_flight[request.tenant] += 1
        self.own[queue] += 1
        self.queues[queue].append(request)
        free = [worker for worker in self.design.servers[queue] if self.busy[worker].total() < SLOTS]
        if free:
            self._work(min(free, key=lambda worker: self.busy[worker].total()))

    def _choose(self, tenant: int) -> int:
        ours = self.design.sets[tenant]
        if self.design.choice == "late":
            return self.best[tenant]
        if self.design.choice == "own" and len(ours) > 1:
            return min(self.chance.sample(ours, 2), key=lambda queue: self.own[queue])
        return self.chance.choice(ours)

    def _refresh(self) -> None:
        """Let each tenant learn which of its queues are the emptiest: all run there until the next time."""
        for tenant, ours in enumerate(self.design.sets):
            least = min(len(self.queues[queue]) for queue in ours)
            self.best[tenant] = self.chance.choice([queue for queue in ours if len(self.queues[queue]) == least])
        self._at(REFRESH_SECONDS, self._refresh)

    def _work(self, worker: int) -> None:
        """Take the next message, from the queue of which this worker has the fewest."""
        waiting = [queue for queue in self.served[worker] if self.queues[queue]]
        if waiting:
            request = self.queues[min(waiting, key=lambda queue: self.busy[worker][queue])].popleft()
            self.busy[worker][request.queue] += 1
            self._at(request.work, lambda: self._answer(worker, request))

    def _answer(self, worker: int, request: _Request) -> None:
        tenant = request.tenant
        self.busy[worker][request.queue] -= 1
        self.own[request.queue] -= 1
        self.in_flight[tenant] -= 1
        self.took[tenant].append(self.now - request.begun)
        self._at(_THINK, lambda: self._begin(tenant))
        if self.gate[tenant]:
            self._send(self.gate[tenant].popleft())
        self._work(worker)
