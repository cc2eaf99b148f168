"""The attack on the data layer: attempt after attempt, counted by what was tried and by what stopped it.

An attempt follows from the seed and its number, so that one can be made again alone.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from proofs.isolation.attempts import calls, requests
from proofs.isolation.attempts.attempt import AttackAttempt, Draw
from proofs.isolation.oracle import Oracle
from proofs.isolation.targets import Target
from proofs.isolation.transport import CONDITION, OWN, Crossed, Wire

HONEST: Final = 0.07  # share of requests that must be answered
CALLS, CALLS_OF_HONEST = 0.05, 0.4  # shares that go through our own code


@dataclass(frozen=True)
class AttackPlan:
    seed: int
    targets: Sequence[Target]

    def attempt(self, number: int) -> AttackAttempt:
        rng = random.Random(f"{self.seed} {number}")  # noqa: S311  # it has to be repeatable
        draw = Draw(rng, *rng.sample(self.targets, 2))
        if rng.random() < HONEST:
            return calls.honest(draw) if rng.random() < CALLS_OF_HONEST else requests.honest(draw)
        return calls.hostile(draw) if rng.random() < CALLS else requests.hostile(draw)


@dataclass(frozen=True)
class Crossing:
    """The first hole: which attempt, what came of it, and the request as it was made."""

    number: str
    why: str
    request: dict[str, Any]


@dataclass
class Tally:
    """Count what was done: what stopped hostile requests, by their kind; honest ones by their operation."""

    attacks: dict[str, Counter[str]] = field(default_factory=dict)
    honest: Counter[str] = field(default_factory=Counter)
    crossing: Crossing | None = None
    refused: Crossing | None = None  # an honest request that was not answered
    events: int = 0
    sent: int = 0
    seconds: float = 0.0

    def add(self, attempt: AttackAttempt, stopped: str) -> None:
        if attempt.honest:
            self.honest[attempt.operation] += 1
        else:
            self.attacks.setdefault(attempt.kind, Counter())[stopped] += 1

    @property
    def stopped_by(self) -> Counter[str]:
        return sum(self.attacks.values(), Counter())

    @property
    def total(self) -> int:
        return self.stopped_by.total() + self.honest.total()


def attack(plan: AttackPlan, numbers: Iterable[int], tally: Tally, advance: Callable[[int], object]) -> None:
    """Make these attempts, up to the first that shows a hole. Raises Unavailable where the engine is away."""
    wire = Wire({t.id: Oracle(t.id) for t in plan.targets})
    started = time.monotonic()
    try:
        with wire.attached("tenant"):
            for number in numbers:
                attempt = plan.attempt(number)
                try:
                    stopped = wire.attempt(attempt)
                except Crossed as error:
                    tally.crossing = Crossing(str(number), str(error), attempt.described)
                    return
                if attempt.honest and stopped not in (OWN, CONDITION):
                    why = f"An honest request was stopped by {stopped}."
                    tally.refused = Crossing(str(number), why, attempt.described)
                    return
                tally.add(attempt, stopped)
                advance(1)
    finally:
        tally.events, tally.sent, tally.seconds = wire.events, wire.answered, time.monotonic() - started
