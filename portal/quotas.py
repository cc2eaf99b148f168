"""Bound what one process keeps, and what each tenant uses of something that all share: so many a second by tokens, or
so many at the same time."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

_T = TypeVar("_T")
_K = TypeVar("_K")
_V = TypeVar("_V")

_WHOLE: Final = 1e-9  # who waits for `seconds_to_next` finds its tokens, whatever the sums of fractions lose
MOST_TENANTS: Final = 10_000  # of the tenants that were met last; a bucket that is forgotten is full again


class TokenBucket:
    """A bucket of `burst` tokens that is filled with `per_second` of them, full at first.

    `clock` gives seconds that never go back. Should it jump all the same, a jump ahead fills the bucket once and no
    further, and after a jump back it is filled from there on: nobody waits for the clock to catch up.
    """

    __slots__ = ("_at", "_burst", "_clock", "_per_second", "_tokens")

    def __init__(self, *, per_second: float, burst: float, clock: Callable[[], float] = time.monotonic) -> None:
        _check(per_second, burst)
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._tokens, self._at = burst, clock()

    def take(self, tokens: float = 1) -> bool:
        """Take so many tokens; False, and none taken, where there are fewer."""
        if not self.has(tokens):
            return False
        self._tokens -= tokens
        return True

    def has(self, tokens: float) -> bool:
        """Tell whether there are so many tokens."""
        self._fill()
        return self._tokens + _WHOLE >= tokens

    def give_back(self, tokens: float = 1) -> None:
        """Put back what was taken for something that did not happen."""
        self._fill()
        self._tokens = min(self._burst, self._tokens + tokens)

    @property
    def burst(self) -> float:
        return self._burst

    def left(self) -> float:
        """Return how many tokens there are."""
        self._fill()
        return max(0.0, self._tokens)

    def seconds_to_next(self, tokens: float = 1) -> float:
        """Return how long it takes until there are so many tokens; 0.0 where there are."""
        self._fill()
        return max(0.0, (tokens - self._tokens) / self._per_second)

    def change(self, *, per_second: float, burst: float) -> None:
        """Fill it at another rate from now on. Its content stays, up to the new size."""
        if (per_second, burst) == (self._per_second, self._burst):
            return
        _check(per_second, burst)
        self._fill()
        self._per_second, self._burst = per_second, burst
        self._tokens = min(burst, self._tokens)

    def _fill(self) -> None:
        now = self._clock()
        if now > self._at:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
        self._at = now


class RecentTenants(Generic[_T]):
    """Keep something, a bucket say, for each of the `most` tenants that were met last.

    `make` makes it when a tenant is met for the first time, or again after it was forgotten. The caller holds a lock
    where threads share it.
    """

    def __init__(self, make: Callable[[str], _T], *, most: int = MOST_TENANTS) -> None:
        self._make, self._most = make, most
        self._kept: OrderedDict[str, _T] = OrderedDict()

    def of(self, tenant_id: str) -> _T:
        """Return what is kept for this tenant, which is now the one that was met last."""
        kept = self._kept.get(tenant_id)
        if kept is None:
            kept = self._kept[tenant_id] = self._make(tenant_id)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(tenant_id)
        return kept

    def forget(self, tenant_id: str) -> None:
        """Keep nothing for this tenant until it is met again."""
        self._kept.pop(tenant_id, None)

    def known(self, tenant_id: str) -> _T | None:
        """Return what is kept for this tenant, if anything is. It does not count as a meeting."""
        return self._kept.get(tenant_id)

    def all(self) -> list[tuple[str, _T]]:
        """Return all tenants with what is kept for them, the one that was met last at the end."""
        return list(self._kept.items())


def _check(per_second: float, burst: float) -> None:
    if per_second <= 0 or burst < 1:
        raise ValueError("a bucket is filled with something, and holds a token at least")


class TenantPlaces:
    """Bound what of one tenant is at work at the same time. `most` is asked each time."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most, self._changed = most, threading.Condition()
        self._taken: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()

    @property
    def most(self) -> int:
        return self._most()

    def enter(self, tenant_id: str, *, wait: float = 0.0) -> bool:
        """Take a place, which is to be left again. Return False where all of the tenant's are taken.

        Wait up to `wait` seconds for one, unless as many wait for the tenant's places as there are.
        """
        with self._changed:
            if wait and self._waiting[tenant_id] < self._most() <= self._taken[tenant_id]:
                self._waiting[tenant_id] += 1
                self._changed.wait_for(lambda: self._taken[tenant_id] < self._most(), wait)
                self._waiting[tenant_id] -= 1
            if self._taken[tenant_id] >= self._most():
                return False
            self._taken[tenant_id] += 1
            return True

    def leave(self, tenant_id: str) -> None:
        with self._changed:
            self._taken[tenant_id] -= 1
            if self._taken[tenant_id] <= 0:
                del self._taken[tenant_id]
            self._changed.notify_all()

    def taken(self, tenant_id: str) -> int:
        with self._changed:
            return self._taken.get(tenant_id, 0)

    def waiting(self, tenant_id: str) -> int:
        with self._changed:
            return self._waiting.get(tenant_id, 0)


class BoundedCache(Generic[_K, _V]):
    """Hold values by key, `size` at most: those that were written last. A miss costs time, never correctness."""

    def __init__(self, size: int) -> None:
        self._size, self._lock = size, threading.Lock()
        self._values: OrderedDict[_K, _V] = OrderedDict()
        _caches.add(self)

    def get(self, key: _K) -> _V | None:
        with self._lock:
            return self._values.get(key)

    def put(self, key: _K, value: _V) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)

    def forget(self, key: _K) -> None:
        with self._lock:
            self._values.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._values.clear()


_caches: Final[WeakSet[BoundedCache[Any, Any]]] = WeakSet()  # those of the process, which tests empty
