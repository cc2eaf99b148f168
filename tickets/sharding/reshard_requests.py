"""Begin, stop and list reshardings, each act of an operator with its row in the audit trail."""

from __future__ import annotations

from typing import Any, Final

from portal import clock
from portal.dynamo.platform import PLATFORM
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid, TransactionRefused
from portal.plain_text import amount
from portal.streams.worker import WORKER
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.tenancy import tenant_directory
from tenants.tenancy.placements import ShardLayout
from tenants.tenancy.stored import MOST_SHARDS, TenantItem, TenantStatus
from tickets.jobs.leased_job import JobKind
from tickets.sharding import stored
from tickets.sharding.stored import ReshardItem

RUNNING, STOPPING, STOPPED, DONE = "running", "stopping", "stopped", "done"
FIRST_PHASE: Final = "widening"

RESHARDINGS: Final = JobKind(
    "resharding", ReshardItem, stored.RESHARDINGS, "worker", (RUNNING, STOPPING), stored.PAST_RESHARDINGS
)


def begun(*, tenant: Any, to_shards: int, reason: str, by: str, holder: str) -> tuple[ReshardItem, list[Any], Any]:
    """Return the item, the actions and the condition of the update that begins a resharding of a tenant as stored.

    It is refused while another one is running.
    """
    values = {
        "tenant_id": tenant.tenant_id, "slug": tenant.slug, "title": tenant.name, "from_shards": int(tenant.shards),
        "to_shards": to_shards, "reason": reason, "by": by, "state": RUNNING, "phase": FIRST_PHASE, "place": "",
        "moved": 0, "holder": holder, "counter": 0, "begun_at": clock.stamp(), "ended_at": "",
    }  # fmt: skip
    return RESHARDINGS.of(tenant.tenant_id), RESHARDINGS.actions(**values), RESHARDINGS.free()


def end(item: ReshardItem, *, me: str, state: str) -> ReshardItem:
    """Keep it among those that have ended, and let go of it."""
    end: dict[str, Any] = {"state": state, "ended_at": clock.stamp(), "holder": "", "place": ""}
    WORKER.put(RESHARDINGS.kept(item, **end))
    return RESHARDINGS.note(item, me=me, **end)


def forget(item: ReshardItem) -> None:
    """Remove what has ended from the list of the last ones; the tenant's history keeps it."""
    WORKER.delete(item, condition=(ReshardItem.begun_at == item.begun_at) & (ReshardItem.state == item.state))


def begin(tenant: TenantItem, *, shards: int, reason: str = "", by: Actor, holder: str = "") -> None:
    """Ask for a resharding of a tenant as stored. The stream worker carries it out, unless there is a `holder`.

    Raises Invalid, and Conflict where one is running, the tenant has that many shards, is closed or is being brought
    in.
    """
    if not 1 <= shards <= MOST_SHARDS:
        raise Invalid(f"Use 1-{MOST_SHARDS} shards.", field="shards")
    layout = ShardLayout.of(tenant)
    if layout.rests and layout.readers == shards:
        raise Conflict(f"{tenant.name} has {said(shards)} already.", field="shards")
    tenant_directory.refuse_closed(tenant)
    tenant_directory.refuse_arriving(tenant)
    item, actions, free = begun(tenant=tenant, to_shards=shards, reason=reason, by=by.email or by.origin, holder=holder)
    transaction = Transaction()
    transaction.update(item, actions, name="resharding", condition=free)
    to_stay = TenantItem.tenant_id.exists() & (TenantItem.status != TenantStatus.PURGING)
    transaction.check(TenantItem(tenant.tenant_id), TenantItem.move.does_not_exist() & to_stay, name="move")
    after = {"shards": shards} | ({"reason": reason} if reason else {})
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_RESHARDED, by, {"shards": layout.readers}, after)
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
        RESHARDINGS.of(tenant.tenant_id),
        [ReshardItem.state.set(STOPPING)],
        condition=ReshardItem.state == RUNNING,
    )
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_RESHARDING_STOPPED, by)
    refused = Conflict(f"Nothing is running that could be stopped for {tenant.name}.")
    recording.commit(transaction, [entry], refused=refused)


def last_of(tenant_id: str) -> ReshardItem | None:
    """Return a tenant's last resharding, None where it had none: one read."""
    return PLATFORM.get(ReshardItem, stored.RESHARDINGS, sort=tenant_id)


def all_last() -> list[ReshardItem]:
    """Return the last resharding of each tenant that had one lately, newest first: one Query."""
    found = PLATFORM.query(ReshardItem, stored.RESHARDINGS).items
    return sorted(found, key=lambda item: item.begun_at, reverse=True)


def said(shards: int) -> str:
    """Return "1 shard", "4 shards"."""
    return amount(shards, "shard")


def duration(item: ReshardItem) -> float:
    """Return how many seconds it has taken, or takes until now."""
    return ((clock.parse(item.ended_at) if item.ended_at else clock.now()) - clock.parse(item.begun_at)).total_seconds()
