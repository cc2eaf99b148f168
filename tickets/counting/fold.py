"""Applies the changes in a batch of stream records to the aggregates, each exactly once.

Each aggregate item remembers, for every stream shard, the last sequence number that it has taken, and an update
holds only if that is smaller than the first one of the batch. A batch that comes again, or overlaps with one that was
applied, is refused by the item itself, which says what it has; the rest is folded again. A worker that dies between
two items leaves one of them behind, and the redelivery completes exactly that one. Workers that both believe to
hold a shard cannot count anything twice.

Two things keep the bookkeeping small: a shard that was not heard of for two days is forgotten (the stream keeps
records for one, and no worker applies what it has read longer than `HELD_SECONDS` ago), and counts that are zero are
removed in one go.

Source of the condition: engine tests of ours; AWS, "Using the DynamoDB Streams Kinesis Adapter", says of the
delivery only that it is at least once.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from portal import clock
from portal.dynamo.repository import Transaction
from portal.errors import ConditionFailed, Invalid, Rejected, Throttled, TransactionRefused
from portal.streams import worker
from tickets.counting import aggregate_store, aggregates, keys
from tickets.counting.aggregates import Change, Counts
from tickets.counting.items import DeadLetterItem
from tickets.ticket.tables import TICKETS

log = logging.getLogger("pooldesk.stream")

HELD_SECONDS: Final = 900  # between reading a batch and applying it
_FORGET_AFTER: Final = timedelta(days=2)
_ATTRIBUTES: Final = 150  # in one update; an expression has at most 300 operators and 4 KB
_ZEROS: Final = 20  # that an item may hold before they are removed
LETTER_DAYS: Final = 30  # before a dead letter goes by TTL


@dataclass
class Outcome:
    """What became of a batch: records about summaries, those newly counted, dead letters, updates, write units."""

    events: int = 0
    applied: int = 0
    dead: int = 0
    updates: int = 0
    write_units: float = 0.0

    def add(self, other: Outcome) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))


def process(
    records: Sequence[Mapping[str, Any]],
    *,
    shard: str,
    read_at: float,
    between: Callable[[], object] = lambda: None,
) -> Outcome:
    """Apply a batch of one shard, whole and in order. Both hosts, the poller and the Lambda function, call this.

    `shard` is any text that names stream and shard for ever; `read_at` is time.monotonic() when the batch was read.
    `between` is called between two writes: a batch of many tenants may take longer than its host may be silent.
    Raises Throttled and Unavailable, after which the same batch is to be sent again; Invalid for one held too long.
    """
    if time.monotonic() - read_at > HELD_SECONDS:
        raise Invalid("The batch was read too long ago; read it again.")
    fold = aggregates.fold(records)
    outcome = Outcome(events=fold.events)
    for poison in fold.poison:
        _bury(poison.sequence, poison.tenant_id, poison.reason, poison.record)
        outcome.dead += 1
    mark = mark_of(shard)
    for tenant_id, changes in fold.changes.items():
        taken: set[str] = set()
        for sort_key, counted in aggregates.by_item(changes).items():
            for group in _groups(counted):
                between()
                try:
                    taken |= _apply(tenant_id, sort_key, mark, group, outcome)
                except Rejected as rejected:
                    _put_aside(tenant_id, sort_key, mark, group, changes, rejected.message)
                    outcome.dead += len(group)
        outcome.applied += len(taken)
    return outcome


def mark_of(shard: str) -> str:
    """The attribute in which an aggregate item remembers a stream shard."""
    return aggregates.MARK_PREFIX + hashlib.blake2b(shard.encode(), digest_size=6).hexdigest()


def _apply(
    tenant_id: str, sort_key: str, mark: str, counted: Sequence[tuple[str, Counts]], outcome: Outcome
) -> set[str]:
    """Add to one aggregate item what it does not have yet; the sequences that it took now. Raises Rejected."""
    left = list(counted)
    while left:
        outcome.updates += 1
        try:
            stored, units = aggregate_store.update(tenant_id, sort_key, **_addition(mark, left))
        except ConditionFailed as failed:
            last = _sequence((failed.item or {})[mark]["S"])
            left = [(sequence, counts) for sequence, counts in left if sequence > last]
        else:
            outcome.write_units += units + _tidy(tenant_id, sort_key, stored)
            return {sequence for sequence, _ in left}
    return set()


def _put_aside(
    tenant_id: str,
    sort_key: str,
    mark: str,
    group: Sequence[tuple[str, Counts]],
    changes: Sequence[Change],
    reason: str,
) -> None:
    """Make dead letters of what an item does not take, and let it forget them, so that a redelivery tries nothing."""
    concerned = {sequence for sequence, _ in group}
    for change in changes:
        if change.sequence in concerned:
            _bury(change.sequence, tenant_id, reason, change.record, sort_key)
    with suppress(ConditionFailed, Rejected):
        aggregate_store.update(tenant_id, sort_key, **_addition(mark, [(sequence, Counter()) for sequence, _ in group]))


def _groups(counted: Sequence[tuple[str, Counts]]) -> list[list[tuple[str, Counts]]]:
    """The changes in order, in groups that touch few enough attributes for one update."""
    groups: list[list[tuple[str, Counts]]] = []
    names: set[str] = set()
    for sequence, counts in counted:
        names |= counts.keys()
        if not groups or len(names) > _ATTRIBUTES:
            groups.append([])
            names = set(counts)
        groups[-1].append((sequence, counts))
    return groups


def _addition(mark: str, counted: Sequence[tuple[str, Counts]]) -> dict[str, Any]:
    total: Counts = Counter()
    for _, counts in counted:
        total.update(counts)
    first, last, today = counted[0][0], counted[-1][0], clock.stamp()[:10]
    adding = additions(total)
    return {
        # An item that a rebuild has left to TTL is needed after all; see rebuild.py.
        "UpdateExpression": "SET #mark = :last, #at = :now REMOVE #ttl" + adding.pop("expression"),
        "ConditionExpression": "attribute_not_exists(#mark) OR #mark < :first",
        "ExpressionAttributeNames": adding["names"] | {"#mark": mark, "#at": "applied_at", "#ttl": TICKETS.ttl},
        "ExpressionAttributeValues": adding["values"]
        # With the date behind it, a mark is still above every sequence before it and below every one after it.
        | {":first": {"S": first}, ":last": {"S": f"{last}@{today}"}, ":now": {"S": clock.stamp()}},
        "ReturnValues": "ALL_NEW",
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }


def _sequence(mark: str) -> str:
    return mark.partition("@")[0]


def additions(total: Counts) -> dict[str, Any]:
    """The end of an update expression that adds these counts, with its names and values."""
    changed = [(name, n) for name, n in sorted(total.items()) if n]
    adds = ", ".join(f"#c{i} :c{i}" for i in range(len(changed)))
    return {
        "expression": f" ADD {adds}" if adds else "",
        "names": {f"#c{i}": name for i, (name, _) in enumerate(changed)},
        "values": {f":c{i}": {"N": str(n)} for i, (_, n) in enumerate(changed)},
    }


def _tidy(tenant_id: str, sort_key: str, stored: Mapping[str, Any]) -> float:
    """Remove shards that were not heard of for long and counts that are zero; the write units that took.

    Every removal is conditional on the value seen, so that it takes away nothing that was written meanwhile.
    """
    oldest = (clock.now() - _FORGET_AFTER).date().isoformat()
    marks = {
        name: value["S"]
        for name, value in stored.items()
        if name.startswith(aggregates.MARK_PREFIX) and value["S"].partition("@")[2] < oldest
    }
    zeros = [name for name, value in stored.items() if value.get("N") == "0"]
    gone: dict[str, dict[str, str]] = {name: {"S": value} for name, value in marks.items()}
    if len(zeros) >= _ZEROS:
        gone |= {name: {"N": "0"} for name in zeros}
    if not gone:
        return 0.0
    names = list(gone)[:_ATTRIBUTES]
    try:
        _, units = aggregate_store.update(
            tenant_id,
            sort_key,
            UpdateExpression="REMOVE " + ", ".join(f"#g{i}" for i in range(len(names))),
            ConditionExpression=" AND ".join(f"#g{i} = :g{i}" for i in range(len(names))),
            ExpressionAttributeNames={f"#g{i}": name for i, name in enumerate(names)},
            ExpressionAttributeValues={f":g{i}": gone[name] for i, name in enumerate(names)},
        )
    except ConditionFailed:
        return 0.0  # another time
    return units


# --- dead letters ---


def _bury(sequence: str, tenant_id: str, reason: str, record: Mapping[str, Any], sort_key: str = "") -> None:
    """Keep a record that cannot be counted. The same one again replaces itself, unless it is settled by now."""
    letter = DeadLetterItem(
        TICKETS.name,
        keys.letter(sequence, sort_key),
        tenant_id=tenant_id,
        aggregate=sort_key,
        reason=reason,
        record=json.dumps(record, default=str, separators=(",", ":")),
        at=clock.stamp(),
        expires_at=int(time.time()) + LETTER_DAYS * 86400,
    )
    settled = DeadLetterItem(keys.settled_letters(letter.stream), letter.sequence)
    writing = Transaction()
    writing.check(settled, DeadLetterItem.sequence.does_not_exist(), name="settled")
    writing.put(letter)
    try:
        worker.commit(writing)
    except TransactionRefused as refused:
        settled_by = refused.reason("settled")
        if settled_by is not None and settled_by.code == "ConditionalCheckFailed":
            return  # replayed or dropped: a redelivery must not bring it back, to be counted a second time
        raise Throttled("A dead letter could not be written.") from refused
    log.error("A stream record was put aside: %s, tenant %s, %s", sequence.lstrip("0"), tenant_id or "(none)", reason)
