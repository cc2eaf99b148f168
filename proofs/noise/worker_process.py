"""Be one worker that may die: a process with the product's `Consumer`, which tells its parent what it begins and ends.

The server that forks such workers imports this module once, so that starting one takes no second.
"""

from __future__ import annotations

import multiprocessing
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

import django

django.setup()

from delivery.consuming.consumer import Consumer  # noqa: E402  # Django's settings come first
from proofs.noise.deeds import DeedHandler  # noqa: E402
from proofs.noise.trial_queues import TrialQueues  # noqa: E402
from proofs.noise.workload import SLOTS  # noqa: E402

# Parts of what a worker says after its first word, which says that it is there.
BEGUN: Final = 2  # event and tenant of what it has begun
ENDED: Final = 3  # and how that ended


@dataclass(frozen=True)
class Specification:
    """Say what a worker serves, and how."""

    transport_name: str
    queues: int
    served: tuple[int, ...]
    poll_seconds: int
    visibility: int


def run(parent: Connection, asked: Specification) -> None:
    """Deliver until the parent is gone or kills this process."""
    lock = threading.Lock()

    def tell(*said: Any) -> None:
        with lock:
            parent.send(said)

    transport = TrialQueues(asked.transport_name, asked.queues, bell=False, visibility=asked.visibility)
    transport.depth(asked.served[0])  # the first request makes the client, which takes a moment
    handler = DeedHandler(tell, tell)
    consumer = Consumer(transport, handler.handle, asked.served, slots=SLOTS, poll_seconds=asked.poll_seconds)
    consumer.start()
    tell("ready")
    if creator := multiprocessing.parent_process():
        creator.join()
