"""Do what one message asks for: find what is to be delivered, let its destination deliver it, write what came of it.

A message only says where to look. Everything else is read with the repository of the tenant that it names, so that a
message with one tenant's id and another's row finds nothing; and the row says whether there is still something to do,
so that the same message twice does it once. It is read in the outbox that the message says: of all, or the tenant's
own, which is what it was when the row was written, wherever the tenant lies by now.

A message that a worker had when it died, or that raised an error that nobody expected, is a suspect. The worker that
held it may not have begun it, so this proves nothing yet: from then on each beginning is counted in its row, one at a
time (`limits.Schedule`), and a message that was begun MOST_BEGINNINGS times without an answer becomes a dead letter. A
database that is away, a tenant that has enough in flight and a worker that stops make no suspects: then the same is
sent again as a new message, since SQS would count the next receive.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from delivery.outbox import destinations, outbox_rows, publisher
from delivery.outbox.destinations import Work
from delivery.outbox.stored import OutboxItem, outbox_row, row_parts
from delivery.queues import dead_deliveries
from delivery.queues.holds import HoldCache
from delivery.queues.queue_transport import Message, Received
from portal import clock
from portal.dynamo.library_errors import is_missing
from portal.dynamo.placement import Placement, at
from portal.dynamo.store import Store
from portal.errors import Invalid, NotFound, PortalError, Unavailable
from portal.load import reporting
from portal.load.measurement import NoiseTally

log = logging.getLogger("pooldesk.delivery")

MOST_BEGINNINGS: Final = 3
MOST_STRIKES: Final = 6  # receives that ended badly, begun or not; more are not waited for
DELIVERY_SECONDS: Final = 30.0  # that a delivery may take; whoever delivers cuts it off
AWAY_SECONDS: Final = 5  # until the same is tried again where the database is away, or something was struck
# More often than this a message is not passed on; its row is due at once and brings a new one. Times the longest pause
# it stays well within outbox_rows.CERTAINLY_ANSWERED.
MOST_POSTPONEMENTS: Final = 60


@dataclass(frozen=True)
class Handled:
    """Say what came of a message: `did` for the counts; `again` is sent in its place after `delay` seconds."""

    did: str
    again: Message | None = None
    delay: int = 0


def strikes_of(received: Received, message: Message) -> int:
    """Return how often whoever had it came to a bad end: each receive but this one was such a time."""
    return message.strikes + received.receives - 1


def read(received: Received) -> Message | None:
    """Return the message, None for what is none: that is logged, and nobody's to keep."""
    try:
        return received.read()
    except Invalid as error:
        log.error("A message was thrown away: %s", error.message)
        return None


def postponed(received: Received, message: Message, *, seconds: float) -> Handled:
    """Put a message that was not begun behind others, as a new one with the same strikes; after too many times, give
    it back to its row. Without seconds a worker that stops lets others have it, which nobody has to know."""
    if seconds:
        _note(message, "postponed", _waited(received))
    if message.postponed >= MOST_POSTPONEMENTS:
        _give_back(message)
        return Handled("left")
    again = replace(message, postponed=message.postponed + 1, strikes=strikes_of(received, message))
    return Handled("postponed", again, max(0, int(seconds + 0.999)))


def _give_back(message: Message) -> None:
    """Let the row be due at once. Where that cannot be written it is so later, as after a message that was lost."""
    try:
        found = _find(message)
        if found:
            outbox_rows.give_back(*found)
    except PortalError as error:
        log.warning("A message is left to its row, which is due later: %s", error.message)


def _find(message: Message) -> tuple[Store, OutboxItem, str] | None:
    """Read the row. Return it with its tenant's repository and the member that is still open; None where none is.

    Raises Invalid where the ids are not those of a row of the tenant that the message names, Unavailable.
    """
    try:
        owner, row_id = row_parts(message.event_id)
    except ValueError:
        owner, row_id = "", ""
    if owner != message.tenant_id or not clock.is_stamp(message.timestamp):
        raise Invalid(f"its ids are not those of tenant {message.tenant_id}")
    repository = Store("tenant", message.tenant_id, Placement.parse(message.placement))
    try:
        row = repository.get(OutboxItem, outbox_row, row_id, sort=message.timestamp, consistent=True)
    except Unavailable as error:
        if not (message.placement and is_missing(error)):  # an outbox of its own goes with all that is in it
            raise
        return None
    member = publisher.member(message.index, message.destination)
    return None if row is None or member not in (row.open or ()) else (repository, row, member)


class MessageHandler:
    """Handles messages, any number at the same time."""

    def __init__(self, *, holds: HoldCache | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._holds = holds or HoldCache()
        self._clock = clock

    def handle(self, received: Received, message: Message) -> Handled:
        """Deliver, and write what came of it. Returns what is to happen with the message; raises nothing."""
        waited = _waited(received)
        try:
            handled = self._handle(message, strikes_of(received, message))
            _note(message, handled.did, waited)
            return handled
        except Unavailable as error:
            log.warning("A message is put off, the database is away: %s", error.message)
            return postponed(received, message, seconds=AWAY_SECONDS)
        except Exception:
            log.exception("A message of tenant %s could not be handled", message.tenant_id)
            struck = replace(message, strikes=strikes_of(received, message) + 1)
            return Handled("struck", struck, AWAY_SECONDS)

    def _handle(self, message: Message, strikes: int) -> Handled:
        try:
            found = _find(message)
        except Invalid as error:
            log.error("A message was thrown away: %s", error.message)
            return Handled("refused")
        if found is None:
            return Handled("closed")
        repository, row, member = found
        verdict = self._holds.verdict(message.tenant_id, message.timestamp)
        if verdict != "go":
            with at(repository.placement):
                return _held(row, member, drop=verdict == "drop")
        if not strikes:
            return self._deliver(repository, row, message, member)
        # The first time, when it was no suspect yet, nobody counted.
        begun = outbox_rows.risked(row, member) + 1
        if begun >= MOST_BEGINNINGS or strikes >= MOST_STRIKES:
            reason = f"It was being worked on {begun} times when that ended badly."
            return _give_up(repository, row, message, reason)
        outbox_rows.risk(repository, row, member, begun)
        try:
            return self._deliver(repository, row, message, member)
        except Unavailable:
            outbox_rows.risk(repository, row, member, begun - 1)
            raise

    def _deliver(self, repository: Store, row: OutboxItem, message: Message, member: str) -> Handled:
        """Let the destination deliver it, and write what came of that."""
        try:
            deliver = destinations.deliver_for(message.destination)
        except NotFound as error:
            return _give_up(repository, row, message, error.message)
        attempt = outbox_rows.attempts_of(row, member) + 1
        deadline = self._clock() + DELIVERY_SECONDS
        outcome = deliver(
            Work(message.tenant_id, repository, row, message.index, message.destination, attempt, deadline)
        )
        if outcome.state == "answered":
            outbox_rows.answered(repository, row, member)
            return Handled("answered")
        pause = destinations.retry_pause(attempt)
        if outcome.state == "dead" or pause is None:
            return _give_up(repository, row, message, outcome.note or "Its attempts are used up.")
        seconds = pause.total_seconds() if outcome.retry_after is None else outcome.retry_after
        outbox_rows.failed(repository, row, member, next_at=clock.stamp(offset=int(seconds * 1_000_000)))
        return Handled(outcome.state)


def _held(row: OutboxItem, member: str, *, drop: bool) -> Handled:
    if drop:
        outbox_rows.drop(row)
        return Handled("dropped")
    outbox_rows.hold(row, member=member)
    return Handled("held")


def _give_up(repository: Store, row: OutboxItem, message: Message, reason: str) -> Handled:
    dead_deliveries.keep(repository, row, index=message.index, destination=message.destination, reason=reason)
    return Handled("dead")


# --- for the operators' page ---

_FIELDS: Final = {"answered": "deliveries", "failed": "failed", "dead": "dead", "held": "held", "postponed": "put_off"}


def _waited(received: Received) -> float:
    """Return for how many seconds the message has been in its queue, by SQS's clock and ours."""
    return max(0.0, time.time() - received.sent_at) if received.sent_at else 0.0


def _note(message: Message, did: str, seconds: float) -> None:
    """Count it for the tenant. `seconds` are those before it was taken up."""
    field = _FIELDS.get(did)
    if field is not None:
        reporting.note(message.tenant_id, NoiseTally(**{field: 1, "wait": seconds}))
