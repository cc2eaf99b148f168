"""Send messages to the numbered queues, receive and delete them; names of queues are formed here alone.

A message holds ids and no data of a tenant. Its group is the tenant, by which Amazon SQS keeps one tenant's backlog
from delaying the others' messages in the same queue; local engines take the group and do nothing with it.

Do not cancel a `receive`: its messages would stay invisible for the whole of their visibility timeout. Let it return.

Sources: AWS, "Amazon SQS fair queues", "SendMessageBatch", "DeleteMessageBatch" (an entry may fail in an answer that
succeeds as a whole).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from django.conf import settings

from delivery.queues import queue_sets
from portal import logs
from portal.dynamo.client import fan_out
from portal.dynamo.placement import Placement
from portal.dynamo.store import chunked
from portal.errors import Invalid, Unavailable
from portal.queueing import sqs_client
from portal.queueing.sqs_client import LONGEST_POLL
from portal.schema import keys
from portal.schema.registry import Role

_T = TypeVar("_T")

NAME: Final = "delivery"  # of all queues, before the number
BATCH: Final = 10  # entries of one request; AWS, "Amazon SQS quotas"
RETENTION_SECONDS: Final = 14 * 86400  # the longest that there is
VISIBILITY_SECONDS: Final = 60  # until a message whose worker has died is seen again, unless receiving says otherwise
LONGEST_DELAY: Final = 900  # seconds
REQUEST: Final = "request"  # the attribute of a message with the id of the request that caused it
_WAIT_SECONDS: Final = 60  # for a queue that was created to be usable; AWS speaks of one second
ATTRIBUTES: Final = {
    "MessageRetentionPeriod": str(RETENTION_SECONDS),
    "VisibilityTimeout": str(VISIBILITY_SECONDS),
    "SqsManagedSseEnabled": "true",
}


@dataclass(frozen=True)
class Message:
    """One event for one destination: the keys of its row in the outbox, and which of the row's members it is.

    `postponed` counts how often a consumer has put it behind others because its tenant had enough in flight, and
    `strikes` how often it was being worked on when that ended badly; neither would survive as a count of receives.
    `placement` says in whose outbox the row is, "" for that of all. `request` is the id of the request that caused the
    event. It travels beside the body as an attribute, which workers of before do not ask for.
    """

    tenant_id: str
    event_id: str
    timestamp: str
    index: int
    destination: str
    postponed: int = 0
    strikes: int = 0
    placement: str = ""
    request: str = field(default="", compare=False)

    def body(self) -> str:
        """Return the message as JSON; without a placement where there is none, as a worker of before wants it."""
        fields = asdict(self)
        del fields["request"]
        if not self.placement:
            del fields["placement"]
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def read(cls, body: str) -> Message:
        """Return the message of a body, without what a newer version may have added. Raises Invalid for what `body`
        never wrote."""
        try:
            stated = json.loads(body)
            if "request" in stated:
                raise ValueError("a request id is no part of a body")
            message = cls(**{name: stated[name] for name in stated if name in cls.__dataclass_fields__})
            keys.tenant(message.tenant_id)
            texts = (message.event_id, message.timestamp, message.destination)
            if not all(isinstance(text, str) and text for text in texts):
                raise ValueError("a key is no text")
            keys.whole_number(message.index, "an index")
            keys.whole_number(message.postponed, "the number of postponements")
            keys.whole_number(message.strikes, "the number of strikes")
            Placement.parse(keys.part(message.placement) if message.placement else "")
        except (TypeError, ValueError) as error:
            raise Invalid(f"This is no message of ours: {error}") from error
        return message


@dataclass(frozen=True)
class Received:
    """A message that one worker has for a while.

    `receives` counts how often it was received, this time included; `handle` is what deletes or extends it.
    """

    queue: int
    body: str
    handle: str
    receives: int
    sent_at: float  # seconds since the epoch
    request: str = ""

    @cached_property
    def message(self) -> Message:
        return replace(Message.read(self.body), request=self.request)

    @property
    def strikes(self) -> int:
        """The times that work on the message ended badly: each receive but this one was such a time."""
        return self.message.strikes + self.receives - 1


@dataclass(frozen=True)
class Depth:
    """Hold the approximate number of messages in a queue: those that wait, are being worked on, and are delayed."""

    waiting: int
    in_flight: int
    delayed: int

    @property
    def total(self) -> int:
        return self.waiting + self.in_flight + self.delayed


class QueueTransport:
    """The queues as one role may use them. Queues are numbered from 0 to DELIVERY_QUEUES - 1.

    Every method raises Unavailable, Throttled, Rejected, and IsolationError for what the role was not granted.
    """

    def __init__(self, role: Role = "worker", *, name: str = NAME) -> None:
        self._role, self._name = role, name

    @property
    def queues(self) -> int:
        return queue_sets.valid_count(settings.DELIVERY_QUEUES)

    def queue_name(self, queue: int) -> str:
        """Return the full name of a queue: `Pooldesk-Prod-delivery-07`."""
        return sqs_client.full_name(f"{self._name}-{queue:02}")

    def send(self, queue: int, messages: Sequence[Message], *, delay: int = 0) -> list[Message]:
        """Send messages, which can be received after `delay` seconds (at most 900). Returns those that SQS refused.

        Costs a request for each 10.
        """

        def entry(message: Message) -> dict[str, Any]:
            return {
                "MessageBody": message.body(),
                "MessageGroupId": message.tenant_id,
                "DelaySeconds": min(delay, LONGEST_DELAY),
                **({"MessageAttributes": {REQUEST: _attribute(message.request)}} if message.request else {}),
            }

        return self._batches("SendMessageBatch", queue, messages, entry)

    def receive(
        self, queue: int, *, most: int = BATCH, wait: int = LONGEST_POLL, visibility: int = VISIBILITY_SECONDS
    ) -> list[Received]:
        """Receive up to `most` (at most 10) messages, waiting up to `wait` seconds (at most 20) for the first."""
        answer = self._call(
            "ReceiveMessage",
            queue,
            MaxNumberOfMessages=min(most, BATCH),
            WaitTimeSeconds=min(wait, LONGEST_POLL),
            VisibilityTimeout=visibility,
            MessageSystemAttributeNames=["ApproximateReceiveCount", "SentTimestamp"],
            MessageAttributeNames=[REQUEST],
        )
        return [_received(queue, raw) for raw in answer.get("Messages", [])]

    def delete(self, queue: int, handles: Sequence[str]) -> list[str]:
        """Delete messages by their handles. Returns those that SQS refused: too old, or received again since."""
        return self._batches("DeleteMessageBatch", queue, handles, lambda handle: {"ReceiptHandle": handle})

    def extend(self, queue: int, handles: Sequence[str], *, seconds: int) -> list[str]:
        """Keep messages invisible for so many more seconds from now; 0 shows them at once. Returns those refused."""
        how = {"VisibilityTimeout": seconds}
        return self._batches(
            "ChangeMessageVisibilityBatch", queue, handles, lambda handle: {"ReceiptHandle": handle, **how}
        )

    def depth(self, queue: int) -> Depth:
        """Return how many messages a queue holds: one request."""
        names = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ]
        attributes = self._call("GetQueueAttributes", queue, AttributeNames=names)["Attributes"]
        return Depth(*(int(attributes.get(name, 0)) for name in names))

    def depths(self) -> list[Depth]:
        """Return how many messages each queue holds, by number: a request for each, all at the same time."""
        return fan_out([partial(self.depth, queue) for queue in range(self.queues)])

    def create_all(self, *, wait: bool = False) -> dict[str, bool]:
        """Create the queues that are missing. Returns their names, True where created now.

        Raises Unavailable also where, with `wait`, a queue cannot be used in time.
        """
        connection = sqs_client.queue_connection(self._role)
        missing = self.missing()
        for name in missing:
            connection.create(name, ATTRIBUTES)
        if wait:
            self._wait()
        return {name: name in missing for name in map(self.queue_name, range(self.queues))}

    def _wait(self) -> None:
        for _ in range(_WAIT_SECONDS):
            if not self.missing():
                return
            time.sleep(1)
        raise Unavailable(f"The queues cannot be used after {_WAIT_SECONDS} s.")

    def missing(self) -> list[str]:
        """Return the names of the queues that do not exist."""
        connection = sqs_client.queue_connection(self._role)
        return [name for name in map(self.queue_name, range(self.queues)) if not connection.exists(name)]

    def _batches(
        self, operation: str, queue: int, members: Sequence[_T], entry: Callable[[_T], dict[str, Any]]
    ) -> list[_T]:
        """Send them ten at a time, and return those that SQS refused."""
        refused = []
        for batch in chunked(members, BATCH):
            entries = [{"Id": str(number), **entry(member)} for number, member in enumerate(batch)]
            failed = self._call(operation, queue, Entries=entries).get("Failed", [])
            refused += [batch[int(one["Id"])] for one in failed]
        return refused

    def _call(self, operation: str, queue: int, **params: Any) -> dict[str, Any]:
        return sqs_client.queue_connection(self._role).call(operation, self.queue_name(queue), **params)


def _received(queue: int, raw: dict[str, Any]) -> Received:
    attributes = raw.get("Attributes", {})
    return Received(
        queue,
        raw["Body"],
        raw["ReceiptHandle"],
        int(attributes.get("ApproximateReceiveCount", 1)),
        int(attributes.get("SentTimestamp", 0)) / 1000,
        request_of(raw.get("MessageAttributes", {}).get(REQUEST, {}).get("StringValue")),
    )


def _attribute(text: str) -> dict[str, str]:
    return {"DataType": "String", "StringValue": text}


def request_of(text: object) -> str:
    """Return the request id in the attribute of a message, "" where there is none of its form."""
    return str(text) if logs.is_request_id(text) else ""
