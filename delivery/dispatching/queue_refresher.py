"""Look once a minute how full the queues are: to correct the sender slowly, and to tell operators."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from delivery.dispatching.sender import Sender
from delivery.queues import depths
from delivery.queues.queue_transport import QueueTransport
from portal.errors import PortalError

log = logging.getLogger("pooldesk.delivery")


class Refresher:
    """Call `turn` as often as you like; it looks when a minute has passed. `clock` gives seconds that never go back."""

    def __init__(
        self, sender: Sender, transport: QueueTransport, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sender, self._transport, self._clock = sender, transport, clock
        self._due = clock()

    def turn(self) -> bool:
        """Look at all queues, if it is time: a request for each, and one PutItem. Returns whether it did.

        What cannot be reached is looked at in the next turn; nothing depends on it.
        """
        if self._clock() < self._due:
            return False
        self._due = self._clock() + depths.EVERY_SECONDS
        try:
            seen = self._transport.depths()
            self._sender.correct(seen)
            depths.tell(seen)
        except PortalError as error:
            log.warning("How full the queues are cannot be told: %s", error.message)
        return True
