"""Let packages put work into a tenant's queues that has no row in the outbox: what came from outside, such as a letter.

The message names its kind as its destination, and the work by its `event_id`. A lost message must be found again by
whoever sent it: no sweep knows of it. All else, the tenant's share of the workers and the suspicion of a message that
kills them, is as with deliveries.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from delivery.queues import queue_sets
from delivery.queues.queue_transport import BATCH, Message, QueueTransport
from portal import clock, logs
from portal.dynamo.store import chunked
from portal.errors import Unavailable


@dataclass(frozen=True)
class DirectWork:
    """One piece of work of a tenant. `deadline` is the moment, by the monotonic clock, by which it has to be done."""

    tenant_id: str
    name: str
    deadline: float


@dataclass(frozen=True)
class Kind:
    """Say who does the work, who writes down that it was given up, and why, and how long one may take in seconds.

    `do` raises what the database raises, and is called again then; any other error makes the message a suspect.
    """

    do: Callable[[DirectWork], None]
    give_up: Callable[[DirectWork, str], None]


_kinds: Final[dict[str, Kind]] = {}
_turn: Final = itertools.count()  # of the queues of a tenant: a flood fills them evenly


def declare_kind(name: str, kind: Kind) -> None:
    """Let a kind of work be done. Raises ValueError for a name that another declaration has taken."""
    if _kinds.setdefault(name, kind) != kind:
        raise ValueError(f"the kind of work {name} is declared twice")


def kind_of(message: Message) -> Kind | None:
    """Return the kind of work that a message asks for, None for one about a row of the outbox."""
    return _kinds.get(message.destination)


def send(kind: str, tenant_id: str, *names: str, queues: Collection[int]) -> None:
    """Put pieces of work into some of the tenant's queues: a request for each 10. `queues` are the numbers that it was
    given.

    Raises Unavailable, Throttled, Rejected.
    """
    transport = QueueTransport("delivery")
    known = [queue for queue in queues if 0 <= queue < transport.queues]
    ours = known or sorted(queue_sets.without_allocation(tenant_id, transport.queues))
    for some in chunked(names, BATCH):
        messages = [Message(tenant_id, name, clock.stamp(), 0, kind, request=logs.request_id()) for name in some]
        if transport.send(ours[next(_turn) % len(ours)], messages):
            raise Unavailable("The queues did not take the message.")
