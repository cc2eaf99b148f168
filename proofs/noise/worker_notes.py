"""Write down what the workers did: whom a tenant's messages reached, how many ran at once, who died."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from proofs.noise.workload import tenant_number

ANSWERED: Final = "answered"
FAILED: Final = "failed"
DEAD: Final = "dead"  # the delivery is a dead letter


@dataclass(frozen=True)
class Death:
    """One worker's end: which worker, when, and of which tenants it had messages that it had begun."""

    worker: int
    at: float
    had: tuple[int, ...]


@dataclass
class WorkerNotes:
    """Notes of one trial, from any number of threads. `ended` is called for each message that has come to an end."""

    ended: Callable[[str, str], object]
    reached: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    most_at_a_worker: Counter[int] = field(default_factory=Counter)
    most_in_all: Counter[int] = field(default_factory=Counter)
    ends: Counter[tuple[int, str]] = field(default_factory=Counter)
    deaths: list[Death] = field(default_factory=list)
    _running: dict[int, list[tuple[str, int]]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, worker: int, event_id: str, identity: str) -> None:
        """Note that a worker has begun a message."""
        tenant = tenant_number(identity)
        with self._lock:
            self.reached[tenant].add(worker)
            self._running[worker].append((event_id, tenant))
            here = sum(of == tenant for _, of in self._running[worker])
            in_all = sum(of == tenant for running in self._running.values() for _, of in running)
            self.most_at_a_worker[tenant] = max(here, self.most_at_a_worker[tenant])
            self.most_in_all[tenant] = max(in_all, self.most_in_all[tenant])

    def end(self, worker: int, event_id: str, identity: str, how: str) -> None:
        """Note that a message has come to an end, and tell whoever waits for it."""
        tenant = tenant_number(identity)
        with self._lock:
            if (event_id, tenant) in self._running[worker]:
                self._running[worker].remove((event_id, tenant))
            self.ends[tenant, how] += 1
        self.ended(event_id, how)

    def died(self, worker: int) -> None:
        """Note that a worker has died, with all that it had begun."""
        with self._lock:
            had = tuple(sorted({tenant for _, tenant in self._running.pop(worker, [])}))
            self.deaths.append(Death(worker, time.monotonic(), had))

    def document(self, since: float) -> dict[str, Any]:
        """Return the notes as JSON has them; moments are seconds from `since`."""
        with self._lock:
            return {
                "reached": {tenant: sorted(workers) for tenant, workers in sorted(self.reached.items())},
                "most_at_a_worker": dict(sorted(self.most_at_a_worker.items())),
                "most_in_all": dict(sorted(self.most_in_all.items())),
                "ends": [[tenant, how, count] for (tenant, how), count in sorted(self.ends.items())],
                "deaths": [[death.worker, round(death.at - since, 2), death.had] for death in self.deaths],
            }
