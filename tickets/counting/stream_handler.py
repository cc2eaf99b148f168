"""Apply the changes in a batch of stream records to the aggregates, each exactly once.

The way of a record: `handle` takes the batch apart by tenant (record_changes.py); each tenant's changes are added to
its item RECENT (exactly_once.py); when that is full, a merge moves its counts on (merge.py), and now and then a
compaction tidies up behind it. Both hosts, the poller and the Lambda function, call `handle`.

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

from portal.dynamo import meter, placement
from portal.dynamo.client import fan_out
from portal.dynamo.store import Store
from portal.errors import ConditionFailed, Rejected, Throttled, TransactionRefused, Unavailable
from portal.quotas import BoundedCache
from portal.streams import positions, stream_source
from portal.streams.batch import Batch, BatchResult
from portal.streams.stream_source import StreamSource
from tickets.counting import dead_letters, exactly_once, merge, record_changes, stored
from tickets.counting.record_changes import Change
from tickets.counting.stored import BarrierAnswerItem, Recent

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
    with meter.measure() as bill:
        fan_out([partial(_attempt, share, share.begin) for share in shares if share.state is None and share.tenant_id])
        _learn_position(batch, shares)
        fan_out([partial(_attempt, share, share.apply) for share in shares if share.unapplied and not share.failed])
    failures = [share.failed for share in shares if share.failed]
    if failures and len(failures) == len(shares):
        raise failures[0]
    left = {id(change.record) for share in shares for change in share.unapplied}
    counts = sum((share.counts for share in shares), Counter(applied=0, dead=0))
    return BatchResult(
        deferred=tuple(record for record in batch.records if id(record) in left),
        counts={
            "events": events,
            "applied": counts["applied"],
            "dead": counts["dead"],
            "updates": sum(call.write_units > 0 for call in bill.calls),
            "write_units": bill.write_units,
        },
    )


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

    @property
    def store(self) -> Store:
        return Store("worker", self.tenant_id, placement.current())

    def lacks_floor(self) -> bool:
        """Tell whether it has to be asked up to where the tenant's records of the shard are applied."""
        return self.state is not None and self.state.floor(self.mark) is None

    def begin(self) -> None:
        """Add what one update takes without reading anything. If that is refused, or would be in vain, learn RECENT.

        Raises Throttled, Unavailable.
        """
        changes = self._countable()
        group, fills = merge.first_group(None, changes)
        if changes and (fills or not group):
            self.state = stored.recent(self.store)
        elif changes:
            group = next(record_changes.groups(group, limit=_ATTRIBUTES))
            self._keep(group, *self._send(None, group))

    def apply(self) -> None:
        """Add all that is left; `unapplied` then says what is not added. Raises Throttled, Unavailable."""
        if not self.tenant_id:
            dead_letters.keep(self.batch, None, self.unapplied)
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
            state = self._with_floor(self.state or stored.recent(self.store))
            floor = state.floor(self.mark) or ""
            if exactly_once.packed(changes[0].sequence) <= floor:
                applied = bisect_right(changes, floor, key=lambda change: exactly_once.packed(change.sequence))
                self._keep(changes[:applied], state, True)
                continue
            group, fills = merge.first_group(state, changes)
            if not group and not changes[0].reason:  # more than one merge, or one update, takes together with RECENT
                if state.counts:
                    self.state = merge.merge(self.store, state, position=self.positions) or self._read(state)
                    continue
                group, fills = changes[:1], True
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
        counts = record_changes.summed(group)
        actions, condition = exactly_once.addition(state, self.mark, first=first, last=last, counts=counts)
        try:
            if dead:
                dead_letters.keep(self.batch, self.store, dead, beside=(actions, condition))
                stood = stored.recent(self.store)
            else:
                stood = self.store.update(stored.blank(self.store), actions, condition=condition)
        except ConditionFailed as failed:
            return (failed.stored(Recent) or stored.blank(self.store)).learnt(state), False
        except TransactionRefused as refused:
            if refused.reasons and refused.reason(dead_letters.BESIDE) is None:
                raise Throttled("A dead letter could not be written.") from refused
            return self._read(state), False
        except Rejected as rejected:
            return self._put_aside(state, group, rejected)
        self.counts.update(dead=len(dead), applied=len(group) - len(dead))
        return stood.learnt(state), True

    def _merge(self, state: Recent, group: Sequence[Change]) -> tuple[Recent, bool]:
        """Add a group that would fill RECENT where a merge would put it. RECENT then, and whether it was taken."""
        last, counts = exactly_once.packed(group[-1].sequence), record_changes.summed(group)
        merged = merge.add_and_merge(self.store, state, self.mark, last=last, counts=counts, position=self.positions)
        if merged is None:
            return self._read(state), False
        self.counts.update(applied=len(group))
        return merged, True

    def _read(self, known: Recent | None) -> Recent:
        return stored.recent(self.store).learnt(known)

    def _put_aside(self, state: Recent | None, group: Sequence[Change], why: Rejected) -> tuple[Recent, bool]:
        """Make dead letters of what RECENT can never take: with the mark, or without where it takes not even that."""
        if any(change.counts for change in group):
            reason = f"{_BROKEN}{why.message}"[: record_changes.REASON_LIMIT]
            dead = [Change(one.sequence, one.record, reason=one.reason or reason) for one in group]
            taken = True
            for some in record_changes.groups(dead, limit=_DEAD_AT_ONCE):
                state, taken = self._send(state, some) if taken else (state, taken)
            return state or stored.blank(self.store), taken
        dead_letters.keep(self.batch, self.store, group)
        self.counts.update(dead=len(group))
        return state or stored.blank(self.store), True

    # --- behind it ---

    def _tidied(self, state: Recent) -> Recent:
        """Merge and compact where it is time to. RECENT as it is then, read again where somebody else was at it."""
        if merge.is_full(state):
            merged = merge.merge(self.store, state, position=self.positions)
            if merged is None:
                return self._read(state)
            state = merged
        if merge.is_due(state):
            merge.compact(self.store, position=self.positions)
            return self._read(state)
        if merge.needs_leaders(state):
            merge.choose_leaders(self.store, position=self.positions)
            return self._read(state)
        return state

    def _answer(self, change: Change) -> None:
        """Say that a barrier's marker has come by, and with it all that was in the shard before."""
        expires_at = int((change.record.new or {}).get("expires_at", 0))
        self.store.put(
            BarrierAnswerItem(
                self.store.key(stored.aggregate),
                change.marker,
                shard=self.batch.shard_id,
                sequence=change.sequence,
                expires_at=expires_at,
            )
        )


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
