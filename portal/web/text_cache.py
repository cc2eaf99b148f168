"""Keep texts made from texts, within a bound of bytes."""

from __future__ import annotations

import sys
from collections import OrderedDict
from threading import Lock


class TextCache:
    """Forgets what was not asked for longest, so that keys and values together take at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.size = 0
        self._values: OrderedDict[str, str] = OrderedDict()
        self._lock = Lock()

    def get(self, key: str) -> str | None:
        with self._lock:
            value = self._values.get(key)
            if value is not None:
                self._values.move_to_end(key)
            return value

    def put(self, key: str, value: str) -> None:
        added = sys.getsizeof(key) + sys.getsizeof(value)
        if added > self.limit:
            return
        with self._lock:
            if key in self._values:
                return
            self._values[key] = value
            self.size += added
            while self.size > self.limit:
                old_key, old_value = self._values.popitem(last=False)
                self.size -= sys.getsizeof(old_key) + sys.getsizeof(old_value)
