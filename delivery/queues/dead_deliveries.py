"""Keep what could not be delivered, and let operators replay or drop it, with rows of the audit trail.

A dead letter is written in one transaction with the outbox's row, which from then on waits for it no longer. Replayed,
the row waits for it again, in one transaction with the letter's removal: so it is tried again once, however many ask.

No transaction spans sites. Where a tenant's outbox is in a silo, the letter is written first and the row changed behind
it, and a replay opens the row before it removes the letter: a process that dies in between does it again, and a
receiver then knows the event by its id.
"""

from __future__ import annotations

import json
import logging
from typing import Final

from delivery.outbox import destinations, outbox_rows, publisher
from delivery.outbox.outbox_rows import Work
from delivery.outbox.stored import OutboxItem
from delivery.queues.stored import LISTED, DeadDeliveryItem, dead_delivery
from portal import clock
from portal.dynamo.library_errors import is_missing
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import Store, Transaction
from portal.errors import Conflict, NotFound, PortalError, TransactionRefused, Unavailable
from portal.schema import keys as schema_keys
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry

log = logging.getLogger("pooldesk.delivery")

REASON_LIMIT: Final = 500  # characters
_LETTER: Final = "dead letter"
_ROW: Final = "row"
_TAKEN: Final = "It has been replayed or dropped by somebody else."
_NO_EVENT: Final = "The outbox has no such event any more, so it cannot be replayed; drop it."


# --- keeping ---


def keep(work: Work, *, reason: str) -> None:
    """Give up a delivery: write its dead letter, and let the row wait for it no longer, both or neither.

    The same again replaces itself. Raises Throttled and Unavailable.
    """
    row, repository = work.row, work.repository
    event = json.loads(row.events[work.index]) if 0 <= work.index < len(row.events) else {}
    letter = DeadDeliveryItem(
        repository.tenant_id,
        dead_delivery(row.timestamp, row.event_id, work.member),
        event_id=row.event_id,
        timestamp=row.timestamp,
        index=work.index,
        destination=work.destination,
        event_type=str(event.get("type", "")),
        subject=row.subject,
        reason=reason[:REASON_LIMIT],
        at=clock.stamp(),
        listed=LISTED,
        expires_at=row.expires_at,
        placement=None if repository.placement == POOL else str(repository.placement),
    )
    writing = Transaction()
    writing.put(letter)
    if repository.placement.site:
        repository.transact(writing)
        writing = Transaction()
    outbox_rows.dead(work, transaction=writing)
    # Not why: a mail server quotes addresses. The dead deliveries in the admin say it.
    log.error("A delivery is dead: tenant %s, %s to %s", work.tenant_id, row.subject, work.destination)


def name_of(letter: DeadDeliveryItem) -> str:
    return schema_keys.split(letter.letter_id)[-1]


# --- an operator's acts ---


def drop(letter: DeadDeliveryItem, *, by: Actor) -> None:
    """Remove it, with its row in the audit trail; it is never delivered. Raises NotFound where it has just gone,
    Throttled and Unavailable."""
    try:
        recording.commit(_removal(letter), [_entry(letter, AuditAction.DEAD_DELIVERY_DROPPED, by)])
    except TransactionRefused as refused:
        raise _refusal(refused) from refused


def replay(letter: DeadDeliveryItem, *, by: Actor) -> None:
    """Let it be delivered after all, with all its attempts before it, remove it and write who did it, all or none.

    Raises Conflict where the outbox has it no longer, or not what it said, NotFound where it has just gone, Throttled
    and Unavailable.
    """
    if destinations.is_private(letter.destination):
        raise Conflict("What it said is not kept, so it cannot be replayed. Send it anew where it came from.")
    repository, reopening = _repository(letter), Transaction()
    member = publisher.member(int(letter.index), letter.destination)
    outbox_rows.reopen(reopening, OutboxItem(letter.event_id, letter.timestamp), member, name=_ROW)
    writing = _removal(letter)
    if repository.placement.site:
        _reopen_first(repository, reopening, member)
    else:
        writing.add("Update", reopening.members[0]["Update"], name=_ROW)
    try:
        with repository.here():
            recording.commit(writing, [_entry(letter, AuditAction.DEAD_DELIVERY_REPLAYED, by)])
    except TransactionRefused as refused:
        raise _refusal(refused) from refused
    except Unavailable as error:
        raise _gone_or(error) from error


def _repository(letter: DeadDeliveryItem) -> Store:
    """Return that of the outbox in which the row is. Raises NotFound where the letter has just gone."""
    named = Store("tenant", letter.tenant_id)
    kept = named.get(DeadDeliveryItem, schema_keys.tenant, sort=letter.letter_id, consistent=True)
    if kept is None:
        raise NotFound(_TAKEN)
    return Store("tenant", letter.tenant_id, Placement.parse(kept.placement))


def _reopen_first(repository: Store, reopening: Transaction, member: str) -> None:
    """Let the row wait again. One that waits for this already was opened by a replay that came no further."""
    try:
        repository.transact(reopening)
    except TransactionRefused as refused:
        reason = refused.reason(_ROW)
        row = reason.stored(OutboxItem) if reason else None
        if row is None or member not in (row.open or ()):
            raise Conflict(_NO_EVENT) from refused
    except Unavailable as error:
        raise _gone_or(error) from error


def _gone_or(error: Unavailable) -> PortalError:
    return Conflict(_NO_EVENT) if is_missing(error) else error


def _removal(letter: DeadDeliveryItem) -> Transaction:
    writing = Transaction()
    writing.delete(letter, name=_LETTER, condition=DeadDeliveryItem.letter_id.exists())
    return writing


def _refusal(refused: TransactionRefused) -> PortalError:
    reason = refused.reason(_LETTER)
    if reason is not None and reason.code == "ConditionalCheckFailed":
        return NotFound(_TAKEN)
    return Conflict(_NO_EVENT)


def _entry(letter: DeadDeliveryItem, action: AuditAction, by: Actor) -> AuditEntry:
    before = {"event": letter.event_type, "destination": letter.destination, "reason": letter.reason}
    entity_id = schema_keys.anonymous(letter.letter_id)
    return AuditEntry(letter.tenant_id, action, by, "dead_delivery", entity_id, name_of(letter), before)
