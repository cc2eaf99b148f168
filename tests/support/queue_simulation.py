"""Simulate the closed loop of `noisy_neighbour` in no time, with the product's own sender and schedules.

Each tenant sends its next message 0.1 s after the last one was answered, and the noisy one has 15 senders in the second
phase. Eight workers have three slots each. Only time, work and the queues themselves are made up.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from delivery.queues import limits, queue_sets
from delivery.queues.limits import Schedule
from delivery.queues.queue_transport import Message, QueueTransport
from delivery.queues.sender import Offer, Sender

WORKERS: Final = 8
SLOTS: Final = 3
NOISY_SENDERS: Final = 15
PHASE_SECONDS: Final = 60.0
_THINK: Final = 0.1
RECEIVER: Final = "receiver"


@dataclass(frozen=True)
class QueueDesign:
    """The queues of each tenant, in order, and the workers of each queue."""

    sets: tuple[tuple[int, ...], ...]
    servers: tuple[tuple[int, ...], ...]


def ours(tenants: int, queues: int) -> QueueDesign:
    sets = tuple(tuple(sorted(queue_sets.nth(place, queues))) for place in range(tenants))
    return QueueDesign(sets, tuple(tuple(sorted(workers)) for workers in limits.workers_of(WORKERS, queues)))


@dataclass
class _Request:
    number: int
    tenant: int
    begun: float
    work: float
    queue: int = -1


@dataclass
class Run:
    """One phase."""

    design: QueueDesign
    noisy: int
    noisy_senders: int
    now: float = 0.0
    number: int = 0  # of events and messages so far
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
        self._prepare()
        for tenant in tenants:
            for _ in range(self.noisy_senders if tenant == self.noisy else 1):
                self._at(self.chance.random() * 0.4, lambda tenant=tenant: self._begin(tenant))  # type: ignore[misc]
        while self.events and self.events[0][0] < PHASE_SECONDS:
            self.now, _, happen = heapq.heappop(self.events)
            happen()
        return self.took

    def _at(self, seconds: float, happen: Callable[[], None]) -> None:
        self.number += 1
        heapq.heappush(self.events, (self.now + seconds, self.number, happen))

    def _begin(self, tenant: int) -> None:
        work = 0.223 + min(1.1, 0.06 * math.exp(0.9 * self.works[tenant].gauss(0, 1)))
        self.number += 1
        self._send(_Request(self.number, tenant, self.now, work))

    def _arrive(self, queue: int, request: _Request) -> None:
        request.queue = queue
        self.queues[queue].append(request)
        free = [worker for worker in self.design.servers[queue] if self.busy[worker].total() < SLOTS]
        if free:
            self._work(min(free, key=lambda worker: self.busy[worker].total()))

    def _start(self, worker: int, request: _Request) -> None:
        self.busy[worker][request.queue] += 1
        self._at(request.work, lambda: self._answer(worker, request))

    def _answer(self, worker: int, request: _Request) -> None:
        self.schedules[worker].end(request.queue, _id(request.tenant))
        self.sender.over(str(request.number), 0, RECEIVER)
        self.busy[worker][request.queue] -= 1
        self.took[request.tenant].append(self.now - request.begun)
        self._at(_THINK, lambda: self._begin(request.tenant))
        self._work(worker)
        self._pump()

    def _prepare(self) -> None:
        transport = _Arriving(len(self.queues), lambda queue, key: self._arrive(queue, self.sent[key]))
        self.sender = Sender(transport, workers=WORKERS, slots=SLOTS, clock=lambda: self.now, chance=self.chance)
        self.schedules = [Schedule(SLOTS, clock=lambda: self.now) for _ in range(WORKERS)]
        self.sent: dict[str, _Request] = {}

    def _send(self, request: _Request) -> None:
        key = str(request.number)
        self.sent[key] = request
        message = Message(_id(request.tenant), key, "", 0, RECEIVER)
        self.sender.offer([Offer(message, self.design.sets[request.tenant])])
        self._pump_in_time()

    def _work(self, worker: int) -> None:
        schedule = self.schedules[worker]
        for queue in schedule.in_turn(queue for queue in self.served[worker] if self.queues[queue]):
            if schedule.free:
                request = self.queues[queue].popleft()
                if later := schedule.begin(queue, _id(request.tenant)):
                    self._at(later, lambda queue=queue, request=request: self._arrive(queue, request))  # type: ignore[misc]
                else:
                    self._start(worker, request)

    def _pump(self) -> None:
        self.sender.pump()
        self._pump_in_time()

    def _pump_in_time(self) -> None:
        if (seconds := self.sender.seconds_to_pump()) is not None:
            self._at(seconds, self._pump)


class _Arriving(QueueTransport):
    """The queues as a sender knows them: what is sent arrives at once."""

    def __init__(self, queues: int, arrive: Callable[[int, str], None]) -> None:
        super().__init__()
        self._queues, self._arrive = queues, arrive

    @property
    def queues(self) -> int:
        return self._queues

    def send(self, queue: int, messages: Sequence[Message], *, delay: int = 0) -> list[Message]:
        for message in messages:
            self._arrive(queue, message.event_id)
        return []


def _id(tenant: int) -> str:
    return f"{tenant:032x}"
