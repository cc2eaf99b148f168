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

from portal.dynamo import client
from proofs.isolation.attempts import (
    honest,
    item_requests,
    key_conditions,
    other_operations,
    own_tables,
    repository_calls,
)
from proofs.isolation.attempts.attempt import AttackAttempt, Draw, as_json
from proofs.isolation.oracle import Oracle
from proofs.isolation.targets import Target
from proofs.isolation.transport import CONDITION, OWN, Crossed, Wire

HONEST: Final = 0.07  # share of requests that must be answered


@dataclass(frozen=True)
class AttackPlan:
    """The attempts of a run on these tenants. `operations` are all that the client knows."""

    seed: int
    targets: Sequence[Target]
    operations: list[str]

    def attempt(self, number: int) -> AttackAttempt:
        rng = random.Random(f"{self.seed} {number}")  # noqa: S311  # it has to be repeatable
        me, other = rng.sample(self.targets, 2)
        draw = Draw(rng, me, other)
        if rng.random() < HONEST:
            return honest.attempt(draw)
        (family,) = rng.choices(self._families, (44, 26, 13, 10, 7))
        return family(draw)

    @property
    def _families(self) -> tuple[Callable[[Draw], AttackAttempt], ...]:
        return (
            item_requests.attempt,
            key_conditions.attempt,
            lambda draw: other_operations.attempt(draw, self.operations),
            repository_calls.attempt,
            own_tables.attempt,
        )


@dataclass(frozen=True)
class Crossing:
    """The first hole: which attempt, what came of it, and the request as it was made."""

    number: str
    why: str
    request: dict[str, Any]


@dataclass
class Tally:
    """Count what was done. Keys are (operation, place, kind); an honest request counts in `honest` alone."""

    attacks: dict[tuple[str, str, str], Counter[str]] = field(default_factory=dict)
    honest: Counter[tuple[str, str]] = field(default_factory=Counter)
    crossing: Crossing | None = None
    refused: Crossing | None = None  # an honest request that was not answered
    events: int = 0
    sent: int = 0
    seconds: float = 0.0

    def add(self, attempt: AttackAttempt, stopped: str) -> None:
        if attempt.honest:
            self.honest[attempt.operation, attempt.place] += 1
        else:
            key = attempt.operation, attempt.place, attempt.kind
            self.attacks.setdefault(key, Counter())[stopped] += 1

    @property
    def stopped_by(self) -> Counter[str]:
        return sum(self.attacks.values(), Counter())

    @property
    def total(self) -> int:
        return self.stopped_by.total() + self.honest.total()


def operations() -> list[str]:
    """Return every operation that the client knows, in a stable order."""
    return sorted(client.connection("tenant").client.meta.service_model.operation_names)


def attack(plan: AttackPlan, numbers: Iterable[int], tally: Tally, advance: Callable[[int], object]) -> None:
    """Make these attempts, up to the first that shows a hole. Raises Unavailable where the engine is away."""
    wire = Wire({t.id: Oracle(t.id) for t in plan.targets})
    started = time.monotonic()
    try:
        with wire.attached():
            for number in numbers:
                attempt = plan.attempt(number)
                try:
                    stopped = wire.attempt(attempt)
                except Crossed as error:
                    tally.crossing = Crossing(str(number), str(error), described(attempt))
                    return
                if attempt.honest and stopped not in (OWN, CONDITION):
                    why = f"An honest request was stopped by {stopped}."
                    tally.refused = Crossing(str(number), why, described(attempt))
                    return
                tally.add(attempt, stopped)
                advance(1)
    finally:
        tally.events, tally.sent, tally.seconds = wire.events, wire.answered, time.monotonic() - started


def described(attempt: AttackAttempt) -> dict[str, Any]:
    """Return an attempt as JSON: enough to see what it is, and with its number and seed to make it again."""
    return {
        "kind": attempt.kind,
        "operation": attempt.operation,
        "place": attempt.place,
        "acting": attempt.draw.me.id,
        "target": attempt.draw.other.id,
        "honest": attempt.honest,
        "parameters": as_json(attempt.params),
    }


def states(targets: Iterable[Target]) -> dict[str, list[Any]]:
    return {target.id: target.state() for target in targets}
