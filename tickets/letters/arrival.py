"""Hand a letter that has come in to each desk that its envelope names: copy it to the desk's objects, and put a message
into the desk's queues.

This does little for each letter, and of one desk no more than PER_SECOND of them in a process: those of a flood come
again later, as `pace` says, while the letters of others are handed on. The work of filing is shared out among desks as
deliveries are. Handing a letter on is right however often it is done: the object in `incoming/` goes last, so
a letter whose way was cut short is found there, by the notification that comes again or by `reconcile_mail`.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections.abc import Callable, Collection
from typing import Final

from delivery.queues import direct_work
from delivery.queues.queue_transport import LONGEST_DELAY
from portal.errors import NotFound
from portal.objects.object_store import ObjectStore, TooLarge
from portal.quotas import RecentTenants
from tenants.tenancy.stored import TenantItem
from tickets.letters import desk_addresses, envelope
from tickets.letters.envelope import Envelope
from tickets.letters.stored import HELD_WORK, INCOMING, UNCLAIMED, WORK, raw_key

log = logging.getLogger("pooldesk.mail")

PER_SECOND: Final = 5.0  # letters of a desk that one process hands on, after so many at once:
AT_ONCE: Final = 10
MOST_BYTES: Final = 40_000_000  # of a letter; SES takes no larger one
_SMALL_BYTES: Final = 4_000_000
_one_large = threading.Lock()  # letters are handed on ten at a time, and ten of the largest are 400 MB
_RECEIVED_FOR: Final = re.compile(rb"\bfor\s+<?([^\s<>;]{1,320})>?", re.IGNORECASE)
_HEADERS: Final = 8192  # bytes in which the first Received header ends


def take(notification: str) -> int:
    """Hand on the letter of a notification, and return how many desks have it now. Raises Invalid for what is no
    notification, and what the stores and the queues raise."""
    found, key = envelope.read(notification)
    if not key.startswith(INCOMING):
        raise NotFound("The letter is not where letters arrive.")
    return hand_on(found, key)


class _Turns:
    """Remember when the next letter of each desk has its turn."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._next = RecentTenants[list[float]](lambda _: [float("-inf")])

    def seconds(self, desk: str) -> float:
        """Take the next turn of a desk, and return in how many seconds it is: LONGEST_DELAY where no turn is free
        until then, and none is taken."""
        with self._lock:
            kept, now = self._next.of(desk), self._clock()
            turn = max(kept[0], now - AT_ONCE / PER_SECOND)
            if turn - now >= LONGEST_DELAY:
                return LONGEST_DELAY
            kept[0] = turn + 1 / PER_SECOND
            return max(0.0, round(turn + 1 / PER_SECOND - now, 3))


_turns = _Turns()


def pace(notification: str) -> float:
    """Return by how many seconds a letter is put off because its desk has got many, 0 for none. Reads nothing: a desk
    is known by its address or by the token in it. Raises Invalid for what is no notification."""
    found, _ = envelope.read(notification)
    return max((_turns.seconds(desk) for desk in {desk_addresses.pace_of(one) for one in found.recipients}), default=0)


def hand_on(found: Envelope, key: str) -> int:
    """Copy the letter in the object `key` to each desk of its recipients, then let go of the object.

    Costs a read, and for each desk two lookups, a write and a message. One that is gone was handed on before.
    """
    try:
        return _hand_on(found, key, most=_SMALL_BYTES)
    except TooLarge:
        with _one_large:
            return _hand_on(found, key, most=MOST_BYTES)


def _hand_on(found: Envelope, key: str, *, most: int) -> int:
    incoming = ObjectStore("delivery")
    try:
        raw = incoming.get(key, most=most)
    except NotFound:
        return 0
    desks: dict[str, tuple[TenantItem, list[str]]] = {}
    for recipient in found.recipients:
        if tenant := desk_addresses.desk_of(recipient):
            desks.setdefault(tenant.tenant_id, (tenant, []))[1].append(recipient)
    for tenant, recipients in desks.values():
        give(tenant, found.to(*recipients), raw)
    if not desks:
        log.warning("A letter to no desk is kept as %s%s", UNCLAIMED, found.name)
        incoming.put(UNCLAIMED + found.name, raw, about=found.about())
    incoming.delete(key)
    return len(desks)


def give(tenant: TenantItem, found: Envelope, raw: bytes) -> None:
    """Store a letter for a desk, and send the message that lets it be filed."""
    own = ObjectStore("tenant", tenant.tenant_id)
    own.put(raw_key(tenant.tenant_id, found.name), raw, about=found.about())
    ask(tenant, found.name)


def ask(tenant: TenantItem, name: str) -> None:
    """Send the message that lets a letter of a desk be filed."""
    direct_work.send(WORK, tenant.tenant_id, name, queues=_queues(tenant))


def ask_for_held(tenant: TenantItem, digests: Collection[str]) -> None:
    """Send the messages that let letters be filed which were held back: a request for each 10."""
    direct_work.send(HELD_WORK, tenant.tenant_id, *digests, queues=_queues(tenant))


def _queues(tenant: TenantItem) -> tuple[int, ...]:
    return tuple(json.loads(tenant.queues)) if tenant.queues else ()


def recipients_in(raw: bytes) -> tuple[str, ...]:
    """Return the recipient that the first Received header names, which the receiving server has written: for a letter
    whose notification was lost."""
    found = b""
    for line in raw[:_HEADERS].lstrip().splitlines():
        if found and not line.startswith((b" ", b"\t")):
            break
        if found or line.lower().startswith(b"received:"):
            found += line
        elif not line:
            break
    named = _RECEIVED_FOR.search(found)
    return (named[1].decode("ascii", "replace"),) if named else ()
