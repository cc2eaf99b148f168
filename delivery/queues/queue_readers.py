"""Read queues that others fill, such as the one in which Amazon SES tells of letters, in the processes that deliver.

A package declares its queue and the function that takes up a message. Up to ten messages are taken up at the same time:
one that fails stays in the queue, is seen again when its visibility ends, and keeps no other from being taken up.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from delivery.queues import queue_transport
from delivery.queues.queue_transport import ATTRIBUTES, BATCH
from portal.dynamo import retry
from portal.errors import Invalid, PortalError
from portal.queueing import sqs_client

log = logging.getLogger("pooldesk.delivery")

VISIBILITY_SECONDS = queue_transport.VISIBILITY_SECONDS  # after which what a dead process had is seen by another
POLL_SECONDS: Final = 5  # a poll is not cancelled, so stopping takes as long
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0  # seconds, while the queue is away

# Takes the body of one message. Raises Invalid for one that can never be taken up, which is deleted; after any other
# error the message comes again.
Take = Callable[[str], object]

_readers: Final[dict[str, Take]] = {}


def declare_reader(queue: str, take: Take) -> None:
    """Let the messages of a queue be taken up. Raises ValueError where another declaration has the queue."""
    if _readers.setdefault(queue, take) is not take:
        raise ValueError(f"the queue {queue} has two readers")


def create_missing() -> dict[str, bool]:
    """Create the declared queues that are missing. Returns their names, True where created now. On AWS the stack does
    that."""
    connection = sqs_client.queue_connection("delivery")
    found = {}
    for queue in _readers:
        name = sqs_client.full_name(queue)
        found[name] = not connection.exists(name)
        if found[name]:
            connection.create(name, ATTRIBUTES)
    return found


def read(queue: str, *, wait: int = POLL_SECONDS) -> Counter[str]:
    """Take up to 10 messages of a queue, and delete those that were taken up. Returns how many were "read", "refused"
    and "left": none where the queue is empty for `wait` seconds (at most 20).

    Raises Unavailable, Throttled and Rejected where the queue itself cannot be read.
    """
    connection, name, counts = sqs_client.queue_connection("delivery"), sqs_client.full_name(queue), Counter[str]()
    answer = connection.call(
        "ReceiveMessage", name, MaxNumberOfMessages=BATCH, WaitTimeSeconds=wait, VisibilityTimeout=VISIBILITY_SECONDS
    )
    messages = answer.get("Messages", [])
    if not messages:
        return counts
    # At the same time: each waits for other stores most of its time, and a queue of one reader is as slow as one wait.
    with ThreadPoolExecutor(len(messages)) as pool:
        outcomes = list(pool.map(partial(take, queue), [message["Body"] for message in messages]))
    counts.update(outcomes)
    done = [
        {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
        for place, (message, outcome) in enumerate(zip(messages, outcomes, strict=True))
        if outcome != "left"
    ]
    if done:  # what is not deleted comes again
        connection.call("DeleteMessageBatch", name, Entries=done)
    return counts


def take(queue: str, body: str) -> str:
    """Take up one message. Returns "read", "refused" for one that can never be, or "left" for one to come again."""
    try:
        _readers[queue](body)
    except Invalid as error:
        log.error("A message of the queue %s was thrown away: %s", queue, error.message)
        return "refused"
    except PortalError as error:
        log.warning("A message stays in the queue %s: %s", queue, error.message)
        return "left"
    except Exception:
        log.exception("A message stays in the queue %s", queue)
        return "left"
    return "read"


def take_batch(queue: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Take up what Lambda brings of a queue. Returns the ids of the messages that must stay."""
    stay = [one["messageId"] for one in event.get("Records", ()) if take(queue, one["body"]) == "left"]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in stay]}


class QueueReaders:
    """Reads all declared queues, each in a thread of its own."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        # Daemons: a message that hangs must not keep the process from ending.
        self._threads = [threading.Thread(target=self._run, args=(queue,), daemon=True) for queue in _readers]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, *, seconds: float) -> bool:
        """Finish what is being taken up. Return whether all of it has ended within the time."""
        self._stopping.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(seconds)
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self, queue: str) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                read(queue)
                failures = 0
            except PortalError as error:
                failures += 1
                log.warning("The queue %s could not be read: %s", queue, error.message)
                self._stopping.wait(retry.pause(failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE))
