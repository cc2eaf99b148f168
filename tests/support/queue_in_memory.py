"""Queues as a consumer sees them, in memory, and with what was measured on the real ones.

A redelivered message comes before newer ones, since the order is that of sending. A handle of an earlier receive
deletes nothing and says so. Polls and delays last a tenth of their time; a visibility timeout lasts all of it, but can
be made to end.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from delivery.queues.queue_transport import Message, QueueTransport, Received

HASTE = 10


@dataclass
class _Stored:
    number: int
    queue: int
    body: str
    visible_at: float
    receives: int = 0
    handle: str = ""
    request: str = ""


class QueuesInMemory(QueueTransport):
    """A transport without SQS. `errors` are raised by the next receives, one each."""

    def __init__(self) -> None:
        super().__init__()
        self._changed = threading.Condition()
        self._numbers = itertools.count(1)
        self._stored: list[_Stored] = []
        self.errors: list[Exception] = []
        self.refuses_deletes = False
        self.longest_ask = 0
        self.polls = 0  # how many have begun

    @property
    def queues(self) -> int:
        return 8

    def put(self, queue: int, body: str) -> None:
        """Add a body as it is."""
        with self._changed:
            self._stored.append(_Stored(next(self._numbers), queue, body, 0.0))
            self._changed.notify_all()

    def send(self, queue: int, messages: Sequence[Message], *, delay: int = 0) -> list[Message]:
        with self._changed:
            for message in messages:
                visible_at = time.monotonic() + delay / HASTE if delay else 0.0
                self._stored.append(
                    _Stored(next(self._numbers), queue, message.body(), visible_at, request=message.request)
                )
            self._changed.notify_all()
        return []

    def receive(self, queue: int, *, most: int = 1, wait: int = 0, visibility: int = 30) -> list[Received]:
        deadline = time.monotonic() + wait / HASTE
        with self._changed:
            if self.errors:
                raise self.errors.pop(0)
            self.longest_ask = max(self.longest_ask, most)
            self.polls += 1
            while not (visible := self._visible(queue)) and time.monotonic() < deadline:
                self._changed.wait(0.02)
            received = []
            for stored in visible[:most]:
                stored.receives += 1
                stored.visible_at = time.monotonic() + visibility
                stored.handle = f"{stored.number}/{stored.receives}"
                received.append(Received(queue, stored.body, stored.handle, stored.receives, 0.0, stored.request))
            return received

    def delete(self, queue: int, handles: Sequence[str]) -> list[str]:
        with self._changed:
            if self.refuses_deletes:
                return list(handles)
            refused = [handle for handle in handles if handle not in {one.handle for one in self._stored}]
            self._stored = [one for one in self._stored if one.handle not in handles]
            return refused

    def extend(self, queue: int, handles: Sequence[str], *, seconds: int) -> list[str]:
        with self._changed:
            for one in self._stored:
                if one.handle in handles:
                    one.visible_at = time.monotonic() + seconds
        return []

    # --- for tests ---

    def time_out(self) -> None:
        """Let the visibility of everything end at once, as after the death of a worker."""
        with self._changed:
            for one in self._stored:
                one.visible_at = 0.0
            self._changed.notify_all()

    def left(self) -> list[Message]:
        """Return what is stored, visible or not, oldest first."""
        with self._changed:
            return [Message.read(one.body) for one in self._stored]

    def _visible(self, queue: int) -> list[_Stored]:
        now = time.monotonic()
        return [one for one in self._stored if one.queue == queue and one.visible_at <= now]
