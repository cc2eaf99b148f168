"""Begin a purge, order one for later, and refuse what may not be purged yet.

The purge is noted in the directory, because all else of the tenant goes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from portal import clock, plain_text
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Store, Transaction
from portal.errors import ConditionFailed, Conflict, Invalid, NotFound
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.lifecycle import certificates
from tenants.membership import members
from tenants.membership.members import Member
from tenants.tenancy import tenant_directory
from tenants.tenancy.stored import TenantItem, TenantStatus
from tickets.jobs.leased_job import JobKind
from tickets.moving import place_changes
from tickets.purging import stored
from tickets.purging.stored import PurgeItem
from tickets.sharding import reshard_requests

ORDERED, RUNNING, CHECKED = "ordered", "running", "checked"
PURGES: Final = JobKind("purge", PurgeItem, stored.PURGES, "platform", (ORDERED, RUNNING, CHECKED))


@dataclass
class HoldingCount:
    """Hold how many items of a holding were counted at first, deleted, and found when it was looked through again."""

    counted: int = 0
    deleted: int = 0
    found_after: int = 0


Counts = dict[str, HoldingCount]


def new(tenant: TenantItem, *, state: str, by: Actor, reason: str) -> PurgeItem:
    """Return the note of a purge that is ordered or begins."""
    places = [tenant.placement or "pool", *([tenant.former_placement] if tenant.former_placement else [])]
    return PURGES.new(
        tenant, state=state, reason=reason, by_id=by.id, by_email=by.email, by_origin=by.origin,
        asked_at=clock.stamp(), closes_at=tenant.closes_at or "", places=" ".join(dict.fromkeys(places)),
    )  # fmt: skip


def by_slug(slug: str) -> PurgeItem | None:
    """Return the purge of the tenant that has or had this slug: its other names may be gone already."""
    return next((item for item in PURGES.all_last() if item.slug == slug), None)


def counts_of(item: PurgeItem) -> Counts:
    """Read the counts of a purge, without members that a newer version may have added."""
    members = HoldingCount.__dataclass_fields__
    return {
        holding: HoldingCount(**{name: n for name, n in counts.items() if name in members})
        for holding, counts in json.loads(item.counts).items()
    }


# --- orders ---


TAKEN_BACK_MINUTES: Final = 10  # in which an order is left alone: what was purged nobody brings back
_CHANGED: Final = "Somebody else has just changed this tenant. Please check and try again."


class WriteDeletion(Protocol):
    """Writes the mails that tell the owners of a purge, which begins no sooner than `begins`."""

    def __call__(
        self, tenant: TenantItem, owners: Sequence[Member], *, by: Actor, begins: datetime, reason: str
    ) -> Sequence[OutgoingMail]: ...


def order(tenant_id: str, *, by: Actor, reason: str, write: WriteDeletion) -> None:
    """Let a tenant be purged whose grace is over, and tell its owners by mail. Until it begins it can be undone.

    The mail of `write` is written in the same transaction. Raises NotFound, and Conflict where it may not be purged or
    is ordered already.
    """
    tenant = tenant_directory.get(tenant_id)
    refuse_early(tenant)
    transaction = Transaction()
    item = new(tenant, state=ORDERED, by=by, reason=reason)
    transaction.put(item, condition=PurgeItem.name.does_not_exist())
    transaction.check(tenant, TenantItem.status == tenant.status)
    owners = members.owners_of(Store("tenant", tenant_id))
    mails = outgoing.join(transaction, write(tenant, owners, by=by, begins=begins_at(item), reason=reason))
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_PURGE_ORDERED, by, after={"reason": reason})
    recording.commit(transaction, [entry], refused=Conflict(_CHANGED))
    outgoing.send_all(mails)


def begins_at(item: PurgeItem) -> datetime:
    """Return the moment before which nobody carries an order out by themselves."""
    return clock.parse(item.asked_at) + timedelta(minutes=TAKEN_BACK_MINUTES)


def withdraw(tenant_id: str, *, by: Actor) -> None:
    """Take an order back. Raises NotFound, and Conflict where there is none or its purge has begun."""
    tenant, item = tenant_directory.get(tenant_id), PURGES.last(tenant_id)
    if item is None or item.state != ORDERED:
        raise Conflict(f"No purge of {tenant.name} is ordered.")
    transaction = Transaction()
    transaction.delete(item, condition=PurgeItem.state == ORDERED)
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_PURGE_WITHDRAWN, by)
    recording.commit(transaction, [entry], refused=Conflict(_CHANGED))


def begin_ordered(item: PurgeItem, *, by: Actor) -> PurgeItem | None:
    """Begin what is ordered, or go on with what has begun. None, and the order gone, where the tenant was reopened.

    Raises Conflict as `begin` does.
    """
    if item.state != ORDERED:
        return item
    try:
        tenant = tenant_directory.get(item.tenant_id)
    except NotFound:
        tenant = None
    if tenant is None or tenant.status != TenantStatus.CLOSING or tenant.closes_at != item.closes_at:
        try:
            PLATFORM.delete(item, condition=PurgeItem.state == ORDERED)
        except ConditionFailed as failed:
            raise Conflict(_CHANGED) from failed
        return None
    return begin(tenant, by=by)


def begin(tenant: TenantItem, *, by: Actor, reason: str = "", now: bool = False) -> PurgeItem:
    """Shut everybody out, and return the note of the purge. From here on there is no undo.

    With `now` and a reason a closed tenant is purged whose grace is not over. Raises Invalid without the reason, and
    Conflict where it may not be purged, nothing could sign the certificate, or somebody else was faster.
    """
    if now and not plain_text.has_visible_text(reason):
        raise Invalid("Say why: --now needs --reason TEXT.", field="reason")
    refuse_early(tenant, now=now)
    _refuse_at_work(tenant)
    certificates.signing_key()
    ordered = PURGES.last(tenant.tenant_id)
    item = new(tenant, state=RUNNING, by=by, reason=reason)
    if ordered is not None:
        item.reason, item.by_id, item.by_email = ordered.reason or reason, ordered.by_id, ordered.by_email
        item.by_origin, item.asked_at = ordered.by_origin, ordered.asked_at
    item.begun_at = clock.stamp()
    transaction = Transaction()
    # The grace as well: a desk that was reopened and closed again meanwhile has another one, and looks the same else.
    until = tenant.closes_at
    same_grace = TenantItem.closes_at == until if until else TenantItem.closes_at.does_not_exist()
    unchanged = (TenantItem.status == tenant.status) & (TenantItem.slug == tenant.slug) & same_grace
    transaction.update(
        tenant,
        [TenantItem.status.set(TenantStatus.PURGING)],
        condition=unchanged & TenantItem.move.does_not_exist() & TenantItem.moving_to.does_not_exist(),
    )
    free = PurgeItem.state == ORDERED if ordered else PurgeItem.name.does_not_exist()
    transaction.put(item, condition=free)
    # A move that begins, or is called off, has made or left something at a place that the tenant's item does not name.
    transaction.check(place_changes.MOVES.of(tenant.tenant_id), place_changes.MOVES.free())
    tenant_directory.list_as(transaction, tenant, TenantStatus.PURGING)
    after = {"status": TenantStatus.PURGING} | ({"reason": item.reason} if item.reason else {})
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_PURGE_BEGUN, by, {"status": tenant.status}, after)
    recording.commit(transaction, [entry], refused=Conflict(_CHANGED))
    return item


def refuse_early(tenant: TenantItem, *, now: bool = False) -> None:
    """Raise Conflict unless a tenant is closing and its grace is over. With `now` the grace does not matter."""
    if tenant.status == TenantStatus.PURGING:
        raise Conflict(f"The purge of {tenant.name} has begun already.")
    if tenant.status != TenantStatus.CLOSING:
        raise Conflict(
            f"{tenant.name} is {tenant.status}. Close it first, on its page or with close_tenant {tenant.slug}."
        )
    if not now and tenant.closes_at and tenant.closes_at > clock.stamp():
        over = f"{clock.parse(tenant.closes_at):%-d %B %Y, %H:%M} UTC"
        before = f"Before that: purge_tenant {tenant.slug} --now --reason TEXT."
        raise Conflict(f"The grace of {tenant.name} ends on {over}. {before}")


def _refuse_at_work(tenant: TenantItem) -> None:
    move = place_changes.MOVES.under_way(tenant.tenant_id)
    if tenant.move or (move is not None and move.state == place_changes.RUNNING):
        raise Conflict(f"{tenant.name} is being moved. Let that end first, or roll it back.")
    if move is not None:
        raise Conflict(f"What a move of {tenant.name} has left is being deleted. Let that end first.")
    resharding = reshard_requests.last_of(tenant.tenant_id)
    if tenant.moving_to or reshard_requests.RESHARDINGS.goes_on(resharding):
        raise Conflict(f"The tickets of {tenant.name} are being spread anew. Let that end first, or stop it.")
