"""Measure in memory what this process did for which tenant in a minute: the noisiest by name, all others in sum.

A process that serves ten thousand tenants keeps COUNTERS tallies for each minute that is not told yet, and no more. A
tenant with more than a COUNTERS-th part of everything is surely among them (portal/heat_sketch.py).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

from portal.dynamo import meter, retry
from portal.heat_sketch import COUNTERS, HeatSketch
from portal.isolation import guard
from portal.load import route_costs, spending

# What makes a tenant noisy, in units that cost about the same: a write unit costs five times a read unit.
_WEIGHTS: Final = {"requests": 1, "refused": 1, "reads": 1, "writes": 5, "throttles": 5, "deliveries": 2, "failed": 2}
_PLACES: Final = 1  # behind the point, in what is stored


@dataclass(slots=True)
class NoiseTally:
    """Count for one tenant and some time.

    `requests` were answered and cost `units` of its rate, `refused` got 429. `reads` and `writes` are capacity units;
    `throttles` are requests to the database that it refused for being too many. `deliveries` arrived, `failed` did not;
    `dead` are those given up, and changes that could not be counted. `put_off` is how often one had to wait for its
    turn, `held` for an operator. `wait` is the longest time in seconds that a message was in its queue.
    """

    requests: float = 0
    units: float = 0
    refused: float = 0
    reads: float = 0
    writes: float = 0
    throttles: float = 0
    deliveries: float = 0
    failed: float = 0
    dead: float = 0
    put_off: float = 0
    held: float = 0
    wait: float = 0

    def add(self, other: NoiseTally) -> None:
        """Add another one to this one; of `wait`, the longer one stays."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.wait = max(self.wait, other.wait)

    @property
    def weight(self) -> float:
        """Return how much all of it weighs, in read units."""
        return float(sum(weight * getattr(self, name) for name, weight in _WEIGHTS.items()))

    @property
    def capacity(self) -> float:
        """Return what the database was asked for, in read units."""
        return self.reads + _WEIGHTS["writes"] * self.writes

    def stored(self) -> list[float]:
        """Return the numbers as they are stored, without the zeros at the end."""
        numbers = [round(getattr(self, name), _PLACES) for name in _NAMES]
        while numbers and not numbers[-1]:
            numbers.pop()
        return [int(number) if number == int(number) else number for number in numbers]

    @classmethod
    def read(cls, numbers: Sequence[float]) -> NoiseTally:
        """Return what `stored` wrote, without what a newer version may have added."""
        return cls(*numbers[: len(_NAMES)])


_NAMES: Final = tuple(field.name for field in fields(NoiseTally))
_SUMS: Final = _NAMES[:-1]


MINUTE: Final = 60  # seconds
TOLD: Final = 64  # tenants that are told by name
_KEPT: Final = 5  # minutes, while they cannot be told


@dataclass
class MinuteNotes:
    """Hold what was done in a minute, counted from the epoch: by tenant, for all `others` of them, and for nobody's."""

    minute: int
    tenants: dict[str, NoiseTally] = field(default_factory=dict)
    others: NoiseTally = field(default_factory=NoiseTally)
    nobody: NoiseTally = field(default_factory=NoiseTally)
    # Once it is over: those that asked for anything or had to wait for the database, and those without a name by then.
    asked: dict[str, NoiseTally] = field(default_factory=dict)
    others_asked: NoiseTally = field(default_factory=NoiseTally)

    def total(self) -> NoiseTally:
        total = NoiseTally()
        for tally in (*self.tenants.values(), self.others, self.nobody):
            total.add(tally)
        return total


class TenantNotes:
    """Take notes, from any number of threads. `clock` gives seconds since the epoch; a jump costs a minute's notes."""

    def __init__(self, *, counters: int = COUNTERS, clock: Callable[[], float] = time.time) -> None:
        self._counters, self._clock = counters, clock
        self._lock = threading.Lock()
        self._sketch = HeatSketch(counters)
        self._open = MinuteNotes(0)
        self._over: list[MinuteNotes] = []

    def note(self, tenant_id: str, tally: NoiseTally) -> None:
        """Add what was done for a tenant now, "" for none."""
        with self._lock:
            self._turn_over()
            notes = self._open
            if not tenant_id:
                notes.nobody.add(tally)
                return
            # Whatever is noted weighs something, so that each name has a counter as long as it has a tally.
            evicted = self._sketch.add(tenant_id, max(tally.weight, 0.1))
            if evicted is not None:
                notes.others.add(notes.tenants.pop(evicted))
            kept = notes.tenants.get(tenant_id)
            if kept is None:
                notes.tenants[tenant_id] = kept = NoiseTally()
            kept.add(tally)

    def over(self) -> list[MinuteNotes]:
        """Return the minutes that are over and were not told, the oldest first, with TOLD tenants by name each."""
        with self._lock:
            self._turn_over()
            return list(self._over)

    def all(self) -> list[MinuteNotes]:
        """Return all minutes that were not told, the one that is not over yet as well, and begin a new one."""
        with self._lock:
            self._close()
            return list(self._over)

    def told(self, notes: MinuteNotes) -> None:
        with self._lock:
            self._over = [one for one in self._over if one is not notes]

    def _turn_over(self) -> None:
        minute = int(self._clock() // MINUTE)
        if minute != self._open.minute:
            self._close()
            self._open.minute = minute

    def _close(self) -> None:
        notes = self._open
        self._open, self._sketch = MinuteNotes(notes.minute), HeatSketch(self._counters)
        if not notes.tenants:
            return  # nothing was done for a tenant: leases and the like are no reason to tell
        notes.asked = {
            tenant_id: one for tenant_id, one in notes.tenants.items() if one.units or one.refused or one.throttles
        }
        notes.others_asked.add(notes.others)
        by_weight = sorted(notes.tenants, key=lambda tenant_id: -notes.tenants[tenant_id].weight)
        for tenant_id in by_weight[TOLD:]:
            notes.others.add(notes.tenants.pop(tenant_id))
        self._over = [*self._over, notes][-_KEPT:]


# --- answers to requests of people and systems ---

SAMPLE: Final = 100  # times of answers that are kept until they are told: as many as a metric's line may have


class Answers:
    """Count the answers of a web process, those with an error of the portal, and keep a fair sample of their times."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._total, self._errors, self._times = 0, 0, list[float]()

    def note(self, status: int, ms: float) -> None:
        """Add an answer. Each has the same chance to be in the sample."""
        with self._lock:
            self._total += 1
            self._errors += status >= 500
            if len(self._times) < SAMPLE:
                self._times.append(ms)
            elif (place := random.randrange(self._total)) < SAMPLE:  # noqa: S311  # no secret
                self._times[place] = ms

    def take(self) -> tuple[int, int, list[float]]:
        """Return the answers since the last call, the errors among them, and the sample of their times in ms."""
        with self._lock:
            taken = self._total, self._errors, self._times
            self._begin()
        return taken


answers = Answers()


# --- the notes of this process ---

_notes = TenantNotes()
_taken = False


class _CallListener:
    """Notes what each request to DynamoDB was charged, for the tenant on whose behalf it was sent."""

    def charged(self, call: meter.Call) -> None:
        if call.read_units or call.write_units:
            tenant_id = _on_behalf_of()
            note(tenant_id, NoiseTally(reads=call.read_units, writes=call.write_units))
            spending.charge(tenant_id, call.parts)

    def throttled(self) -> None:
        note(_on_behalf_of(), NoiseTally(throttles=1))


def _on_behalf_of() -> str:
    return "" if spending.is_on_own_account() else guard.acted_for() or retry.tenant()


def note(tenant_id: str, tally: NoiseTally) -> None:
    """Add what was done for a tenant now, "" for none. Nothing is kept where no reporter writes it down."""
    if _taken:
        _notes.note(tenant_id, tally)
        if tally.requests:
            spending.count(tenant_id, requests=tally.requests)


def answered(route: str, status: int, ms: float, bill: meter.Meter) -> None:
    """Take note of an answer and of what it has cost; `route` is "" for a request of none."""
    answers.note(status, ms)
    if _taken and route:
        route_costs.route_costs.note(route, bill)


def take(taken: bool) -> TenantNotes:
    """Begin or end to take notes of what this process does, and return them."""
    global _taken
    _taken = spending.is_kept = taken
    meter.listener = _CallListener() if taken else None
    return _notes


def forget() -> None:
    """Drop all notes and take no more. For a forked child."""
    global _notes, answers
    _notes, answers = TenantNotes(), Answers()
    spending.ledger = spending.Ledger()
    route_costs.route_costs = route_costs.RouteCosts()
    take(False)
