"""Give each tenant so many places in something that all tenants share, such as the threads of a process."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable


class TenantPlaces:
    """Bound what of one tenant is at work at the same time. Nobody waits for a place. `most` is asked each time."""

    def __init__(self, most: Callable[[], int]) -> None:
        self._most, self._lock = most, threading.Lock()
        self._taken: Counter[str] = Counter()

    @property
    def most(self) -> int:
        """Return how many places a tenant has."""
        return self._most()

    def enter(self, tenant_id: str) -> bool:
        """Take a place; False where all of the tenant's are taken. Who has taken one leaves it."""
        with self._lock:
            if self._taken[tenant_id] >= self._most():
                return False
            self._taken[tenant_id] += 1
            return True

    def leave(self, tenant_id: str) -> None:
        """Give a place back."""
        with self._lock:
            self._taken[tenant_id] -= 1
            if self._taken[tenant_id] <= 0:
                del self._taken[tenant_id]

    def taken(self, tenant_id: str) -> int:
        """Return how many places of a tenant are taken."""
        with self._lock:
            return self._taken.get(tenant_id, 0)
