"""Cache the latest values of a process. A miss costs time, never correctness."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Any, Final, Generic, TypeVar
from weakref import WeakSet

_K = TypeVar("_K")
_V = TypeVar("_V")


class BoundedCache(Generic[_K, _V]):
    """Hold values by key, `size` at most: those that were written last."""

    def __init__(self, size: int) -> None:
        self._size, self._lock = size, Lock()
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
