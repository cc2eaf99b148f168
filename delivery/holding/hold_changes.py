"""Pause, drain, resume or drop what leaves one desk. Operators do this; each act has its row in the audit trail.

paused: every event waits. drained: what was written until then goes out, later events wait. resumed: everything goes
out again, what waited first. dropped: what was written until then is not delivered at all; later events are as before.
Nothing that waits is lost, unless it waits longer than the outbox keeps a row.
"""

from __future__ import annotations

from typing import Final

from delivery.holding import keys
from delivery.holding.items import HoldItem
from portal import clock
from portal.dynamo import platform
from portal.dynamo.repository import Action as UpdateAction
from portal.dynamo.repository import Transaction
from portal.errors import Conflict, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy.stored import DIRECTORY, TenantItem

GOING: Final = "going out"
_CHANGED: Final = "Somebody else has just changed this. Please look again."


def pause(tenant: TenantItem, *, by: Actor, reason: str = "") -> None:
    """Let all deliveries of a tenant wait. Raises Conflict where they do already, or somebody else was faster."""
    now = _now(tenant)
    if now is not None and now.waits_from == keys.EVERYTHING:
        raise Conflict(f"The deliveries of {tenant.name} are paused already.")
    waits = HoldItem.waits_from.set(keys.EVERYTHING)
    _write(tenant, now, [waits], AuditAction.DELIVERIES_PAUSED, by, reason)


def drain(tenant: TenantItem, *, by: Actor, reason: str = "") -> None:
    """Let what was written until now go out, and what comes later wait. Raises Conflict where somebody was faster."""
    waits = HoldItem.waits_from.set(clock.stamp())
    _write(tenant, _now(tenant), [waits], AuditAction.DELIVERIES_DRAINED, by, reason)


def resume(tenant: TenantItem, *, by: Actor, reason: str = "") -> None:
    """Let everything go out again. Raises Conflict where nothing waits, or somebody else was faster."""
    now = _now(tenant)
    if now is None or not now.waits_from:
        raise Conflict(f"The deliveries of {tenant.name} are not paused.")
    _write(tenant, now, [HoldItem.waits_from.remove()], AuditAction.DELIVERIES_RESUMED, by, reason)


def drop(tenant: TenantItem, *, by: Actor, reason: str = "") -> None:
    """Deliver nothing that was written until now. Raises Conflict where somebody else was faster."""
    dropped = HoldItem.dropped_until.set(clock.stamp())
    _write(tenant, _now(tenant), [dropped], AuditAction.DELIVERIES_DROPPED, by, reason)


def hold_of(tenant_id: str) -> HoldItem | None:
    """Return what holds a tenant's deliveries back, None where nothing does: one read."""
    return platform.get(HoldItem, keys.HOLDS, tenant_id)


def waiting(*, limit: int) -> list[HoldItem]:
    """Return holds by which deliveries wait, up to so many: one Query."""
    raws = platform.query(DIRECTORY, keys.HOLDS).items
    return [hold for hold in map(HoldItem.from_raw_data, raws) if hold.waits_from][:limit]


def said(hold: HoldItem | None) -> str:
    """Return what becomes of a tenant's deliveries, as the rest of a sentence that begins "They are"."""
    if hold is None or not hold.waits_from:
        states = [GOING]
    elif hold.waits_from == keys.EVERYTHING:
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
    what = "All events" if hold.waits_from == keys.EVERYTHING else "New events"
    return f"The operator of Pooldesk has paused the deliveries of this desk. {what} wait and are sent afterwards."


def _moment(stamp: str) -> str:
    return f"{clock.parse(stamp):%d %b %Y, %H:%M:%S} UTC"


def _now(tenant: TenantItem) -> HoldItem | None:
    return hold_of(tenant.tenant_id)


def _write(
    tenant: TenantItem, now: HoldItem | None, actions: list[UpdateAction], action: AuditAction, by: Actor, reason: str
) -> None:
    """Change the hold, if it still is what it was when this was decided, and write who did it."""
    unchanged = HoldItem.changed_at == now.changed_at if now else HoldItem.changed_at.does_not_exist()
    writing = Transaction()
    hold = HoldItem(keys.HOLDS, tenant.tenant_id)
    noted = [HoldItem.title.set(tenant.name), HoldItem.changed_at.set(clock.stamp())]
    writing.update(hold, [*actions, *noted], condition=unchanged)
    after = {"reason": reason} if reason else {}
    entry = AuditEntry(tenant.tenant_id, action, by, "tenant", tenant.tenant_id, tenant.name, {}, after)
    try:
        recording.commit(writing, [entry])
    except TransactionRefused as refused:
        raise Conflict(_CHANGED) from refused
