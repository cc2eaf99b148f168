"""Do what one message asks for: find what is to be delivered, let its destination deliver it, write what came of it.

A message only says where to look. Everything else is read with the repository of the tenant that it names, so a message
with one tenant's id and another's row finds nothing; and the row says whether there is still something to do, so that
the same message twice does it once.

A message that a worker had when it died, or that raised an unexpected error, is a suspect: each further beginning is
counted in its row, and after MOST_BEGINNINGS without an answer it is a dead letter. A database that is away, a tenant
that has enough in flight and a worker that stops make no suspects: then the same is sent again as a new message, since
SQS would count the next receive.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from delivery.outbox import destinations, outbox_rows
from delivery.outbox.destinations import Outcome
from delivery.outbox.outbox_rows import Work
from delivery.outbox.stored import row_parts
from delivery.queues import dead_deliveries, direct_work
from delivery.queues.direct_work import DirectWork, Kind
from delivery.queues.holds import HoldCache
from delivery.queues.queue_transport import LONGEST_DELAY, Message, Received
from portal import clock, logs
from portal.dynamo.placement import Placement, at
from portal.dynamo.store import Store
from portal.errors import Invalid, NotFound, PortalError, Unavailable
from portal.load import measurement, spending
from portal.load.measurement import NoiseTally

log = logging.getLogger("pooldesk.delivery")

MOST_BEGINNINGS: Final = 3
MOST_STRIKES: Final = 6  # receives that ended badly, begun or not; more are not waited for
DELIVERY_SECONDS: Final = 15.0  # that a delivery may take; whoever delivers cuts it off
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


def is_readable(received: Received) -> bool:
    """Tell whether a message is one of ours. Anything else is logged, and nobody keeps it."""
    try:
        return bool(received.message)
    except Invalid as error:
        log.error("A message was thrown away: %s", error.message)
        return False


def postponed(received: Received, *, seconds: float) -> Handled:
    """Put a message that was not begun behind others, as a new one with the same strikes; after too many times, give
    it back to its row. Without seconds a worker that stops lets others have it, which nobody has to know."""
    message = received.message
    if seconds:
        _note(received, "postponed", _waited(received))
    if message.postponed >= MOST_POSTPONEMENTS:
        if direct_work.kind_of(message):  # no row would bring a new one
            return Handled("postponed", replace(message, postponed=0, strikes=received.strikes), LONGEST_DELAY)
        _give_back(message)
        return Handled("left")
    again = replace(message, postponed=message.postponed + 1, strikes=received.strikes)
    return Handled("postponed", again, max(0, int(seconds + 0.999)))


def _give_back(message: Message) -> None:
    """Let the row be due at once. Where that cannot be written it is so later, as after a message that was lost."""
    try:
        if work := _find(message):
            outbox_rows.give_back(work)
    except PortalError as error:
        log.warning("A message is left to its row, which is due later: %s", error.message)


def _find(message: Message, *, deadline: float = 0.0) -> Work | None:
    """Read the row, and return the work that is open still; None where none is.

    Raises Invalid where the ids are not those of a row of the tenant that the message names, Unavailable.
    """
    try:
        owner, row_id = row_parts(message.event_id)
    except ValueError:
        owner, row_id = "", ""
    if owner != message.tenant_id or not clock.is_stamp(message.timestamp):
        raise Invalid(f"its ids are not those of tenant {message.tenant_id}")
    repository = Store("tenant", message.tenant_id, Placement.parse(message.placement))
    row = outbox_rows.find(repository, row_id, message.timestamp)
    work = row and Work(repository, row, message.index, message.destination, deadline)
    return work if work and work.is_open else None


class MessageHandler:
    """Handles messages, any number at the same time."""

    def __init__(self, *, holds: HoldCache | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._holds = holds or HoldCache()
        self._clock = clock

    def handle(self, received: Received) -> Handled:
        """Deliver, and write what came of it. Returns what is to happen with the message; raises nothing."""
        with logs.following(received.message.request):
            begun = time.monotonic()
            handled = self._safely(received)
            _say(received.message, handled.did, (time.monotonic() - begun) * 1000)
            return handled

    def _safely(self, received: Received) -> Handled:
        waited = _waited(received)
        try:
            handled = self._handle(received.message, received.strikes)
            _note(received, handled.did, waited)
            return handled
        except Unavailable as error:
            log.warning("A message is put off, the database is away: %s", error.message)
            return postponed(received, seconds=AWAY_SECONDS)
        except Exception:
            log.exception("A message of tenant %s could not be handled", received.message.tenant_id)
            return Handled("struck", replace(received.message, strikes=received.strikes + 1), AWAY_SECONDS)

    def _handle(self, message: Message, strikes: int) -> Handled:
        if kind := direct_work.kind_of(message):
            return _do(kind, DirectWork(message.tenant_id, message.event_id, self._clock() + DELIVERY_SECONDS), strikes)
        try:
            work = _find(message, deadline=self._clock() + DELIVERY_SECONDS)
        except Invalid as error:
            if not _is_known(message.destination) and message.postponed < MOST_POSTPONEMENTS:
                # Work of a kind that a newer version has. Its workers take it, once this one is replaced.
                return Handled("postponed", replace(message, postponed=message.postponed + 1), LONGEST_DELAY)
            log.error("A message was thrown away: %s", error.message)
            return Handled("refused")
        if work is None:
            return Handled("closed")
        if seconds := outbox_rows.hold_seconds(work.row):
            return Handled("postponed", message, seconds)
        verdict = self._holds.verdict(message.tenant_id, message.timestamp)
        if verdict != "go":
            with at(work.repository.placement):
                return _held(work, drop=verdict == "drop")
        if not strikes:
            return _deliver(work)
        # The first time, when it was no suspect yet, nobody counted.
        begun = work.tried.risked + 1
        if begun >= MOST_BEGINNINGS or strikes >= MOST_STRIKES:
            return _give_up(work, f"It was being worked on {begun} times when that ended badly.")
        outbox_rows.risk(work, begun)
        try:
            return _deliver(work)
        except Unavailable:
            outbox_rows.risk(work, begun - 1)
            raise


def _say(message: Message, did: str, ms: float) -> None:
    fields = {
        "tenant": message.tenant_id,
        "event": message.event_id,
        "destination": message.destination,
        "did": did,
        "ms": round(ms, 1),
    }
    log.info(
        "Delivery to %s: %s, %.0f ms%s",
        *(message.destination, did, ms, logs.mark(message.request)),
        extra={"fields": fields},
    )


def _do(kind: Kind, work: DirectWork, strikes: int) -> Handled:
    """Do work that has no row in the outbox, or give it up after it has killed workers or failed in unexpected ways."""
    if strikes >= MOST_BEGINNINGS:
        kind.give_up(work, f"It was being worked on {strikes} times when that ended badly.")
        return Handled("dead")
    kind.do(work)
    return Handled("answered")


def _held(work: Work, *, drop: bool) -> Handled:
    if drop:
        outbox_rows.drop(work.row)
        return Handled("dropped")
    outbox_rows.hold(work.row, member=work.member)
    return Handled("held")


def _deliver(work: Work) -> Handled:
    """Let the destination deliver it, and write what came of that. A newer version may know more destinations: it is
    tried again as one that fails."""
    if not outbox_rows.seal_held(work):
        return Handled("closed")
    try:
        outcome = destinations.deliver_for(work.destination)(work)
    except NotFound as error:
        outcome = Outcome("failed", note=error.message)
    if outcome.state == "answered":
        outbox_rows.answered(work)
        return Handled("answered")
    pause = destinations.retry_pause(work.attempt)
    if outcome.state == "dead" or pause is None:
        return _give_up(work, outcome.note or "Its attempts are used up.")
    seconds = pause.total_seconds() if outcome.retry_after is None else outcome.retry_after
    outbox_rows.failed(work, next_at=clock.stamp(offset=int(seconds * 1_000_000)))
    return Handled(outcome.state)


def _is_known(destination: str) -> bool:
    try:
        return bool(destinations.deliver_for(destination))
    except NotFound:
        return False


def _give_up(work: Work, reason: str) -> Handled:
    dead_deliveries.keep(work, reason=reason)
    return Handled("dead")


# --- for the operators' page ---

_FIELDS: Final = {"answered": "deliveries", "failed": "failed", "dead": "dead", "held": "held", "postponed": "put_off"}


def _waited(received: Received) -> float:
    """Return for how many seconds the message has been in its queue, by SQS's clock and ours."""
    return max(0.0, time.time() - received.sent_at) if received.sent_at else 0.0


def _note(received: Received, did: str, seconds: float) -> None:
    if did != "refused":  # whose ids are not to be trusted
        spending.count(received.message.tenant_id, messages=1)
    field = _FIELDS.get(did)
    if field is not None:
        measurement.note(received.message.tenant_id, NoiseTally(**{field: 1, "wait": seconds}))
