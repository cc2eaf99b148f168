"""Say over which partitions of its indexes a tenant's tickets are spread, and for how long a process may believe it.

A ticket lies in one of the partitions of its status, and lists read all of them. While their number changes, some
processes know the new layout and others the old one. So nobody uses a layout that was read longer ago than
CONTEXT_SECONDS: who still works by then reads it anew, by a clock that nobody can set. A job that changes a layout
waits for longer than that, and then all other processes know it; see docs/adr/0019-live-resharding.md.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

_T = TypeVar("_T")
MOST_SHARDS: Final = 16
CONTEXT_SECONDS: float = 20.0  # a torture shortens it


@dataclass(frozen=True)
class ShardLayout:
    """Spread the tickets of each status: lists read the partitions 0 to `readers` - 1, writes go to 0 to `writers` - 1.

    `epoch` grows with every change. While tickets are being moved, `moving_to` says into how many partitions, else it
    is 0.
    """

    readers: int = 1
    writers: int = 1
    epoch: int = 0
    moving_to: int = 0

    @classmethod
    def of(cls, stored: Any) -> ShardLayout:
        """Take it from a tenant as stored, or as a context has it. Writes go where lists read, if nothing else is
        said."""
        readers = int(stored.shards)
        writers, moving_to = int(stored.write_shards or readers), int(stored.moving_to or 0)
        return cls(readers, writers, int(stored.shard_epoch), moving_to)

    @property
    def rests(self) -> bool:
        """Tell whether no ticket is being moved and lists read no more partitions than writes go to."""
        return self.readers == self.writers and not self.moving_to


class FreshRead(Generic[_T]):
    """A value as it was read at a moment of the monotonic clock, read anew once it is older than CONTEXT_SECONDS."""

    def __init__(self, known: _T, read: Callable[[], _T], read_at: float | None = None) -> None:
        self._known, self._read = (known, time.monotonic() if read_at is None else read_at), read

    def current(self) -> _T:
        """Return it, at most CONTEXT_SECONDS old. Raises Unavailable, and NotFound without a tenant."""
        known, read_at = self._known
        return self.again() if time.monotonic() - read_at > CONTEXT_SECONDS else known

    def again(self) -> _T:
        """Read it, and return it. Raises Unavailable, and NotFound without a tenant."""
        began = time.monotonic()
        known = self._read()
        self._known = known, began
        return known
