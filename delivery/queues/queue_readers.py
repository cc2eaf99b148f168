"""Read queues that others fill, such as the one in which Amazon SES tells of letters, in the processes that deliver.

A package declares its queue and the function that takes up a message. Up to ten messages are taken up at the same time:
one that fails stays in the queue, is seen again when its visibility ends, and keeps no other from being taken up.

Such a queue is shared by all tenants. A package may therefore declare how long a message is put off, which it tells
from the message alone: so the messages of a flood go back into the queue ten at a time, to come again one by one, and
those of others are taken up meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final, NamedTuple

from delivery.queues import queue_transport
from delivery.queues.queue_transport import ATTRIBUTES, BATCH, LONGEST_DELAY
from portal.dynamo import retry
from portal.errors import Invalid, PortalError
from portal.queueing import sqs_client

log = logging.getLogger("pooldesk.delivery")

VISIBILITY_SECONDS = queue_transport.VISIBILITY_SECONDS  # after which what a dead process had is seen by another
POLL_SECONDS = 5  # a poll is not cancelled, so stopping takes as long
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0  # seconds, while the queue is away
_BATCHES: Final = 3  # of one queue at a time, in one process: the next does not wait for the slowest of the last
_PUT_OFF: Final = "PutOff"  # the attribute of a message that has been put off and whose turn it is when it comes again

# Takes the body of one message. Raises Invalid for one that can never be taken up, which is deleted; after any other
# error the message comes again.
Take = Callable[[str], object]
# Returns the seconds by which a message is put off, 0 for none, and costs no request. At most LONGEST_DELAY: then it is
# asked again when the message comes again.
Pace = Callable[[str], float]

_readers: Final[dict[str, Take]] = {}
_paces: Final[dict[str, Pace]] = {}


class _Told(NamedTuple):
    body: str
    was_put_off: bool


def declare_reader(queue: str, take: Take, *, pace: Pace | None = None) -> None:
    """Let the messages of a queue be taken up. Raises ValueError where another declaration has the queue."""
    if _readers.setdefault(queue, take) is not take:
        raise ValueError(f"the queue {queue} has two readers")
    if pace:
        _paces[queue] = pace


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


def read(queue: str, *, wait: int | None = None, receiving: AbstractContextManager[Any] | None = None) -> Counter[str]:
    """Take up to 10 messages of a queue, and delete those that were taken up. Returns how many were "read", "refused",
    "put off" and "left": none where the queue is empty for `wait` seconds (at most 20, POLL_SECONDS if not given).

    The queue is asked inside of `receiving`. Raises Unavailable, Throttled and Rejected where it cannot be read.
    """
    connection, name, counts = sqs_client.queue_connection("delivery"), sqs_client.full_name(queue), Counter[str]()
    with receiving or nullcontext():
        answer = connection.call(
            "ReceiveMessage",
            name,
            MaxNumberOfMessages=BATCH,
            WaitTimeSeconds=POLL_SECONDS if wait is None else wait,
            VisibilityTimeout=VISIBILITY_SECONDS,
            MessageAttributeNames=[_PUT_OFF],
        )
    messages = answer.get("Messages", [])
    if not messages:
        return counts
    told = [_Told(message["Body"], _PUT_OFF in message.get("MessageAttributes", {})) for message in messages]
    outcomes = _take_up(queue, told)
    counts.update(outcomes)
    done = [
        {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
        for place, (message, outcome) in enumerate(zip(messages, outcomes, strict=True))
        if outcome != "left"
    ]
    if done:  # what is not deleted comes again
        connection.call("DeleteMessageBatch", name, Entries=done)
    return counts


def _take_up(queue: str, messages: Sequence[_Told]) -> list[str]:
    """Put off or take up each of these messages. Returns what came of each."""
    seconds = [0.0 if one.was_put_off else _seconds_put_off(queue, one.body) for one in messages]
    later = {place: (messages[place].body, wait) for place, wait in enumerate(seconds) if wait > 0}
    now = [place for place in range(len(messages)) if place not in later]
    if not now:
        outcomes = _put_off(queue, later)
    else:
        # At the same time: each waits for other stores most of its time, and a queue is as slow as one wait else.
        with ThreadPoolExecutor(len(now)) as pool:
            taken = pool.map(lambda place: take(queue, messages[place].body), now)
            outcomes = _put_off(queue, later)
            outcomes |= dict(zip(now, taken, strict=True))
    return [outcomes[place] for place in range(len(messages))]


def _seconds_put_off(queue: str, body: str) -> float:
    pace = _paces.get(queue)
    try:
        return pace(body) if pace else 0.0
    except Invalid:
        return 0.0  # it is refused when it is taken up


def _put_off(queue: str, waiting: Mapping[int, tuple[str, float]]) -> dict[int, str]:
    """Send messages anew, each with the seconds after which it comes again. Returns what came of each, by its place."""
    if not waiting:
        return {}
    its_turn = {"MessageAttributes": {_PUT_OFF: {"DataType": "String", "StringValue": "1"}}}
    entries = [
        {"Id": str(place), "MessageBody": body, "DelaySeconds": min(LONGEST_DELAY, int(seconds + 0.999))}
        | (its_turn if seconds < LONGEST_DELAY else {})
        for place, (body, seconds) in waiting.items()
    ]
    try:
        answer = sqs_client.queue_connection("delivery").call(
            "SendMessageBatch", sqs_client.full_name(queue), Entries=entries
        )
    except PortalError as error:
        log.warning("Messages of the queue %s could not be put off: %s", queue, error.message)
        return dict.fromkeys(waiting, "left")
    failed = {int(one["Id"]) for one in answer.get("Failed", ())}
    return {place: "left" if place in failed else "put off" for place in waiting}


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
    records = event.get("Records", ())
    told = [_Told(one["body"], _PUT_OFF in one.get("messageAttributes", {})) for one in records]
    outcomes = zip(records, _take_up(queue, told), strict=True)
    stay = [record["messageId"] for record, outcome in outcomes if outcome == "left"]
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in stay]}


class QueueReaders:
    """Reads all declared queues, each in threads of its own, one of which asks the queue while others take up."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        # Daemons: a message that hangs must not keep the process from ending.
        self._threads = [
            threading.Thread(target=self._run, args=(queue, receiving), daemon=True)
            for queue, receiving in [(queue, threading.Lock()) for queue in _readers]
            for _ in range(_BATCHES)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, *, seconds: float) -> bool:
        """Finish what is being taken up. Return whether all of it has ended within the time."""
        self._stopping.set()
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _run(self, queue: str, receiving: threading.Lock) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                read(queue, receiving=receiving)
                failures = 0
            except PortalError as error:
                failures += 1
                log.warning("The queue %s could not be read: %s", queue, error.message)
                self._stopping.wait(retry.pause(failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE))
