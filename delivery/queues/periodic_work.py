"""Do what is due by the clock: send what waited, sweep, look up unanswered messages, and look how full queues are.

All outboxes are swept by the one dispatcher that sweeps: that of all, and those of tenants that have one of their own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Final

from delivery.queues import depths
from delivery.queues.dispatcher import GRACE, WATCHED_SECONDS, Dispatcher, Sweeper
from delivery.queues.holds import HoldApplier
from delivery.queues.queue_transport import QueueTransport
from delivery.queues.sender import Sender
from portal.errors import PortalError, Unavailable
from portal.streams import background, stream_source
from portal.streams.stream_source import StreamSource

log = logging.getLogger("pooldesk.delivery")

SWEEP_SECONDS: Final = 2.0  # between two sweeps; each costs a Query for each shard of the index
_LOOK_SECONDS: Final = 0.25  # between two looks whether something is due, at most


class PeriodicWork:
    """Works in a thread of its own, or `catch_up` is called now and then.

    `sweeps` tells whether this dispatcher is the one that sweeps. Messages that nobody has answered are looked up every
    `watched_seconds`.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        sender: Sender,
        transport: QueueTransport,
        *,
        sweeps: Callable[[], bool],
        watched_seconds: float = WATCHED_SECONDS,
    ) -> None:
        self._watched_seconds = watched_seconds
        self._dispatcher, self._sender, self._sweeps = dispatcher, sender, sweeps
        self._refresher = Refresher(sender, transport)
        self._sweeper = Sweeper(dispatcher)
        self._holds = HoldApplier()
        self._swept_at = self._looked_at = time.monotonic()
        self._sweeping = threading.Lock()
        self._swept = self._sent = 0  # messages that the last sweep sent, and all of them

    def running(self) -> AbstractContextManager[None]:
        return background.working(lambda _: self.turn(), pause=self._pause, name="sending", log=log)

    def turn(self) -> None:
        """Do what is due now. Raises Unavailable."""
        now = time.monotonic()
        self._sent += self._dispatcher.pump()
        self._refresher.turn()
        if now - self._looked_at >= self._watched_seconds:
            self._looked_at = now
            self._dispatcher.look_up(older_than=self._watched_seconds)
        if now - self._swept_at >= SWEEP_SECONDS and self._sweeps():
            self._swept_at = now
            self._holds.step(seconds=SWEEP_SECONDS)
            self._swept = self.sweep()
            self._sent += self._swept

    def catch_up(self, *, seconds: float) -> int:
        """Do what is due, until a sweep finds nothing to send and nothing waits, or so many seconds have passed.

        Returns how many messages went. Raises Unavailable.
        """
        until = time.monotonic() + seconds
        self._swept_at = float("-inf")
        while True:
            swept_at = self._swept_at
            self.turn()
            is_idle = not (self._swept or self._sender.counts()["waiting"])
            if (is_idle and self._swept_at > swept_at) or time.monotonic() > until:
                return self._sent
            time.sleep(self._pause())

    def sweep(self, *, grace: timedelta = GRACE) -> int:
        """Sweep all outboxes once. Return how many messages went. Raises Unavailable for the outbox of all."""
        with self._sweeping:
            sent = self._sweeper.sweep(grace=grace)["sent"]
            return sent + sum(self._sweep_own(source, grace) for source in stream_source.placed())

    def _sweep_own(self, source: StreamSource, grace: timedelta) -> int:
        try:
            with source.entered():
                return self._sweeper.sweep(grace=grace)["sent"]
        except Unavailable as error:  # of one tenant's site the others do not hear
            log.warning("The outbox of %s is swept later: %s", source, error.message)
            return 0

    def exhaust(self) -> bool:
        """Send all that is due, also what the stream might still send. Return whether there was nothing to send."""
        return self.sweep(grace=timedelta(0)) + self._dispatcher.pump() == 0

    def _pause(self) -> float:
        due = self._sender.seconds_to_pump()
        return _LOOK_SECONDS if due is None else min(_LOOK_SECONDS, max(0.01, due))


class Refresher:
    """Look once a minute how full the queues are: to correct the sender slowly, and to tell operators.

    Call `turn` as often as you like. `clock` gives seconds that never go back.
    """

    def __init__(
        self, sender: Sender, transport: QueueTransport, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sender, self._transport, self._clock = sender, transport, clock
        self._due = clock()

    def turn(self) -> bool:
        """Look at all queues, if it is time: a request for each, and one PutItem. Returns whether it did.

        Unreachable ones are tried in the next turn; nothing depends on it.
        """
        if self._clock() < self._due:
            return False
        self._due = self._clock() + depths.EVERY_SECONDS
        try:
            seen = self._transport.depths()
            self._sender.correct(seen)
            depths.write(seen)
        except PortalError as error:
            log.warning("The depths of the queues could not be measured: %s", error.message)
        return True
