"""Add up what was done for one tenant, in a form that is small where it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

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
        """Return what `stored` wrote."""
        return cls(*numbers)


_NAMES: Final = tuple(field.name for field in fields(NoiseTally))
_SUMS: Final = _NAMES[:-1]
