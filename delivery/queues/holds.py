"""Hold back, drain or drop the deliveries of one desk. Operators do this; each act has its row in the audit trail.

paused: every event waits. drained: events written until then go out, later ones wait. resumed: everything goes out
again. dropped: events written until then are not delivered at all. Nothing is lost unless it waits longer than the
outbox keeps a row.

Dispatchers and consumers ask for a verdict on each event. All holds are in one partition, so a process reads them with
one Query every REFRESH_SECONDS, and obeys an act that much later. A row that waits is in a partition of its own tenant
in the index of pending rows, where it costs nothing and no dispatcher meets it; `HoldApplier` puts it back afterwards,
in whichever outboxes the tenant has rows.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Final, Literal

from django.utils.translation import gettext

from delivery.outbox import outbox_rows
from delivery.outbox.stored import SHARDS, PendingRow, held, pending, row_parts
from delivery.queues.stored import EVERYTHING, HOLDS, HoldItem
from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Action as UpdateAction
from portal.dynamo.store import Transaction
from portal.errors import ConditionFailed, Conflict, TransactionRefused, Unavailable
from portal.streams import stream_source
from portal.streams.stream_source import POOLED, StreamSource
from portal.streams.worker import WORKER
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy.stored import TenantItem

log = logging.getLogger("pooldesk.delivery")

REFRESH_SECONDS: Final = 2.0

Verdict = Literal["go", "wait", "drop"]


def verdict_on(hold: HoldItem | None, timestamp: str) -> Verdict:
    """Return what is to happen with an event of this moment: it goes out, it waits, or it is dropped."""
    if hold is None:
        return "go"
    if hold.dropped_until and timestamp <= hold.dropped_until:
        return "drop"
    if hold.waits_from and timestamp > hold.waits_from:
        return "wait"
    return "go"


def read() -> dict[str, HoldItem]:
    """Read all holds by tenant id: one Query. Raises Unavailable."""
    return {hold.name: hold for hold in WORKER.query_all(HoldItem, HOLDS, consistent=True)}


class HoldCache:
    """The holds as this process knows them, read again when they are older than REFRESH_SECONDS."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._read_at = float("-inf")
        self._holds: Mapping[str, HoldItem] | None = None

    def verdict(self, tenant_id: str, timestamp: str) -> Verdict:
        """Return what is to happen with a tenant's event.

        Without an answer from the database the last one counts. Raises Unavailable where there has been none.
        """
        return verdict_on(self._known().get(tenant_id), timestamp)

    def _known(self) -> Mapping[str, HoldItem]:
        with self._lock:
            if self._holds is None or self._clock() - self._read_at >= REFRESH_SECONDS:
                try:
                    self._holds = read()
                except Unavailable:
                    if self._holds is None:
                        raise
                self._read_at = self._clock()
            return self._holds


# --- bringing the rows of the outbox in line ---

# Those who have not read a new hold yet may still put rows aside under the old one.
_SETTLED: Final = timedelta(seconds=10 * REFRESH_SECONDS)


class HoldApplier:
    """Carry out what operators have asked for since the last time."""

    def __init__(self) -> None:
        self._done: set[tuple[str, str]] = set()  # tenant and the moment of a change that leaves nothing to do
        self._first = 0

    def step(self, *, seconds: float = float("inf")) -> int:
        """Work through all holds that changed, for so many seconds at most. Return how many rows were moved or closed.

        Raises Unavailable.
        """
        until = time.monotonic() + seconds
        changed = 0
        todo = [hold for hold in read().values() if (hold.name, hold.changed_at) not in self._done]
        self._first = (self._first + 1) % max(1, len(todo))  # so that a long one does not keep the others waiting
        for hold in [*todo[self._first :], *todo[: self._first]]:
            settled = clock.parse(hold.changed_at) + _SETTLED < clock.now()
            for source in stream_source.of_tenant(hold.name):
                moved, is_through = _carry_out_all(hold, source, until)
                changed, settled = changed + moved, settled and is_through
                if time.monotonic() > until:
                    return changed
            if settled:
                _finish(hold)
                self._done.add((hold.name, hold.changed_at))
        return changed


def _carry_out_all(hold: HoldItem, source: StreamSource, until: float) -> tuple[int, bool]:
    """Work through the rows of one outbox. Return how many changed, and whether it came to the end."""
    changed = 0
    try:
        with source.entered():
            for row in _rows(hold.name, everywhere=bool(hold.dropped_until)):
                changed += carry_out(hold, row)
                if time.monotonic() > until:
                    return changed, False
    except Unavailable as error:
        if source == POOLED:
            raise
        log.warning("What is held in the outbox of %s is looked at later: %s", source, error.message)
        return changed, False
    return changed, True


def carry_out(hold: HoldItem, row: PendingRow) -> bool:
    """Do with a row of the index what the hold says. Tell whether there was anything to do."""
    verdict = verdict_on(hold, row.timestamp)
    if verdict == "drop":
        outbox_rows.drop(row)
        return True
    if verdict == "go" and row.pending == held(hold.name):
        outbox_rows.release(row)
        return True
    return False


def _rows(tenant_id: str, *, everywhere: bool) -> Iterator[PendingRow]:
    """Yield the tenant's rows that are set aside and, with `everywhere`, its pending ones."""
    yield from WORKER.query_all(PendingRow, held(tenant_id))
    for shard in range(SHARDS if everywhere else 0):
        found = WORKER.query_all(PendingRow, pending(shard))
        yield from (row for row in found if row_parts(row.event_id)[0] == tenant_id)


def _finish(hold: HoldItem) -> None:
    """Forget what has been carried out, unless the hold was changed meanwhile."""
    unchanged = HoldItem.changed_at == hold.changed_at
    item = HoldItem(hold.kind, hold.name)
    try:
        if hold.waits_from and hold.dropped_until:
            WORKER.update(item, [HoldItem.dropped_until.remove()], condition=unchanged)
        elif not hold.waits_from:
            WORKER.delete(item, condition=unchanged)
    except ConditionFailed:
        return


# --- an operator's acts ---

GOING: Final = "going out"
_CHANGED: Final = "Somebody else has just changed this. Please look again."


def pause(tenant: TenantItem, *, by: Actor, reason: str = "") -> None:
    """Let all deliveries of a tenant wait. Raises Conflict where they do already, or somebody else was faster."""
    now = hold_of(tenant.tenant_id)
    if now is not None and now.waits_from == EVERYTHING:
        raise Conflict(f"The deliveries of {tenant.name} are paused already.")
    waits = HoldItem.waits_from.set(EVERYTHING)
    _write(tenant, now, [waits], AuditAction.DELIVERIES_PAUSED, by, reason)


def drain(tenant: TenantItem, *, by: Actor, reason: str = "") -> None:
    """Let what was written until now go out, and what comes later wait. Raises Conflict where somebody was faster."""
    waits = HoldItem.waits_from.set(clock.stamp())
    _write(tenant, hold_of(tenant.tenant_id), [waits], AuditAction.DELIVERIES_DRAINED, by, reason)


def resume(tenant: TenantItem, *, by: Actor, reason: str = "") -> None:
    """Let everything go out again. Raises Conflict where nothing waits, or somebody else was faster."""
    now = hold_of(tenant.tenant_id)
    if now is None or not now.waits_from:
        raise Conflict(f"The deliveries of {tenant.name} are not paused.")
    _write(tenant, now, [HoldItem.waits_from.remove()], AuditAction.DELIVERIES_RESUMED, by, reason)


def drop(tenant: TenantItem, *, by: Actor, reason: str = "") -> None:
    """Deliver nothing that was written until now. Raises Conflict where somebody else was faster."""
    dropped = HoldItem.dropped_until.set(clock.stamp())
    _write(tenant, hold_of(tenant.tenant_id), [dropped], AuditAction.DELIVERIES_DROPPED, by, reason)


def hold_of(tenant_id: str) -> HoldItem | None:
    """Return what holds a tenant's deliveries back, None where nothing does: one read."""
    return PLATFORM.get(HoldItem, HOLDS, sort=tenant_id)


def waiting(*, limit: int) -> list[HoldItem]:
    """Return holds by which deliveries wait, up to so many: one Query."""
    return [hold for hold in PLATFORM.query(HoldItem, HOLDS).items if hold.waits_from][:limit]


def said(hold: HoldItem | None) -> str:
    """Return what becomes of a tenant's deliveries, as the rest of a sentence that begins "They are"."""
    if hold is None or not hold.waits_from:
        states = [GOING]
    elif hold.waits_from == EVERYTHING:
        states = ["paused: everything waits"]
    else:
        states = [f"draining: what was written after {_moment(hold.waits_from)} waits"]
    if hold is not None and hold.dropped_until:
        states.append(f"what was written until {_moment(hold.dropped_until)} is being dropped")
    return "; ".join(states)


def said_to_admins(hold: HoldItem | None) -> str:
    """Return what the tenant's admins are told, as sentences; "" where nothing waits."""
    if hold is None or not hold.waits_from:
        return ""
    why = gettext("The operator of Pooldesk has paused the deliveries of this desk.")
    every, new = (
        gettext("All events wait and are sent afterwards."),
        gettext("New events wait and are sent afterwards."),
    )
    return f"{why} {every if hold.waits_from == EVERYTHING else new}"


def _moment(stamp: str) -> str:
    return f"{clock.parse(stamp):%d %b %Y, %H:%M:%S} UTC"


def _write(
    tenant: TenantItem, now: HoldItem | None, actions: list[UpdateAction], action: AuditAction, by: Actor, reason: str
) -> None:
    """Change the hold, if it still is what it was when this was decided, and write who did it."""
    unchanged = HoldItem.changed_at == now.changed_at if now else HoldItem.changed_at.does_not_exist()
    writing = Transaction()
    hold = HoldItem(HOLDS, tenant.tenant_id)
    noted = [HoldItem.title.set(tenant.name), HoldItem.changed_at.set(clock.stamp())]
    writing.update(hold, [*actions, *noted], condition=unchanged)
    after = {"reason": reason} if reason else {}
    entry = AuditEntry(tenant.tenant_id, action, by, "tenant", tenant.tenant_id, tenant.name, {}, after)
    try:
        recording.commit(writing, [entry])
    except TransactionRefused as refused:
        raise Conflict(_CHANGED) from refused
