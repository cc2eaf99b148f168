"""Let so many through a second, and a burst now and then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

_WHOLE: Final = 1 - 1e-9  # who waits for `seconds_to_next` finds a token, whatever the sums of fractions lose


class TokenBucket:
    """A bucket of `burst` tokens that is filled with `per_second` of them, full at first.

    `clock` gives seconds that never go back.
    """

    def __init__(self, *, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError("a bucket is filled with something, and holds a token at least")
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._tokens, self._at = burst, clock()

    def take(self) -> bool:
        """Take a token; False where there is none."""
        self._fill()
        if self._tokens < _WHOLE:
            return False
        self._tokens -= 1
        return True

    def give_back(self) -> None:
        """Put back a token that was taken for something that did not happen."""
        self._fill()
        self._tokens = min(self._burst, self._tokens + 1)

    def seconds_to_next(self) -> float:
        """Return how long it takes until there is a token; 0.0 where there is one."""
        self._fill()
        return max(0.0, (1 - self._tokens) / self._per_second)

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + max(0.0, now - self._at) * self._per_second)
        self._at = max(self._at, now)
