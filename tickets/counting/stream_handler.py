"""Apply the changes in a batch of stream records to the aggregates, each exactly once.

The way of a record: `handle` takes the batch apart by tenant (record_changes.py); each tenant's changes are added to
its item RECENT (exactly_once.py); when that is full, a merge moves its counts on (merge.py), and now and then a
compaction tidies up behind it (tail_counts.py). Both hosts, the poller and the Lambda function, call `handle`.

Tenants are applied at the same time and fail alone: whoever is throttled gets its records back, the others are done. A
process caches its knowledge of a tenant's RECENT, so that a repeated batch costs the other tenants nothing. Of a tenant
that it does not know it reads nothing either, as long as the first update is not refused.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from portal.bounded_cache import BoundedCache
from portal.dynamo.client import fan_out
from portal.errors import ConditionFailed, Rejected, Throttled, TransactionRefused, Unavailable
from portal.streams import positions, stream_source
from portal.streams.batch import Batch, BatchResult, Record
from portal.streams.stream_source import StreamSource
from tickets.counting import aggregate_store, dead_letters, exactly_once, merge, record_changes, stored
from tickets.counting.aggregate_store import Bill, Raw
from tickets.counting.exactly_once import Recent
from tickets.counting.record_changes import Change

log = logging.getLogger("pooldesk.stream")

IF_LOST: Final = "The aggregates lack them. Run: manage.py rebuild_aggregates"
_ATTRIBUTES: Final = 170  # in one update: more do not come without filling RECENT
_DEAD_AT_ONCE: Final = 60  # dead letters, or attributes beside them, in one update, so that RECENT stays within 4 KB
_REMEMBERED: Final = 10_000  # tenants whose RECENT a process remembers, some 2 KB each
_REFUSALS: Final = 50  # of updates in a row, by others who are at the same tenant
_BROKEN: Final = "The database never takes it: "

# By whose stream brings it, and tenant: a tenant that is moved has aggregates in both places. What is stale costs one
# refused update.
_memory: BoundedCache[tuple[StreamSource, str], Recent] = BoundedCache(_REMEMBERED)


def handle(batch: Batch) -> BatchResult:
    """Apply a batch. Records of a throttled tenant are returned as deferred.

    Raises Throttled or Unavailable where no tenant could be applied.
    """
    by_tenant, events = record_changes.by_tenant(batch.records)
    known = Positions(batch.stream_arn)
    shares = [Share(batch, tenant_id, some, known) for tenant_id, some in by_tenant.items()]
    fan_out([partial(_attempt, share, share.begin) for share in shares if share.state is None and share.tenant_id])
    _learn_position(batch, shares)
    fan_out([partial(_attempt, share, share.apply) for share in shares if share.unapplied and not share.failed])
    failures = [share.failed for share in shares if share.failed]
    if failures and len(failures) == len(shares):
        raise failures[0]
    deferred = _in_order(batch, [record for share in shares for record in share.deferred()])
    counts = {
        "events": events,
        "applied": sum(share.counts["applied"] for share in shares),
        "dead": sum(share.counts["dead"] for share in shares),
        "updates": sum(share.bill.updates for share in shares),
        "write_units": sum(share.bill.write_units for share in shares),
    }
    return BatchResult(deferred=deferred, counts=counts)


def _learn_position(batch: Batch, shares: Sequence[Share]) -> None:
    """Read the shard's position once for all tenants that need it. It is good for whoever read RECENT before it."""
    lacking = [(share, state) for share in shares if share.unapplied and (state := share.state) and share.lacks_floor()]
    if len(lacking) < 2:
        return
    try:
        floor = position(batch.stream_arn, batch.shard_id)
    except Unavailable:
        return
    for share, state in lacking:
        share.state = state.knowing(share.mark, floor)


def _attempt(share: Share, step: Callable[[], None]) -> None:
    try:
        step()
    except Unavailable as error:
        log.warning("Tenant %s has to wait: %s", share.tenant_id, error.message)
        share.failed = error
    except Exception:  # of a broken item, say: it is that tenant's, and nobody else has to wait for it
        log.exception("Changes of tenant %s cannot be applied.", share.tenant_id)
        share.failed = Unavailable("Changes of a tenant cannot be applied; the log says why.")
    if share.failed:
        _memory.forget(share.name)


def _in_order(batch: Batch, records: Sequence[Record]) -> tuple[Record, ...]:
    wanted = {id(record) for record in records}
    return tuple(record for record in batch.records if id(record) in wanted)


class Share:
    """One tenant's changes in a batch, on their way into its RECENT. `unapplied` are those that are not there yet.

    `state` is RECENT as it is known, None for one that was not met yet.
    """

    def __init__(self, batch: Batch, tenant_id: str, changes: Sequence[Change], positions: Positions) -> None:
        self.batch, self.tenant_id, self.unapplied, self.positions = batch, tenant_id, list(changes), positions
        self.mark = exactly_once.mark_name(batch.stream_arn, batch.shard_id)
        self.name = stream_source.current(), tenant_id
        self.state = _memory.get(self.name)
        self.failed: Unavailable | None = None
        self.counts: Counter[str] = Counter()
        self.bill = Bill()

    def deferred(self) -> list[Record]:
        return [change.record for change in self.unapplied]

    def lacks_floor(self) -> bool:
        """Tell whether it has to be asked up to where the tenant's records of the shard are applied."""
        return self.state is not None and self.state.floor(self.mark) is None

    def begin(self) -> None:
        """Add what one update takes without reading anything. If that is refused, or would be in vain, learn RECENT.

        Raises Throttled, Unavailable.
        """
        changes = self._countable()
        group, fills = merge.first_group(Recent(), changes)
        if changes and (fills or not group):
            self.state = Recent.of(self._read_raw())
        elif changes:
            group = next(record_changes.groups(group, limit=_ATTRIBUTES))
            self._keep(group, *self._send(None, group))

    def apply(self) -> None:
        """Add all that is left; `unapplied` then says what is not added. Raises Throttled, Unavailable."""
        if not self.tenant_id:
            dead_letters.keep(self.batch, self.tenant_id, self.unapplied)
            self.counts.update(dead=len(self.unapplied))
            self._done(self.unapplied)
            return
        self._add()
        for change in list(self.unapplied):
            self._answer(change)
            self._done([change])

    def _countable(self) -> list[Change]:
        return [change for change in self.unapplied if not change.marker]

    def _add(self) -> None:
        for _ in range(_REFUSALS + len(self.unapplied)):
            changes = self._countable()
            if not changes:
                return
            state = self._with_floor(self.state or Recent.of(self._read_raw()))
            floor = state.floor(self.mark) or ""
            if exactly_once.packed(changes[0].sequence) <= floor:
                applied = bisect_right(changes, floor, key=lambda change: exactly_once.packed(change.sequence))
                self._keep(changes[:applied], state, True)
                continue
            group, fills = merge.first_group(state, changes)
            if not fills:
                group = next(record_changes.groups(group or changes, limit=_ATTRIBUTES if group else _DEAD_AT_ONCE))
            self._keep(group, *(self._merge if fills else self._send)(state, group))
        raise Throttled("Too many write this tenant's aggregates at once.")

    def _keep(self, group: Sequence[Change], state: Recent, added: bool) -> None:
        """Remember how RECENT stands, and that the group is in it, if it is."""
        self.state = state
        if added:
            self._done(group)
            self.state = self._tidied(state)
            _memory.put(self.name, self.state)

    def _done(self, changes: Sequence[Change]) -> None:
        done = {id(change) for change in changes}
        self.unapplied = [change for change in self.unapplied if id(change) not in done]

    # --- RECENT ---

    def _with_floor(self, state: Recent) -> Recent:
        """Return the state with a floor for this shard: where RECENT has no mark of it, its position, read now."""
        if state.floor(self.mark) is not None:
            return state
        return state.knowing(self.mark, position(self.batch.stream_arn, self.batch.shard_id))

    def _send(self, state: Recent | None, group: Sequence[Change]) -> tuple[Recent, bool]:
        """Add a group to RECENT as it is known or not, and keep its dead letters in the same transaction. RECENT as it
        is then, and whether it took the group."""
        first, last = exactly_once.packed(group[0].sequence), exactly_once.packed(group[-1].sequence)
        dead = [change for change in group if change.reason]
        request = exactly_once.addition(state, self.mark, first=first, last=last, counts=record_changes.summed(group))
        try:
            if dead:
                dead_letters.keep(self.batch, self.tenant_id, dead, beside=request, bill=self.bill)
                raw = self._read_raw()
            else:
                raw = aggregate_store.update(
                    self.tenant_id, stored.RECENT, self.bill, **request, ReturnValues="ALL_NEW"
                )
        except ConditionFailed as failed:
            return _later(state, failed.item or {}), False
        except TransactionRefused as refused:
            if refused.reasons and refused.reason(dead_letters.BESIDE) is None:
                raise Throttled("A dead letter could not be written.") from refused
            return _later(state, self._read_raw()), False
        except Rejected as rejected:
            return self._put_aside(state, group, rejected)
        self.counts.update(dead=len(dead), applied=len(group) - len(dead))
        return _later(state, raw), True

    def _merge(self, state: Recent, group: Sequence[Change]) -> tuple[Recent, bool]:
        """Add a group that would fill RECENT where a merge would put it. RECENT then, and whether it was taken."""
        merged = merge.add_and_merge(
            self.tenant_id,
            state,
            self.mark,
            last=exactly_once.packed(group[-1].sequence),
            counts=record_changes.summed(group),
            position=self.positions,
            bill=self.bill,
        )
        if merged is None:
            return state.after(self._read_raw()), False
        self.counts.update(applied=len(group))
        return merged, True

    def _read_raw(self) -> Raw:
        return aggregate_store.get(self.tenant_id, stored.RECENT)

    def _put_aside(self, state: Recent | None, group: Sequence[Change], why: Rejected) -> tuple[Recent, bool]:
        """Make dead letters of what RECENT can never take: with the mark, or without where it takes not even that."""
        if any(change.counts for change in group):
            reason = f"{_BROKEN}{why.message}"[: record_changes.REASON_LIMIT]
            dead = [Change(one.sequence, one.record, reason=one.reason or reason) for one in group]
            taken = True
            for some in record_changes.groups(dead, limit=_DEAD_AT_ONCE):
                state, taken = self._send(state, some) if taken else (state, taken)
            return state or Recent(), taken
        dead_letters.keep(self.batch, self.tenant_id, group)
        self.counts.update(dead=len(group))
        return state or Recent(), True

    # --- behind it ---

    def _tidied(self, state: Recent) -> Recent:
        """Merge and compact where it is time to. RECENT as it is then, read again where somebody else was at it."""
        if merge.is_full(state):
            merged = merge.merge(self.tenant_id, state, position=self.positions, bill=self.bill)
            if merged is None:
                return state.after(self._read_raw())
            state = merged
        if merge.is_due(state.tail):
            merge.compact(self.tenant_id, position=self.positions, bill=self.bill)
            return state.after(self._read_raw())
        if merge.needs_leaders(state.tail):
            merge.choose_leaders(self.tenant_id, position=self.positions, bill=self.bill)
            return state.after(self._read_raw())
        return state

    def _answer(self, change: Change) -> None:
        """Say that a barrier's marker has come by, and with it all that was in the shard before."""
        aggregate_store.update(
            self.tenant_id,
            change.marker,
            UpdateExpression="SET #shard = :shard, #sequence = :sequence, #ttl = :ttl",
            ExpressionAttributeNames={"#shard": "shard", "#sequence": "sequence", "#ttl": "expires_at"},
            ExpressionAttributeValues={
                ":shard": {"S": self.batch.shard_id},
                ":sequence": {"S": change.sequence},
                ":ttl": {"N": str(int((change.record.new or {}).get("expires_at", 0)))},
            },
        )


def _later(state: Recent | None, raw: Raw) -> Recent:
    return Recent.of(raw) if state is None else state.after(raw)


# --- positions ---


def position(stream_arn: str, shard_id: str) -> str:
    """Return the packed position of a shard, "" where nobody has said any."""
    read = positions.read(stream_arn, shard_id)
    return exactly_once.packed(read) if read else ""


@dataclass
class Positions:
    """Positions by mark, each read once: they only grow, so one that was read a moment ago is still true."""

    stream_arn: str
    read: dict[str, str] = field(default_factory=dict)

    def __call__(self, mark: str) -> str:
        if mark not in self.read:
            shard_id = exactly_once.marked_shard(self.stream_arn, mark)
            self.read[mark] = position(self.stream_arn, shard_id) if shard_id else ""
        return self.read[mark]
