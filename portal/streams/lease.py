"""Hold work by a sign of life: a process takes over from another one whose sign stands still.

A sign is a counter that its holder raises every few seconds. A process that wants to take over watches it for the lease
time, by its own monotonic clock: clocks of two machines are never compared. Two processes may believe for a moment that
they hold the same work, so what they do must be right if it is done twice. A lease is about work, not about
correctness.
"""

from __future__ import annotations

import time
from collections.abc import Mapping


class SignWatch:
    """Remember when this process saw each sign of life change. `seconds` is the lease time."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._seen: dict[str, tuple[object, float]] = {}  # by name: the sign, and since when it is that

    def look(self, signs: Mapping[str, object]) -> None:
        """Take note of all signs as they are stored now, by the name of their holder or work; forget all others."""
        self._seen = {name: self._since(name, sign) for name, sign in signs.items()}

    def stands_still(self, name: str, sign: object) -> bool:
        """Take note of one sign, and tell whether it has stood still for the lease time."""
        self._seen[name] = self._since(name, sign)
        return self.is_still(name)

    def is_still(self, name: str) -> bool:
        """Tell whether a sign has stood still for the lease time while this process looked on."""
        return name in self._seen and time.monotonic() - self._seen[name][1] >= self._seconds

    def is_first(self, name: str) -> bool:
        """Tell whether this is the first by name of those that give a sign of life."""
        return all(other >= name or self.is_still(other) for other in self._seen)

    def _since(self, name: str, sign: object) -> tuple[object, float]:
        seen = self._seen.get(name)
        return seen if seen is not None and seen[0] == sign else (sign, time.monotonic())
