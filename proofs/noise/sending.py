"""Send one trial's requests by the product's `Sender`, and tell each client when its request has come to an end."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Sequence
from typing import Final

from delivery.dispatching.sender import Offer, Sender
from delivery.queues.queue_transport import Message
from proofs.noise.designs import Design
from proofs.noise.trial_queues import TrialQueues
from proofs.noise.worker_notes import FAILED
from proofs.noise.workload import SLOTS, TENANTS, WORKERS, tenant_id

_PUMP_SECONDS: Final = 1.0  # at most between two looks at what waits


class Waiter:
    """One request on its way; `how` is empty until it has come to an end."""

    def __init__(self) -> None:
        self.how = ""
        self._event = threading.Event()

    def tell(self, how: str) -> None:
        self.how = self.how or how
        self._event.set()

    def wait(self) -> None:
        self._event.wait()


class StaleChoice:
    """The slides' heuristic: each tenant sends to the one of its queues that had the fewest visible messages when they
    were last counted."""

    def __init__(self, design: Design, transport: TrialQueues, chance: random.Random) -> None:
        self._design, self._transport, self._chance = design, transport, chance
        self._best = {tenant: chance.choice(design.queues_of[tenant]) for tenant in TENANTS}

    def refresh(self) -> None:
        visible = [depth.waiting for depth in self._transport.depths()]
        for tenant, queues in self._design.queues_of.items():
            fewest = min(visible[queue] for queue in queues)
            self._best[tenant] = self._chance.choice([queue for queue in queues if visible[queue] == fewest])

    def queues(self, tenant: int) -> Sequence[int]:
        return (self._best[tenant],)


class SendingSide:
    """The sending side of a trial: one sender, as one dispatcher has it, and a thread that sends what had to wait."""

    def __init__(self, design: Design, transport: TrialQueues, *, seed: int, refresh_seconds: float) -> None:
        chance = random.Random(seed)  # noqa: S311  # it has to be repeatable
        self._design = design
        self._stale = StaleChoice(design, transport, chance) if design.stale else None
        self._refresh_seconds = refresh_seconds
        self._sender = Sender(transport, workers=WORKERS, slots=SLOTS, chance=chance)
        self._serial = itertools.count(1)
        self._waiters: dict[str, Waiter] = {}
        self._lock = threading.Lock()
        self._stirred, self._stopping = threading.Event(), threading.Event()
        self._destinations: dict[str, str] = {}

    def start(self) -> None:
        threading.Thread(target=self._pump, daemon=True).start()
        if self._stale:
            threading.Thread(target=self._refresh, daemon=True).start()

    def stop(self) -> None:
        """Send nothing more, and let go of all who wait."""
        self._stopping.set()
        self._stirred.set()
        with self._lock:
            waiters = list(self._waiters.values())
        for waiter in waiters:
            waiter.tell("unanswered")

    def send(self, tenant: int, event_id: str, destination: str) -> Waiter:
        """Send a request, now or when its tenant's limits allow.

        Where a design has no limits, each message travels as if it were the only one of its tenant: then neither the
        sender nor a worker has anything to bound.
        """
        waiter = Waiter()
        with self._lock:
            self._waiters[event_id] = waiter
            self._destinations[event_id] = destination
        queues = self._stale.queues(tenant) if self._stale else self._design.queues_of[tenant]
        identity = tenant_id(tenant, alone=0 if self._design.bounded else next(self._serial))
        offer = Offer(Message(identity, event_id, "now", 0, destination), queues)
        if self._sender.offer([offer]).left:
            self.ended(event_id, "left")
        return waiter

    def ended(self, event_id: str, how: str) -> None:
        """Free the request's unit at the sender, and tell its client."""
        with self._lock:
            destination = self._destinations.pop(event_id, None)
            waiter = self._waiters.pop(event_id, None)
        if destination is not None:
            self._sender.over(event_id, 0, destination, failed=how == FAILED)
        if waiter is not None:
            waiter.tell(how)
        self._stirred.set()

    def _pump(self) -> None:
        while not self._stopping.is_set():
            self._stirred.clear()
            for offer in self._sender.pump().left:
                self.ended(offer.message.event_id, "left")
            seconds = self._sender.seconds_to_pump()
            self._stirred.wait(_PUMP_SECONDS if seconds is None else min(seconds, _PUMP_SECONDS))

    def _refresh(self) -> None:
        while self._stale and not self._stopping.wait(self._refresh_seconds):
            self._stale.refresh()
