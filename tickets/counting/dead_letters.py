"""Keep what cannot be counted: list it, count it after all, or throw it away.

A dead letter is kept in one transaction with its shard's mark in RECENT, so a redelivery finds it dealt with. A replay
works its change out by the rules of today and applies it in one transaction with its removal, so once, however often it
is asked for. Counts for epochs before a rebuild are never applied: the rebuild counted what the tickets are.

Replaying and dropping are an operator's acts, with their rows in the audit trail. They go out as the platform, whose
policy lets it change aggregates for this, and nothing else among the tenants' tickets.

Dead letters are kept at home, and no transaction spans sites. So for a silo a letter is written before its shard's
mark, and a replay leaves a note beside the aggregates that it has counted, before it removes the letter.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Final

from portal import clock
from portal.dynamo import placement
from portal.dynamo.library_errors import is_missing
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Action, Condition, Store, Transaction
from portal.errors import Conflict, NotFound, PortalError, TransactionRefused, Unavailable
from portal.load import measurement
from portal.load.measurement import NoiseTally
from portal.schema.keys import anonymous
from portal.streams import batch as records
from portal.streams.batch import Batch
from portal.streams.worker import WORKER
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy import tenant_directory
from tickets.counting import coding, contributions, record_changes, stored
from tickets.counting.contributions import Contribution
from tickets.counting.record_changes import Change
from tickets.counting.stored import DeadLetterItem, Recent, ReplayedItem
from tickets.ticket import stored as ticket_keys
from tickets.ticket.stored import CounterItem

log = logging.getLogger("pooldesk.stream")

RECORD_LIMIT: Final = 60_000  # characters; a longer record is kept without its images
REBUILT: Final = "The aggregates were rebuilt since; drop it."
MOVED: Final = "The desk lies elsewhere now, where its numbers were counted anew; drop it."
_HALF_REPLAYED: Final = "It is counted already, by a replay that came no further. Replay it, which removes it."
BESIDE: Final = "beside"  # the member of a transaction that `keep` was given
_LETTER, _AGGREGATES, _NOTE = "dead letter", "aggregates", "note"  # members of transactions
_TOO_LONG: Final = "The record was too long to be kept; a rebuild counts its ticket."

noted: set[str] = set()  # tenants that this process has entered in the list of those with dead letters


# --- keeping ---


def keep(
    batch: Batch,
    store: Store | None,
    dead: Sequence[Change],
    *,
    beside: tuple[list[Action], Condition] | None = None,
) -> None:
    """Write dead letters of the store's tenant, None for no tenant, all or none with `beside`, an update of its RECENT.

    The same record again replaces itself. Raises TransactionRefused, in which BESIDE names the update, Rejected,
    Throttled and Unavailable.
    """
    tenant_id = store.tenant_id if store else ""
    owner = tenant_id or stored.NO_TENANT
    if owner not in noted:
        WORKER.put(DeadLetterItem(stored.DEAD_LETTER_TENANTS, owner, reason="", record="", at=clock.stamp()))
        noted.add(owner)
    writing = Transaction()
    if store and beside:
        actions, condition = beside
        writing.update(stored.blank(store), actions, name=BESIDE, condition=condition)
    for item in [_item(batch, tenant_id, change) for change in dead]:
        if len(writing) and not placement.current().site:
            writing.put(item)
        else:
            WORKER.put(item)
    if store and len(writing):
        store.transact(writing)
    measurement.note(tenant_id, NoiseTally(dead=len(dead)))
    for change in dead:
        log.error("A stream record was put aside: tenant %s, %s", tenant_id or "(none)", change.reason)


def _item(batch: Batch, tenant_id: str, change: Change) -> DeadLetterItem:
    shard = f"{batch.stream_arn}/{batch.shard_id}"
    return DeadLetterItem(
        tenant_id or stored.NO_TENANT,
        stored.dead_letter(shard, change.sequence),
        tenant_id=tenant_id,
        reason=change.reason,
        record=_document(change.record.raw),
        at=clock.stamp(),
        placement=None if placement.current() == POOL else str(placement.current()),
    )


def _document(raw: Mapping[str, Any]) -> str:
    text = json.dumps(raw, default=str, separators=(",", ":"))
    if len(text) > RECORD_LIMIT:
        data = {name: raw["dynamodb"][name] for name in ("Keys", "SequenceNumber")}
        text = json.dumps({"dynamodb": data, "truncated": True}, separators=(",", ":"))
    return text


# --- reading ---


def all_letters(*, tenant_id: str = "") -> Iterator[DeadLetterItem]:
    """Yield all dead letters, tenant by tenant, or those of one tenant. One Query for each tenant that ever had
    some."""
    noted_tenants = (item.sequence for item in WORKER.query_all(DeadLetterItem, stored.DEAD_LETTER_TENANTS))
    for owner in [tenant_id] if tenant_id else [*noted_tenants]:
        yield from WORKER.query_all(DeadLetterItem, owner, consistent=True)


def id_of(dead_letter: DeadLetterItem) -> str:
    """Return the name that a person calls it by."""
    return stored.dead_letter_id(dead_letter.sequence)


def ticket_of(dead_letter: DeadLetterItem) -> int:
    """Return the number of the ticket that it is about, 0 for none."""
    data = json.loads(dead_letter.record)["dynamodb"]
    return (ticket_keys.owner_of(data["Keys"]["pk"].get("S", "")) or ("", 0))[1]


def placement_of(dead_letter: DeadLetterItem) -> Placement:
    """Return where the aggregates lie in which it is missing."""
    return Placement.parse(dead_letter.placement)


def epochs_of(dead_letter: DeadLetterItem) -> set[int]:
    """Return the epochs that its images say, as far as they say any."""
    data = json.loads(dead_letter.record)["dynamodb"]
    written = [data.get(name, {}).get("epoch", {}).get("N", "") for name in ("OldImage", "NewImage")]
    return {int(number) for number in written if number.isdigit()}


# --- an operator's acts ---


def drop(dead_letter: DeadLetterItem, *, by: Actor) -> None:
    """Remove it, with its row in the audit trail; what it holds is not counted. Raises NotFound where it has just gone,
    Conflict where a replay has counted it and came no further, Throttled and Unavailable."""
    if placement_of(dead_letter).site and _is_counted(dead_letter):
        raise Conflict(_HALF_REPLAYED)
    try:
        recording.commit(_removal(dead_letter), [_entry(dead_letter, AuditAction.DEAD_LETTER_DROPPED, by)])
    except TransactionRefused as refused:
        raise _gone(refused) from refused


def replay(dead_letter: DeadLetterItem, *, by: Actor) -> None:
    """Count what it holds, remove it and write who did it, all or none. A refusal is written as well.

    Raises Conflict where it still cannot be counted or must not be any more, NotFound where it has just gone,
    Throttled and Unavailable.
    """
    try:
        _count(dead_letter, by)
    except (Conflict, NotFound) as error:
        recording.record(_entry(dead_letter, AuditAction.DEAD_LETTER_REFUSED, by, because=error.message))
        raise


def _count(dead_letter: DeadLetterItem, by: Actor) -> None:
    writing, counts = _removal(dead_letter), _counts(dead_letter)
    with _store(dead_letter).here() if dead_letter.tenant_id else nullcontext():
        if counts:
            # It holds whatever stands there: the removal beside it says that it is the first.
            added = coding.coded(record_changes.with_touches(counts))
            actions = [Recent.applied_at.set(clock.stamp()), *stored.adding(added)]
            counting = Transaction() if placement_of(dead_letter).site else writing
            counting.update(stored.blank(_store(dead_letter)), actions, name=_AGGREGATES)
            if counting is not writing:
                _count_first(counting, dead_letter)
        try:
            recording.commit(writing, [_entry(dead_letter, AuditAction.DEAD_LETTER_REPLAYED, by)])
        except TransactionRefused as refused:
            raise _gone(refused) from refused


def _count_first(counting: Transaction, dead_letter: DeadLetterItem) -> None:
    """Count and note it, both or neither; nothing where a replay that came no further has."""
    note = ReplayedItem(stored.aggregate(dead_letter.tenant_id), stored.replayed(dead_letter.sequence))
    absent: Condition = ReplayedItem.pk.does_not_exist()
    counting.update(note, [ReplayedItem.applied_at.set(clock.stamp())], name=_NOTE, condition=absent)
    try:
        PLATFORM.transact(counting)
    except TransactionRefused as refused:
        if refused.reason(_NOTE) is None or refused.reason(_AGGREGATES) is not None:
            raise _gone(refused) from refused


def _is_counted(dead_letter: DeadLetterItem) -> bool:
    sort_key = stored.replayed(dead_letter.sequence)
    try:
        return bool(_store(dead_letter).get(ReplayedItem, stored.aggregate, sort=sort_key, consistent=True))
    except Unavailable as error:
        if not is_missing(error):
            raise
        return False  # that copy of the desk is no more


def _store(dead_letter: DeadLetterItem) -> Store:
    return Store("tenant", dead_letter.tenant_id, placement_of(dead_letter))


def _entry(dead_letter: DeadLetterItem, action: AuditAction, by: Actor, **after: str) -> AuditEntry:
    tenant_id, entity_id = dead_letter.tenant_id or recording.PLATFORM, anonymous(dead_letter.sequence)
    before = {"reason": dead_letter.reason}
    return AuditEntry(tenant_id, action, by, "dead_letter", entity_id, id_of(dead_letter), before, after)


def _removal(dead_letter: DeadLetterItem) -> Transaction:
    writing = Transaction()
    writing.delete(dead_letter, name=_LETTER, condition=DeadLetterItem.sequence.exists())
    return writing


def _gone(refused: TransactionRefused) -> PortalError:
    taken = refused.reason(_LETTER) if _LETTER in refused.names else None
    if taken is not None and taken.code == "ConditionalCheckFailed":
        return NotFound("It has been replayed or dropped by somebody else.")
    why = next((reason.message for reason in refused.reasons if reason), "the database refused")
    return Conflict(f"It still cannot be counted: {why}")


def _counts(dead_letter: DeadLetterItem) -> Contribution:
    """Return what it adds to the aggregates, those of older epochs left out."""
    raw = json.loads(dead_letter.record)
    if "truncated" in raw:
        raise Conflict(_TOO_LONG)
    if not dead_letter.tenant_id:
        raise Conflict(f"It still cannot be counted: {dead_letter.reason}")
    try:
        counts = record_changes.counted(records.parse(raw))
    except contributions.UNCOUNTABLE as error:
        raise Conflict(f"It still cannot be counted: {type(error).__name__}: {error}") from error
    if counts and Placement.parse(tenant_directory.get(dead_letter.tenant_id).placement) != placement_of(dead_letter):
        raise Conflict(MOVED)
    counter = _store(dead_letter).get(
        CounterItem, ticket_keys.counter, sort=ticket_keys.COUNTER_TICKET, consistent=True
    )
    epoch = int(counter.epoch or 0) if counter else 0  # in which the tenant's new tickets are counted
    current = {part: some for part, some in counts.items() if part.epoch >= epoch}
    if counts and not current:
        raise Conflict(REBUILT)
    return current
