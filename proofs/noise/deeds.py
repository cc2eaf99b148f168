"""Do what a message of the experiment asks for. Its destination says what.

`work/323` takes so many milliseconds; `hang/9000/1760000000` hangs so long and fails, and `kill/0/1760000000` ends the
process, both until that moment (seconds since the epoch) and not any more after it: the noise ends with its phase.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from delivery.consuming import message_handling
from delivery.consuming.message_handling import Handled
from delivery.queues.queue_transport import Message, Received
from proofs.noise.worker_notes import ANSWERED, DEAD, FAILED

WORK: Final = "work"
HANG: Final = "hang"
KILL: Final = "kill"

Begin = Callable[[str, str], object]  # event id, tenant id
End = Callable[[str, str, str], object]  # and how it ended


def work(seconds: float) -> str:
    """Return what a message carries to have something worked on."""
    return f"{WORK}/{round(seconds * 1000)}"


def poison(deed: str, seconds: float, *, until: float) -> str:
    """Return what a message carries that does harm until a moment."""
    return f"{deed}/{round(seconds * 1000)}/{until:.3f}"


@dataclass(frozen=True)
class DeedHandler:
    """Handles messages of one worker in place of the product's `MessageHandler`, with its rule for strikes."""

    begin: Begin
    end: End

    def handle(self, received: Received, message: Message) -> Handled:
        """Do it. What ends badly is not sent again: the clients do that."""
        if message_handling.strikes_of(received, message) >= message_handling.MOST_STRIKES:
            return self._ended(message, DEAD)
        self.begin(message.event_id, message.tenant_id)
        deed, milliseconds, *until = message.destination.split("/")
        if until and time.time() > float(until[0]):
            return self._ended(message, ANSWERED)
        if deed == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(int(milliseconds) / 1000)
        return self._ended(message, FAILED if deed == HANG else ANSWERED)

    def _ended(self, message: Message, how: str) -> Handled:
        self.end(message.event_id, message.tenant_id, how)
        return Handled(how)
