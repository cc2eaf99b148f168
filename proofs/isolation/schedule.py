"""Which attempt has which number: everything follows from the seed and the number, so that one can be made alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from proofs.isolation.attempts import (
    honest,
    item_requests,
    key_conditions,
    other_operations,
    own_tables,
    repository_calls,
)
from proofs.isolation.attempts.attempt import AttackAttempt
from proofs.isolation.attempts.fuzzers import Draw
from proofs.isolation.targets import Target

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
