"""Hold the receipts of what a worker has received: keep it invisible while it is worked on, delete it when it is done.

Deletes are sent in batches, ten times a second. What SQS refuses to delete comes again, and its row says by then that
there is nothing to do.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from delivery.consuming.slots import HANGS_SECONDS
from delivery.queues.queue_transport import Message, Received
from portal.errors import PortalError

log = logging.getLogger("pooldesk.delivery")

VISIBILITY_SECONDS: Final = 30  # after which what a dead worker had is seen by another
EXTEND_SECONDS: Final = 10.0
_DELETE_SECONDS: Final = 0.1
_TRIES: Final = 5


class Transport(Protocol):
    """Name the part of `QueueTransport` that a consumer needs."""

    def send(self, queue: int, messages: list[Message], *, delay: int = 0) -> list[Message]: ...
    def receive(self, queue: int, *, most: int, wait: int, visibility: int) -> list[Received]: ...
    def delete(self, queue: int, handles: list[str]) -> list[str]: ...
    def extend(self, queue: int, handles: list[str], *, seconds: int) -> list[str]: ...


@dataclass
class _Held:
    queue: int
    until: float  # the moment after which it is not extended any more; begins with the work
    extended_at: float


class Receipts:
    """The receipts of one worker. `step` is called by one thread, the rest by any."""

    def __init__(self, transport: Transport, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._transport, self._clock = transport, clock
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        self._done: dict[int, dict[str, int]] = defaultdict(dict)  # by queue, handles and how often they were refused

    def hold(self, queue: int, received: list[Received]) -> None:
        """Begin to keep messages invisible, for as long as they wait for a slot."""
        with self._lock:
            for one in received:
                self._held[one.handle] = _Held(queue, float("inf"), self._clock())

    def begin(self, received: Received) -> None:
        """Note that the work on a message begins now."""
        with self._lock:
            if received.handle in self._held:
                self._held[received.handle].until = self._clock() + HANGS_SECONDS

    def done(self, queue: int, received: Received) -> None:
        """Delete a message soon."""
        with self._lock:
            self._held.pop(received.handle, None)
            self._done[queue][received.handle] = 0

    def let_go(self, received: Received) -> None:
        """Let others see a message when its time is up."""
        with self._lock:
            self._held.pop(received.handle, None)

    def step(self) -> None:
        """Send the deletes that have come together, and extend what is due."""
        with self._lock:
            done, self._done = self._done, defaultdict(dict)
        for queue, handles in done.items():
            self._delete(queue, handles)
        now = self._clock()
        due: dict[int, list[str]] = defaultdict(list)
        with self._lock:
            for handle, held in list(self._held.items()):
                if now > held.until:
                    del self._held[handle]
                elif now - held.extended_at >= EXTEND_SECONDS:
                    held.extended_at = now
                    due[held.queue].append(handle)
        for queue, handles_due in due.items():
            try:
                self._transport.extend(queue, handles_due, seconds=VISIBILITY_SECONDS)
            except PortalError as error:
                log.warning("Messages could not be kept invisible: %s", error.message)

    def run(self, again: Callable[[], bool]) -> None:
        """Step until `again` says no, and once more."""
        while again():
            self.step()
            time.sleep(_DELETE_SECONDS)
        self.step()

    def _delete(self, queue: int, handles: dict[str, int]) -> None:
        try:
            refused = self._transport.delete(queue, list(handles))
        except PortalError as error:
            log.warning("Messages could not be deleted yet: %s", error.message)
            refused = list(handles)
        with self._lock:
            for handle in refused:
                if handles[handle] < _TRIES:
                    self._done[queue][handle] = handles[handle] + 1
