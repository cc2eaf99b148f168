"""Give each tenant so many places in something that all tenants share, such as the threads of a process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable


class TenantPlaces:
    """Bound what of one tenant is at work at the same time. `most` is asked each time."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most, self._changed = most, threading.Condition()
        self._taken: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()

    @property
    def most(self) -> int:
        """Return how many places a tenant has."""
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
        """Give a place back."""
        with self._changed:
            self._taken[tenant_id] -= 1
            if self._taken[tenant_id] <= 0:
                del self._taken[tenant_id]
            self._changed.notify_all()

    def taken(self, tenant_id: str) -> int:
        """Return how many places of a tenant are taken."""
        with self._changed:
            return self._taken.get(tenant_id, 0)

    def waiting(self, tenant_id: str) -> int:
        """Return how many wait for a place of a tenant."""
        with self._changed:
            return self._waiting.get(tenant_id, 0)
