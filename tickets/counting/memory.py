"""Remember RECENT of the tenants that a process met last, so that their next batch needs no reads."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from tickets.counting.recent import Recent


class Memory:
    """RECENT of the tenants that were met last, by tenant. What is stale in it costs one refused update."""

    def __init__(self, size: int) -> None:
        self._size, self._lock = size, Lock()
        self._states: OrderedDict[str, Recent] = OrderedDict()

    def get(self, tenant_id: str) -> Recent | None:
        with self._lock:
            return self._states.get(tenant_id)

    def put(self, tenant_id: str, state: Recent) -> None:
        with self._lock:
            self._states[tenant_id] = state
            self._states.move_to_end(tenant_id)
            while len(self._states) > self._size:
                self._states.popitem(last=False)

    def forget(self, tenant_id: str) -> None:
        with self._lock:
            self._states.pop(tenant_id, None)

    def clear(self) -> None:
        with self._lock:
            self._states.clear()
