"""Find those that something is counted for most often, among any number, with a bounded number of counters.

Source: Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data Streams" (2005): who
is met without a counter takes that of the least, with its count. So a count is never too low, and too high by no more
than the total divided by the number of counters; who has more than that share has a counter.
"""

from __future__ import annotations

from typing import Final

COUNTERS: Final = 256


class HeatSketch:
    """Counts weights by name, for the heaviest names only."""

    def __init__(self, counters: int = COUNTERS) -> None:
        self._size = counters
        self._counts: dict[str, float] = {}
        self._taken_over: dict[str, float] = {}  # the part of a count that was another's

    def add(self, name: str, weight: float) -> str | None:
        """Count a weight for a name. Return whose counter it took over, None where nobody lost one."""
        if name in self._counts:
            self._counts[name] += weight
        elif len(self._counts) < self._size:
            self._counts[name], self._taken_over[name] = weight, 0.0
        else:
            least = min(self._counts, key=self._counts.__getitem__)
            count = self._counts.pop(least)
            del self._taken_over[least]
            self._counts[name], self._taken_over[name] = count + weight, count
            return least
        return None

    def top(self, number: int) -> list[str]:
        """Return the heaviest names, heaviest first."""
        return sorted(self._counts, key=lambda name: -self._counts[name])[:number]

    def at_least(self, weight: float) -> dict[str, float]:
        """Return who surely has so much: names, and how much of their counts is surely theirs."""
        sure = {name: count - self._taken_over[name] for name, count in self._counts.items()}
        return {name: count for name, count in sure.items() if count >= weight}

    def __len__(self) -> int:
        return len(self._counts)
