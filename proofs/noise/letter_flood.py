"""Bring the requests of a trial in as letters: by the queue that all desks share, to the queues of their desk.

The readers of that queue and their pace are the product's. A sleep replaces the copying of a letter, and another one,
as with deliveries, its filing. The noisy desk gets LETTERS in the noisy phase, evenly from all of its clients, who wait
for no answer; a quiet client waits until its letter is filed.

The shared queue is in memory and answers as quickly however many messages it holds. ministack looks through all of them
for each request, and took 11 ms for receiving and deleting ten of few, and 26 ms beside 3,000 that were put off.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Final

from django.conf import settings

from delivery.queues import queue_readers
from delivery.queues.queue_readers import QueueReaders
from delivery.queues.queue_transport import BATCH, Message, QueueTransport
from portal import clock
from portal.schema import keys
from proofs.noise.closed_loop import NOISY_CLIENTS
from proofs.noise.designs import Design
from tickets.letters import envelope
from tickets.letters.envelope import Envelope
from tickets.letters.stored import INCOMING, LETTERS_QUEUE

LETTERS: Final = 10_000  # to the noisy desk
COPY_SECONDS: Final = 0.03  # that handing a letter on takes: an object is read, written and deleted
_CALL_SECONDS: Final = 0.005  # that the shared queue takes to answer


class _SharedQueue:
    """Does what the readers ask of Amazon SQS. It gives each message once, so none comes again."""

    def __init__(self) -> None:
        self._messages: list[tuple[float, int, dict[str, Any]]] = []  # by when each can be received
        self._serial = itertools.count()
        self._changed = threading.Condition()

    def call(self, operation: str, queue: str, **params: Any) -> dict[str, Any]:
        time.sleep(_CALL_SECONDS)
        if operation == "ReceiveMessage":
            return {"Messages": self._receive(params["MaxNumberOfMessages"], params["WaitTimeSeconds"])}
        if operation == "SendMessageBatch":
            self._send(params["Entries"])
        return {}

    def _send(self, entries: Sequence[dict[str, Any]]) -> None:
        with self._changed:
            for one in entries:
                number, at = next(self._serial), time.monotonic() + one.get("DelaySeconds", 0)
                told = {"Body": one["MessageBody"], "MessageAttributes": one.get("MessageAttributes", {})}
                heapq.heappush(self._messages, (at, number, told | {"ReceiptHandle": str(number)}))
            self._changed.notify()

    def _receive(self, most: int, wait: float) -> list[dict[str, Any]]:
        until, found = time.monotonic() + wait, list[dict[str, Any]]()
        with self._changed:
            while not found and (now := time.monotonic()) <= until:
                while self._messages and self._messages[0][0] <= now and len(found) < most:
                    found.append(heapq.heappop(self._messages)[2])
                if not found:
                    due = self._messages[0][0] if self._messages else until
                    self._changed.wait(max(0.001, min(due, until) - now))
        return found


class LetterSide:
    """The sending side of a trial whose requests are letters."""

    def __init__(self, design: Design, transport: QueueTransport) -> None:
        self._design, self._transport, self._turn = design, transport, itertools.count()
        self._waiting: dict[str, threading.Event] = {}
        self._ends: dict[str, str] = {}
        self._shared = _SharedQueue()
        queue_readers._readers.clear()
        queue_readers._readers[LETTERS_QUEUE] = self._take
        # The readers of this process, which carries out one trial, ask that queue.
        shared = SimpleNamespace(queue_connection=lambda role: self._shared, full_name=str)
        vars(queue_readers)["sqs_client"] = shared
        QueueReaders().start()

    def send(self, tenant: int, event_id: str, destination: str) -> str:
        over = self._waiting[event_id] = threading.Event()
        self._bring([_notification(tenant, event_id, destination)])
        over.wait()
        return self._ends.pop(event_id)

    def flood(self, tenant: int, event_id: str, destination: str, *, seconds: float) -> str:
        """Bring ten letters in, as one of the noisy desk's clients that brings LETTERS in within so many seconds."""
        began = time.monotonic()
        self._bring([_notification(tenant, f"{event_id}-{number}", destination) for number in range(BATCH)])
        time.sleep(max(0.0, began + seconds * NOISY_CLIENTS * BATCH / LETTERS - time.monotonic()))
        return "answered"

    def ended(self, event_id: str, how: str) -> None:
        if over := self._waiting.pop(event_id, None):
            self._ends[event_id] = how
            over.set()

    def give_up(self) -> None:
        for event_id in list(self._waiting):
            self.ended(event_id, "unanswered")

    def _bring(self, bodies: Sequence[str]) -> None:
        entries = [{"Id": str(number), "MessageBody": body} for number, body in enumerate(bodies)]
        self._shared.call("SendMessageBatch", LETTERS_QUEUE, Entries=entries)

    def _take(self, notification: str) -> None:
        """Hand a letter on, as the product does: to any of its desk's queues."""
        time.sleep(COPY_SECONDS)
        found, key = envelope.read(notification)
        tenant, destination = key.removeprefix(INCOMING).split("/", 1)
        identity = keys.tenant(f"{int(tenant):08x}{0:024x}")
        queues = self._design.queues_of[int(tenant)]
        queue = queues[next(self._turn) % len(queues)]
        self._transport.send(queue, [Message(identity, found.name, "now", 0, destination)])


def _notification(tenant: int, event_id: str, destination: str) -> str:
    to = f"desk-{tenant}@{settings.MAIL_DOMAIN}"
    found = Envelope(event_id, "somebody@example.com", (to,), clock.stamp())
    return found.notification(bucket=settings.MAIL_BUCKET, key=f"{INCOMING}{tenant}/{destination}")
