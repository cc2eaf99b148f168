"""What the fold has put aside: shown, counted after all, or thrown away.

A letter is a whole stream record that could not be folded, or that one aggregate item did not take. Replayed, it is
folded again by the rules of today and applied in one transaction with its own removal, so exactly once, however
often and by however many it is asked for. The stream may deliver the record once more: a note that the letter is
settled keeps it from becoming a letter again. A rebuild counts what the tickets are now, and with them all that
letters of before would say; so what a letter has for older epochs is never applied.

Both are an operator's acts, in one transaction with their rows in the audit trail. They go out as the platform, whose
policy lets it change aggregates for this, and nothing else among the tenants' tickets.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, Final

from portal import clock
from portal.dynamo.repository import TenantRepository, Transaction
from portal.errors import Conflict, NotFound, PortalError, TransactionRefused
from portal.schema import keys
from portal.streams import worker
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tickets.counting import aggregates
from tickets.counting import fold as stream
from tickets.counting import keys as aggregate_keys
from tickets.counting.aggregates import Contribution, Counts
from tickets.counting.items import DeadLetterItem
from tickets.ticket import keys as ticket_keys
from tickets.ticket.items import CounterItem
from tickets.ticket.tables import TICKETS

SETTLED_SECONDS: Final = 3 * 86400  # a stream delivers its records for one day
REBUILT: Final = "The aggregates were rebuilt since; drop it."


def letters(*, tenant_id: str = "") -> Iterator[DeadLetterItem]:
    """All letters, in the order of the stream, or those of one tenant."""
    for letter in worker.items(DeadLetterItem, TICKETS.name, consistent=True):
        if not tenant_id or letter.tenant_id == tenant_id:
            yield letter


def id_of(letter: DeadLetterItem) -> str:
    """What a person calls a letter by."""
    return letter.sequence.lstrip("0")


def drop(letter: DeadLetterItem, *, by: Actor) -> None:
    """Remove it, with its row in the audit trail; what it holds is not counted. Raises NotFound where it has just gone,
    Throttled and Unavailable."""
    try:
        recording.commit(_settling(letter), [_entry(letter, AuditAction.DEAD_LETTER_DROPPED, by)])
    except TransactionRefused as refused:
        raise _gone(refused) from refused


def replay(letter: DeadLetterItem, *, by: Actor) -> None:
    """Count what the letter holds, remove it and write who did it, all or none. A refusal is written as well.

    Raises Conflict where it still cannot be counted or must not be any more, NotFound where the letter has just gone,
    Throttled and Unavailable.
    """
    try:
        _count(letter, by)
    except (Conflict, NotFound) as error:
        recording.record(_entry(letter, AuditAction.DEAD_LETTER_REFUSED, by, because=error.message))
        raise


def _count(letter: DeadLetterItem, by: Actor) -> None:
    writing, counts = _settling(letter), _counts(letter)
    for sort_key, total in sorted(counts.items()):
        writing.add("Update", _update(letter.tenant_id, sort_key, total))
    try:
        recording.commit(writing, [_entry(letter, AuditAction.DEAD_LETTER_REPLAYED, by)])
    except TransactionRefused as refused:
        raise _gone(refused) from refused


def _entry(letter: DeadLetterItem, action: AuditAction, by: Actor, **after: str) -> AuditEntry:
    tenant_id, entity_id = letter.tenant_id or recording.PLATFORM, keys.anonymous(letter.sequence)
    before = {"reason": letter.reason}
    return AuditEntry(tenant_id, action, by, "dead_letter", entity_id, id_of(letter), before, after)


def _settling(letter: DeadLetterItem) -> Transaction:
    """The removal of a letter, and for as long as the stream may deliver its record again a note that it is settled."""
    note = DeadLetterItem(aggregate_keys.settled_letters(letter.stream), letter.sequence)
    expires_at = int(time.time()) + SETTLED_SECONDS
    writing = Transaction()
    writing.delete(letter, name="dead letter", condition=DeadLetterItem.sequence.exists())
    writing.update(note, [DeadLetterItem.at.set(clock.stamp()), DeadLetterItem.expires_at.set(expires_at)])
    return writing


def _gone(refused: TransactionRefused) -> PortalError:
    taken = refused.reason("dead letter")
    if taken is not None and taken.code == "ConditionalCheckFailed":
        return NotFound("It has been replayed or dropped by somebody else.")
    why = next((reason.message for reason in refused.reasons if reason), "the database refused")
    return Conflict(f"It still cannot be counted: {why}")


def _counts(letter: DeadLetterItem) -> Contribution:
    """What the letter adds to which aggregates, those of older epochs left out."""
    try:
        fold = aggregates.fold([json.loads(letter.record)])
    except aggregates.UNCOUNTABLE as error:
        raise Conflict(f"It still cannot be counted: {type(error).__name__}: {error}") from error
    if fold.poison:
        raise Conflict(f"It still cannot be counted: {fold.poison[0].reason}.")
    found = {
        sort_key: counts
        for change in fold.changes.get(letter.tenant_id, ())
        for sort_key, counts in change.counts.items()
        if letter.aggregate in ("", sort_key)
    }
    epoch = _epoch(letter.tenant_id)
    current = {sort_key: counts for sort_key, counts in found.items() if _epoch_of(sort_key) >= epoch}
    if found and not current:
        raise Conflict(REBUILT)
    return current


def _epoch(tenant_id: str) -> int:
    """In which the tenant's new tickets are counted."""
    repository = TenantRepository(tenant_id)
    counter = repository.get(CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, consistent=True)
    return int(counter.epoch or 0) if counter else 0


def _epoch_of(sort_key: str) -> int:
    parts = aggregate_keys.aggregate_parts(sort_key)
    return parts[2] if parts else 0


def _update(tenant_id: str, sort_key: str, counts: Counts) -> dict[str, Any]:
    adding = stream.additions(counts)
    return {
        "TableName": TICKETS.full_name,
        "Key": {"pk": {"S": aggregate_keys.aggregate(tenant_id)}, "sk": {"S": sort_key}},
        # An item that a rebuild has left to TTL is needed after all; see rebuild.py.
        "UpdateExpression": "SET #at = :now REMOVE #ttl" + adding["expression"],
        "ExpressionAttributeNames": {**adding["names"], "#at": "applied_at", "#ttl": TICKETS.ttl},
        "ExpressionAttributeValues": {**adding["values"], ":now": {"S": clock.stamp()}},
    }
