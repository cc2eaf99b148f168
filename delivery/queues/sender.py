"""Send messages to the queues: a bounded number of each tenant's at a time, each to the least busy queue of the tenant.

A sender counts, for each queue and tenant, the messages that it sent and has not seen answered. A unit of a tenant
stays taken until the attempt is over (`over`) or so old that it certainly is. Queue lengths show other senders' load a
minute late, and correct the count slowly: following them directly would send everybody to the queue that was empty a
minute ago. Messages over a tenant's limits wait here, in a bounded list; the rest stays in the outbox for the sweeper.

A queue is as busy as the workers behind it, which serve other queues too. Counting queue by queue, a sender would
follow an empty queue to a worker that another queue keeps busy, and a noisy neighbour would be noticed.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from django.conf import settings

from delivery.outbox.outbox_rows import CERTAINLY_ANSWERED
from delivery.queues import limits, queue_sets
from delivery.queues.limits import Lending, LimitsOf
from delivery.queues.queue_transport import Depth, Message, QueueTransport
from portal import logs
from portal.dynamo.client import fan_out
from portal.errors import Rejected, Unavailable

log = logging.getLogger("pooldesk.delivery")

MOST_WAITING: Final = 10_000  # offers, of all tenants
MOST_WAITING_OF_ONE: Final = 500
_SMOOTHING: Final = 0.5  # how much of a late number counts when it comes

_Key = tuple[str, int, str]


@dataclass(frozen=True)
class Offer:
    """A message to be sent to one of a tenant's queues. `attempt` counts from 1; `row` is the caller's own and is
    handed back."""

    message: Message
    queues: Collection[int]
    attempt: int = 1
    row: Any = field(default=None, compare=False)

    @property
    def key(self) -> _Key:
        return self.message.event_id, self.message.index, self.message.destination

    @property
    def tenant_id(self) -> str:
        return self.message.tenant_id


@dataclass(frozen=True)
class Taken:
    """Tell what became of offers: they were sent, now or before; they wait here; they are left to the sweeper."""

    sent: list[Offer]
    waiting: list[Offer]
    left: list[Offer]


@dataclass
class _Unit:
    offer: Offer
    queue: int
    since: float


class Sender:
    """Choose queues and hold tenants to their limits, for any number of threads.

    `workers` says how many serve the queues, DELIVERY_WORKERS without it; 0 says that each queue is served apart.
    `slots` is the number of messages that each works on at the same time, DELIVERY_SLOTS without it.
    `most_waiting` offers of all tenants may wait here. `clock` gives seconds that never go back.
    """

    def __init__(
        self,
        transport: QueueTransport,
        *,
        workers: int | None = None,
        slots: int | None = None,
        most_waiting: int = MOST_WAITING,
        limits_of: LimitsOf = limits.of_all,
        clock: Callable[[], float] = time.monotonic,
        chance: random.Random | None = None,
    ) -> None:
        self._transport, self._limits_of, self._clock = transport, limits_of, clock
        self._chance = chance or random.Random()  # noqa: S311  # a choice among queues is no secret
        self._workers = settings.DELIVERY_WORKERS if workers is None else workers
        self._lending = Lending(self._workers * (settings.DELIVERY_SLOTS if slots is None else slots))
        self._most_waiting = most_waiting
        self._lock = threading.Lock()
        self._units: OrderedDict[_Key, _Unit] = OrderedDict()  # the oldest first
        self._in_flight: Counter[str] = Counter()
        self._own_by_queue: Counter[int] = Counter()
        self._others_by_queue: dict[int, float] = defaultdict(float)
        self._buckets = limits.buckets(limits_of, clock)
        self._waiting: OrderedDict[str, deque[Offer]] = OrderedDict()  # the tenant whose turn is next first
        self._waiting_keys: set[_Key] = set()

    def offer(self, offers: Iterable[Offer]) -> Taken:
        """Send what the tenants' limits allow. An offer that is on its way already counts as sent and is not sent
        again, unless it is of a later attempt: then the earlier one is over."""
        going: list[tuple[Offer, int]] = []
        sent, waiting, left = [], [], []
        with self._lock:
            self._let_go_of_the_certain()
            for offer in offers:
                unit = self._units.get(offer.key)
                if unit is not None and unit.offer.attempt >= offer.attempt:
                    sent.append(offer)
                    continue
                if unit is not None:
                    self._release(offer.key)
                if offer.key in self._waiting_keys:
                    waiting.append(offer)
                elif offer.tenant_id not in self._waiting and self._may_go(offer):
                    going.append((offer, self._take(offer)))
                elif self._wait(offer):
                    waiting.append(offer)
                else:
                    left.append(offer)
        gone, refused = self._send(going)
        with self._lock:
            sent = [offer for offer in sent if offer.key in self._units]  # not what was refused just now
        return Taken(sent + gone, waiting, left + refused)

    def send_held(self, offers: Iterable[tuple[Offer, int]]) -> list[Offer]:
        """Send messages that nobody receives before so many seconds have passed, and return those that went.

        They take no unit of their tenant, because they wait in the queue: the limits of the workers hold for them. One
        that did not go is found by the sweeper when it is due.
        """
        groups: dict[tuple[int, int], list[Offer]] = defaultdict(list)
        with self._lock:
            for offer, seconds in offers:
                groups[self._choose(offer), seconds].append(offer)
        gone: list[Offer] = []
        for (queue, seconds), some in groups.items():
            refused = self._send_to(queue, some, delay=seconds)
            gone += [offer for offer in some if offer.message not in refused]
        return gone

    def pump(self) -> Taken:
        """Send what has waited and may go now, one message of each tenant in turn."""
        going: list[tuple[Offer, int]] = []
        with self._lock:
            self._let_go_of_the_certain()
            stuck: set[str] = set()
            while tenants := [tenant for tenant in self._waiting if tenant not in stuck]:
                for tenant_id in tenants:
                    offer = self._waiting[tenant_id][0]
                    if not self._may_go(offer):
                        stuck.add(tenant_id)
                        continue
                    self._forget_waiting(tenant_id)
                    going.append((offer, self._take(offer)))
        gone, refused = self._send(going)
        return Taken(gone, [], refused)

    def over(self, event_id: str, index: int, destination: str, *, failed: bool = False) -> bool:
        """Free the unit of an attempt that has ended. False where this sender holds none."""
        key = event_id, index, destination
        with self._lock:
            unit = self._units.get(key)
            if unit is not None:
                tenant_id = unit.offer.tenant_id
                waits = tenant_id in self._waiting
                self._lending.ended(tenant_id, self._clock() - unit.since, failed=failed, waits=waits)
            return self._release(key)

    def unanswered(self, *, older_than: float) -> list[Offer]:
        """Return the offers that were sent so many seconds ago, and whose attempt is not over yet."""
        with self._lock:
            self._let_go_of_the_certain()
            before = self._clock() - older_than
            return [unit.offer for unit in self._units.values() if unit.since <= before]

    def seconds_to_pump(self) -> float | None:
        """Return when the bucket of a tenant that waits lets its next message through; None where none waits, or each
        waits for an answer."""
        with self._lock:
            self._let_go_of_the_certain()
            return min(
                (
                    self._buckets.of(tenant_id).seconds_to_next()
                    for tenant_id in self._waiting
                    if self._has_room(tenant_id)
                ),
                default=None,
            )

    def correct(self, depths: Sequence[Depth]) -> None:
        """Take note of how full the queues are, by number: what this sender has not sent, others have."""
        with self._lock:
            for queue, depth in enumerate(depths):
                others = max(0, depth.total - self._own_by_queue[queue])
                self._others_by_queue[queue] += (others - self._others_by_queue[queue]) * _SMOOTHING

    def counts(self) -> dict[str, int]:
        with self._lock:
            return {"in_flight": len(self._units), "waiting": len(self._waiting_keys)}

    # --- all below is called with the lock held, but for `_send` ---

    def _may_go(self, offer: Offer) -> bool:
        tenant_id = offer.tenant_id
        return self._has_room(tenant_id) and self._buckets.of(tenant_id).take()

    def _has_room(self, tenant_id: str) -> bool:
        """Tell whether the tenant's cap, and what is lent beyond it or kept back, leave a unit."""
        cap, has = self._limits_of(tenant_id).in_flight, self._in_flight[tenant_id]
        at_work = len(self._units) + sum(self._others_by_queue.values())
        return has < self._lending.units(tenant_id, cap, at_work=at_work)

    def _take(self, offer: Offer) -> int:
        """Take a unit for the offer, whose token is taken already, and choose its queue."""
        queue = self._choose(offer)
        tenant_id = offer.tenant_id
        self._units[offer.key] = _Unit(offer, queue, self._clock())
        self._in_flight[tenant_id] += 1
        self._own_by_queue[queue] += 1
        return queue

    def _choose(self, offer: Offer) -> int:
        known = [queue for queue in offer.queues if 0 <= queue < self._transport.queues]
        ours = known or sorted(queue_sets.without_allocation(offer.tenant_id, self._transport.queues))
        busy = self._busy()
        return min(
            self._chance.sample(ours, len(ours)),
            key=lambda queue: (busy[queue], self._own_by_queue[queue] + self._others_by_queue[queue]),
        )

    def _busy(self) -> list[float]:
        """Return, by queue, how much each of its workers has to do, in messages."""
        loads = [self._own_by_queue[queue] + self._others_by_queue[queue] for queue in range(self._transport.queues)]
        return limits.load_of_workers(loads, self._workers) if self._workers else loads

    def _wait(self, offer: Offer) -> bool:
        """Put the offer into the list; False where that is full, for all or for this tenant."""
        line = self._waiting.get(offer.tenant_id, deque())
        if len(self._waiting_keys) >= self._most_waiting or len(line) >= MOST_WAITING_OF_ONE:
            return False
        line.append(offer)
        self._waiting[offer.tenant_id] = line
        self._waiting_keys.add(offer.key)
        return True

    def _forget_waiting(self, tenant_id: str) -> None:
        """Take the first of a tenant's offers out of the list; the tenant's next turn comes after all others'."""
        self._waiting_keys.discard(self._waiting[tenant_id].popleft().key)
        self._waiting.move_to_end(tenant_id)
        if not self._waiting[tenant_id]:
            del self._waiting[tenant_id]
            self._lending.forget(tenant_id)

    def _release(self, key: _Key) -> bool:
        unit = self._units.pop(key, None)
        if unit is None:
            return False
        self._own_by_queue[unit.queue] -= 1
        self._in_flight[unit.offer.tenant_id] -= 1
        if not self._in_flight[unit.offer.tenant_id]:
            del self._in_flight[unit.offer.tenant_id]
        return True

    def _let_go_of_the_certain(self) -> None:
        """Free the units that are so old that their messages are answered or dead."""
        before = self._clock() - CERTAINLY_ANSWERED.total_seconds()
        while self._units and next(iter(self._units.values())).since <= before:
            self._release(next(iter(self._units)))

    def _send(self, going: Sequence[tuple[Offer, int]]) -> tuple[list[Offer], list[Offer]]:
        """Send to all queues at the same time; what went and what did not, whose units are free again."""
        by_queue: dict[int, list[Offer]] = defaultdict(list)
        for offer, queue in going:
            by_queue[queue].append(offer)
        refused = {
            message
            for messages in fan_out([partial(self._send_to, queue, offers) for queue, offers in by_queue.items()])
            for message in messages
        }
        gone = [offer for offer, _ in going if offer.message not in refused]
        back = [offer for offer, _ in going if offer.message in refused]
        with self._lock:
            for offer in back:
                self._buckets.of(offer.tenant_id).give_back()
                self._release(offer.key)
        return gone, back

    def _send_to(self, queue: int, offers: Sequence[Offer], *, delay: int = 0) -> list[Message]:
        messages = [offer.message for offer in offers]
        try:
            refused = self._transport.send(queue, messages, **({"delay": delay} if delay else {}))
        except (Rejected, Unavailable) as error:
            # Some of them may have gone; they go twice, and whoever receives them knows them by their id.
            log.warning("%d messages stay in the outbox: %s", len(messages), error.message)
            return messages
        for message in messages:
            if message not in refused:
                _say_sent(message, queue)
        return refused


def _say_sent(message: Message, queue: int) -> None:
    fields = {
        "request": message.request,
        "tenant": message.tenant_id,
        "event": message.event_id,
        "destination": message.destination,
        "queue": queue,
    }
    log.info(
        "Sent to queue %d for %s%s",
        *(queue, message.destination, logs.mark(message.request)),
        extra={"fields": fields},
    )
