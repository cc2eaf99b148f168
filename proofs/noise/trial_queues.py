"""Use the product's way to the queues, with as many queues as a design has, and a bell that says when to look.

Amazon SQS answers a waiting receive as soon as there is a message. ministack looks ten times a second, which would add
50 ms to both phases and flatter their ratio. So a receive waits in this process until a message was sent, and asks
then. The bell is a hint: now and then a queue is asked unasked, which finds what comes again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from delivery.queues.queue_transport import VISIBILITY_SECONDS as _PRODUCTS
from delivery.queues.queue_transport import Message, QueueTransport, Received

LOOK_SECONDS: Final = 2.0  # between two receives that no bell asked for


class TrialQueues(QueueTransport):
    """The queues of one trial. Without `bell` a receive waits at the engine, as the product's does."""

    def __init__(self, name: str, count: int, *, bell: bool, visibility: int = _PRODUCTS) -> None:
        super().__init__("worker", name=name)
        self._count, self._bell, self._visibility = count, bell, visibility
        self._rung = [threading.Condition() for _ in range(count)]
        self._hints = [0] * count  # by queue, messages that were sent and that nobody has gone for

    @property
    def queues(self) -> int:
        return self._count

    def send(self, queue: int, messages: Sequence[Message], *, delay: int = 0) -> list[Message]:
        refused = super().send(queue, messages, delay=delay)
        if self._bell:
            self._ring_after(delay, queue, len(messages) - len(refused))
        return refused

    def receive(self, queue: int, *, most: int = 1, wait: int = 1, visibility: int = _PRODUCTS) -> list[Received]:
        visibility = min(visibility, self._visibility)
        if not self._bell:
            return super().receive(queue, most=most, wait=wait, visibility=visibility)
        with self._rung[queue]:
            self._rung[queue].wait_for(lambda: self._hints[queue], min(wait, LOOK_SECONDS))
            self._hints[queue] = max(0, self._hints[queue] - most)
        found = super().receive(queue, most=most, wait=0, visibility=visibility)
        self._ring(queue, sum(one.receives > 1 for one in found))  # they stand in the place of those announced
        return found

    def extend(self, queue: int, handles: Sequence[str], *, seconds: int) -> list[str]:
        return super().extend(queue, handles, seconds=min(seconds, self._visibility))

    def _ring_after(self, delay: int, queue: int, messages: int) -> None:
        if not delay:
            self._ring(queue, messages)
            return
        timer = threading.Timer(delay, self._ring, (queue, messages))
        timer.daemon = True
        timer.start()

    def _ring(self, queue: int, messages: int) -> None:
        with self._rung[queue]:
            self._hints[queue] += messages
            self._rung[queue].notify(messages)
