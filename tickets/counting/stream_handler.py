"""Apply the changes in a batch of stream records to the aggregates, each exactly once.

The way of a record: `handle` takes the batch apart by tenant (changes.py); each tenant's changes are added to its item
RECENT (recent.py); when that is full, a merge moves its counts on (merge.py), and now and then a compaction tidies up
behind it (tail.py). Both hosts, the poller and the Lambda function, call `handle`.

Tenants are applied at the same time and fail alone: whoever is throttled gets its records back, the others are done.
What a process knows of a tenant's RECENT it remembers, so that a batch that comes again costs the others nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from portal.dynamo.client import fan_out
from portal.errors import ConditionFailed, Rejected, Throttled, TransactionRefused, Unavailable
from portal.streams import positions
from portal.streams.batch import Batch, BatchResult, Record
from tickets.counting import aggregate_store, changes, dead_letters, keys, merge, recent, tail
from tickets.counting.aggregate_store import Bill, Raw
from tickets.counting.changes import Change
from tickets.counting.memory import Memory
from tickets.counting.recent import Recent

log = logging.getLogger("pooldesk.stream")

_ATTRIBUTES: Final = 60  # in one update, so that RECENT stays within 4 KB
_REMEMBERED: Final = 10_000  # tenants whose RECENT a process remembers, some 2 KB each
_REFUSALS: Final = 50  # of updates in a row, by others who are at the same tenant
_BROKEN: Final = "The database never takes it: "

_memory = Memory(_REMEMBERED)


def handle(batch: Batch) -> BatchResult:
    """Apply a batch. What a throttled tenant could not be given comes back as deferred.

    Raises Throttled or Unavailable where no tenant could be applied.
    """
    by_tenant, events = changes.by_tenant(batch.records)
    shares = [Share(batch, tenant_id, some) for tenant_id, some in by_tenant.items()]
    _learn_position(batch, list(by_tenant))
    failures = [one for one in fan_out([partial(_attempt, share) for share in shares]) if one] if shares else []
    if failures and len(failures) == len(shares):
        raise failures[0]
    deferred = _in_order(batch, [record for share in shares for record in share.deferred()])
    counts = {
        "events": events,
        "applied": sum(share.counts["applied"] for share in shares),
        "dead": sum(share.counts["dead"] for share in shares),
        "updates": sum(share.updates for share in shares),
        "write_units": sum(share.write_units for share in shares),
    }
    return BatchResult(deferred=deferred, counts=counts)


def _learn_position(batch: Batch, tenant_ids: Sequence[str]) -> None:
    """Read the shard's position once for all tenants that need it, after RECENT of those that are not remembered.

    A position is good for whoever read RECENT before it. A tenant that cannot be read now reads both by itself later.
    """
    mark = recent.mark_name(batch.stream_arn, batch.shard_id)
    states = {tenant_id: _memory.get(tenant_id) for tenant_id in tenant_ids if tenant_id}
    lacking = [tenant_id for tenant_id, state in states.items() if state is None or state.floor(mark) is None]
    if len(lacking) < 2:
        return
    read = fan_out([partial(_read_or_none, tenant_id, states[tenant_id]) for tenant_id in lacking])
    try:
        floor = position(batch.stream_arn, batch.shard_id)
    except Unavailable:
        return
    for tenant_id, state in zip(lacking, read, strict=True):
        if state is not None:
            _memory.put(tenant_id, state if state.floor(mark) is not None else state.knowing(mark, floor))


def _read_or_none(tenant_id: str, remembered: Recent | None) -> Recent | None:
    try:
        return remembered or read_recent(tenant_id)
    except Exception:  # said where the tenant's changes are applied
        return None


def _attempt(share: Share) -> Unavailable | None:
    try:
        share.apply()
    except Unavailable as error:
        _memory.forget(share.tenant_id)
        log.warning("Tenant %s has to wait: %s", share.tenant_id, error.message)
        return error
    except Exception:  # of a broken item, say: it is that tenant's, and nobody else has to wait for it
        _memory.forget(share.tenant_id)
        log.exception("Changes of tenant %s cannot be applied.", share.tenant_id)
        return Unavailable("Changes of a tenant cannot be applied; the log says why.")
    return None


def _in_order(batch: Batch, records: Sequence[Record]) -> tuple[Record, ...]:
    wanted = {id(record) for record in records}
    return tuple(record for record in batch.records if id(record) in wanted)


class Share:
    """One tenant's changes in a batch, on their way into its RECENT. `left` are those that are not there yet."""

    def __init__(self, batch: Batch, tenant_id: str, some: Sequence[Change]) -> None:
        self.batch, self.tenant_id, self.left = batch, tenant_id, list(some)
        self.mark = recent.mark_name(batch.stream_arn, batch.shard_id)
        self.counts: Counter[str] = Counter()
        self.updates, self.write_units = 0, 0.0

    def deferred(self) -> list[Record]:
        return [change.record for change in self.left]

    def apply(self) -> None:
        """Add all that is left; `left` then says what is not added. Raises Throttled, Unavailable."""
        if not self.tenant_id:
            dead_letters.keep(self.batch, self.tenant_id, self.left)
            self.counts.update(dead=len(self.left))
            self._done(self.left)
            return
        bill = Bill()
        try:
            markers = [change for change in self.left if change.marker]
            self._add([change for change in self.left if not change.marker], bill)
            for change in markers:
                self._answer(change)
                self._done([change])
        finally:
            self.updates, self.write_units = bill.updates, bill.write_units

    def _add(self, some: list[Change], bill: Bill) -> None:
        state = _memory.get(self.tenant_id) or read_recent(self.tenant_id)
        for _ in range(_REFUSALS + len(some)):
            state = self._known(state)
            floor = state.floor(self.mark) or ""
            known = [change for change in some if recent.packed(change.sequence) <= floor]
            self._done(known)
            some = some[len(known) :]
            if not some:
                _memory.put(self.tenant_id, state)
                return
            if group := merge.large_group(state, some):
                state, added = self._merge(state, group, bill)
            else:
                group = next(changes.groups(some, limit=_ATTRIBUTES))
                state, added = self._send(state, group, bill)
            if added:
                self._done(group)
                some = some[len(group) :]
                state = self._tidied(state, bill)
        raise Throttled("Too many write this tenant's aggregates at once.")

    def _done(self, some: Sequence[Change]) -> None:
        done = {id(change) for change in some}
        self.left = [change for change in self.left if id(change) not in done]

    # --- RECENT ---

    def _known(self, state: Recent) -> Recent:
        """The state with a floor for this shard: where RECENT has no mark of it, its position, read now."""
        if state.floor(self.mark) is not None:
            return state
        return state.knowing(self.mark, position(self.batch.stream_arn, self.batch.shard_id))

    def _send(self, state: Recent, group: Sequence[Change], bill: Bill) -> tuple[Recent, bool]:
        """Add a group to RECENT, and keep its dead letters in the same transaction. RECENT as it is then, and whether
        it took the group."""
        first, last = recent.packed(group[0].sequence), recent.packed(group[-1].sequence)
        dead = [change for change in group if change.reason]
        request = recent.addition(state, self.mark, first=first, last=last, counts=changes.summed(group))
        try:
            if dead:
                dead_letters.keep(self.batch, self.tenant_id, dead, beside=request, bill=bill)
                raw = self._read_raw()
            else:
                raw = aggregate_store.update(self.tenant_id, keys.RECENT, bill, **request, ReturnValues="ALL_NEW")
        except ConditionFailed as failed:
            return state.after(failed.item or {}), False
        except TransactionRefused as refused:
            if refused.reasons and refused.reasons[0] is None:
                raise Throttled("A dead letter could not be written.") from refused
            return state.after(self._read_raw()), False
        except Rejected as rejected:
            return self._put_aside(state, group, rejected, bill)
        self.counts.update(dead=len(dead), applied=len(group) - len(dead))
        return state.after(raw), True

    def _merge(self, state: Recent, group: Sequence[Change], bill: Bill) -> tuple[Recent, bool]:
        """Add a group that would fill RECENT where a merge would put it. RECENT then, and whether it was taken."""
        merged = merge.add_and_merge(
            self.tenant_id,
            state,
            self.mark,
            last=recent.packed(group[-1].sequence),
            counts=changes.summed(group),
            position=Positions(self.batch.stream_arn),
            bill=bill,
        )
        if merged is None:
            return state.after(self._read_raw()), False
        self.counts.update(applied=len(group))
        return merged, True

    def _read_raw(self) -> Raw:
        return aggregate_store.get(self.tenant_id, keys.RECENT)

    def _put_aside(self, state: Recent, group: Sequence[Change], why: Rejected, bill: Bill) -> tuple[Recent, bool]:
        """Make dead letters of what RECENT can never take: with the mark, or without where it takes not even that."""
        if any(change.counts for change in group):
            reason = f"{_BROKEN}{why.message}"[: changes.REASON_LIMIT]
            dead = [Change(one.sequence, one.record, reason=one.reason or reason) for one in group]
            for some in changes.groups(dead, limit=_ATTRIBUTES):
                state, taken = self._send(state, some, bill)
                if not taken:
                    return state, False
            return state, True
        dead_letters.keep(self.batch, self.tenant_id, group)
        self.counts.update(dead=len(group))
        return state, True

    # --- behind it ---

    def _tidied(self, state: Recent, bill: Bill) -> Recent:
        """Merge and compact where it is time to. RECENT as it is then, read again where somebody else was at it."""
        known = Positions(self.batch.stream_arn)
        if merge.is_full(state):
            merged = merge.merge(self.tenant_id, state, position=known, bill=bill)
            if merged is None:
                return state.after(self._read_raw())
            state = merged
        if tail.is_due(state.tail):
            tail.compact(self.tenant_id, position=known, bill=bill)
            return state.after(self._read_raw())
        return state

    def _answer(self, change: Change) -> None:
        """Say that a barrier's marker has come by, and with it all that was in the shard before."""
        aggregate_store.update(
            self.tenant_id,
            change.marker,
            UpdateExpression="SET #shard = :shard, #ttl = :ttl",
            ExpressionAttributeNames={"#shard": "shard", "#ttl": "expires_at"},
            ExpressionAttributeValues={
                ":shard": {"S": self.batch.shard_id},
                ":ttl": {"N": str(int((change.record.new or {}).get("expires_at", 0)))},
            },
        )


def read_recent(tenant_id: str) -> Recent:
    return Recent.of(aggregate_store.get(tenant_id, keys.RECENT))


# --- positions ---


def position(stream_arn: str, shard_id: str) -> str:
    """The packed position of a shard, "" where nobody knows it."""
    # A shard that is being finished moves from one item to another: whoever saw neither sees it the second time.
    read = positions.read(stream_arn, shard_id) or positions.read(stream_arn, shard_id)
    return recent.packed(read) if read else ""


@dataclass
class Positions:
    """Positions by mark, each read once: they only grow, so one that was read a moment ago is still true."""

    stream_arn: str
    read: dict[str, str] = field(default_factory=dict)

    def __call__(self, mark: str) -> str:
        if mark not in self.read:
            shard_id = recent.marked_shard(self.stream_arn, mark)
            self.read[mark] = position(self.stream_arn, shard_id) if shard_id else ""
        return self.read[mark]
