"""Begin and stop reshardings as an operator, each act with its row in the audit trail, and show them."""

from __future__ import annotations

from collections.abc import Mapping

from portal import clock
from portal.dynamo import platform
from portal.dynamo.repository import Transaction
from portal.errors import Conflict, Invalid, TransactionRefused
from portal.plain_text import amount
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy import tenant_directory
from tenants.tenancy.shard_layout import MOST_SHARDS, ShardLayout
from tenants.tenancy.stored import DIRECTORY, TenantItem, TenantStatus
from tickets.sharding import keys, reshard_notes
from tickets.sharding.items import ReshardItem

SHOWN = 20  # former reshardings of a tenant


def begin(tenant: TenantItem, *, shards: int, reason: str = "", by: Actor, holder: str = "") -> None:
    """Ask for a resharding of a tenant as stored. The stream worker carries it out, unless there is a `holder`.

    Raises Invalid, and Conflict where one is running, the tenant has that many shards, or is being brought in.
    """
    if not 1 <= shards <= MOST_SHARDS:
        raise Invalid(f"Use 1-{MOST_SHARDS} shards.", field="shards")
    layout = ShardLayout.of(tenant)
    if layout.rests and layout.readers == shards:
        raise Conflict(f"{tenant.name} has {said(shards)} already.", field="shards")
    if tenant.status == TenantStatus.PURGING:
        raise Conflict(f"{tenant.name} is being purged.")
    tenant_directory.refuse_arriving(tenant)
    item, actions, free = reshard_notes.begun(
        tenant=tenant, to_shards=shards, reason=reason, by=by.email or by.origin, holder=holder
    )
    transaction = Transaction()
    transaction.update(item, actions, name="resharding", condition=free)
    to_stay = TenantItem.tenant_id.exists() & (TenantItem.status != TenantStatus.PURGING)
    transaction.check(TenantItem(tenant.tenant_id), TenantItem.move.does_not_exist() & to_stay, name="move")
    after = {"shards": shards} | ({"reason": reason} if reason else {})
    entry = _entry(tenant, AuditAction.TENANT_RESHARDED, by, {"shards": layout.readers}, after)
    try:
        recording.commit(transaction, [entry])
    except TransactionRefused as refused:
        if refused.reason("move"):
            raise Conflict(f"{tenant.name} is being moved to another place. Wait for the end of that.") from refused
        raise Conflict(f"{tenant.name} is being resharded already. Stop that first, or wait for its end.") from refused


def stop(tenant: TenantItem, *, by: Actor) -> None:
    """Ask for an end where the tickets stand now: lists stay whole. Raises Conflict where nothing is running."""
    transaction = Transaction()
    transaction.update(
        reshard_notes.RESHARDINGS.of(tenant.tenant_id),
        [ReshardItem.state.set(reshard_notes.STOPPING)],
        condition=ReshardItem.state == reshard_notes.RUNNING,
    )
    entry = _entry(tenant, AuditAction.TENANT_RESHARDING_STOPPED, by, {}, {})
    try:
        recording.commit(transaction, [entry])
    except TransactionRefused as refused:
        raise Conflict(f"Nothing is running that could be stopped for {tenant.name}.") from refused


def last_of(tenant_id: str) -> ReshardItem | None:
    """Return a tenant's last resharding, None where it had none: one read."""
    return platform.get(ReshardItem, keys.RESHARDINGS, tenant_id)


def all_last() -> list[ReshardItem]:
    """Return the last resharding of each tenant that had one lately, newest first: one Query."""
    raws = platform.query(DIRECTORY, keys.RESHARDINGS).items
    return sorted(map(ReshardItem.from_raw_data, raws), key=lambda item: item.begun_at, reverse=True)


def history(tenant_id: str) -> list[ReshardItem]:
    """Return the reshardings of a tenant that have ended, newest first, up to SHOWN: one Query."""
    page = platform.query(DIRECTORY, keys.history(tenant_id), descending=True, limit=SHOWN)
    return [ReshardItem.from_raw_data(raw) for raw in page.items]


def said(shards: int) -> str:
    """Return "1 shard", "4 shards"."""
    return amount(shards, "shard")


def duration(item: ReshardItem) -> float:
    """Return how many seconds it has taken, or takes until now."""
    return ((clock.parse(item.ended_at) if item.ended_at else clock.now()) - clock.parse(item.begun_at)).total_seconds()


def _entry(
    tenant: TenantItem, action: AuditAction, by: Actor, before: Mapping[str, object], after: Mapping[str, object]
) -> AuditEntry:
    return AuditEntry(tenant.tenant_id, action, by, "tenant", tenant.tenant_id, tenant.name, before, after)
