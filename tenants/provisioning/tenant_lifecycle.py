"""The life of a tenant: created by an operator, changed, suspended, resumed; each with its row in the audit trail."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from django.conf import settings

from portal import clock
from portal.dynamo.repository import Action as UpdateAction
from portal.dynamo.repository import Transaction
from portal.errors import Conflict, Invalid, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.identity import accounts
from tenants.identity.items import UniqueItem
from tenants.identity.models import User
from tenants.membership import members
from tenants.tenancy import keys as tenancy_keys
from tenants.tenancy import tenant_directory
from tenants.tenancy.items import DirectoryItem, TenantItem
from tenants.tenancy.roles import Role

_SLUG = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\Z")
_PLAN = re.compile(r"[a-z0-9-]{1,40}\Z")

STANDARD = "standard"


def slug_of(name: str) -> str:
    """A slug made from a name: "Müller & Söhne" gives "muller-sohne"."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:40].strip("-")


def create(
    *,
    name: str,
    owner: User | None = None,
    slug: str = "",
    shards: int | None = None,
    tenant_id: str | None = None,
    plan: str = STANDARD,
    member_limit: int | None = None,
    by: Actor = recording.SYSTEM,
) -> TenantItem:
    """Create a tenant, with its first owner where one is given, and the audit row, in one transaction.

    Raises Invalid for a bad name, slug, plan or shard count and Conflict when the slug is taken.
    """
    name = valid_name(name)
    slug = valid_slug(slug or slug_of(name))
    if tenant_id == recording.PLATFORM:
        raise Invalid("This id stands for the platform.")
    shards = _shards(settings.TICKET_SHARDS if shards is None else shards)
    tenant = TenantItem(
        tenant_id or accounts.new_id(),
        name=name,
        slug=slug,
        status=tenant_directory.ACTIVE,
        plan=_plan(plan),
        shards=shards,
        shard_epoch=0,
        member_limit=_limit(member_limit),
        created_at=clock.stamp(),
    )
    transaction = Transaction()
    transaction.put(
        UniqueItem(tenancy_keys.slug(slug), owner=tenant.tenant_id), condition=UniqueItem.pk.does_not_exist()
    )
    transaction.put(tenant, condition=TenantItem.tenant_id.does_not_exist())
    transaction.put(
        DirectoryItem(
            tenant_directory.TENANTS, slug, tenant_id=tenant.tenant_id, title=name, created_at=tenant.created_at
        )
    )
    if owner is not None:
        for item in members.pair(
            user=owner, tenant_id=tenant.tenant_id, tenant_name=name, tenant_slug=slug, role=Role.OWNER
        ):
            transaction.put(item)
    after: dict[str, object] = {"name": name, "slug": slug, "plan": tenant.plan, "shards": shards}
    after |= {"owner": owner.email if owner else ""} | ({"member_limit": member_limit} if member_limit else {})
    try:
        recording.commit(transaction, [_entry(tenant, AuditAction.TENANT_CREATED, by, after=after)])
    except TransactionRefused as error:
        raise Conflict(f"A tenant with the slug {slug} exists already.", field="slug") from error
    return tenant


def set_status(tenant_id: str, status: str, *, by: Actor = recording.SYSTEM) -> None:
    """Suspend or resume a tenant; it counts at everybody's next click.

    Raises NotFound, and Conflict where the tenant is in that state already.
    """
    if status not in (tenant_directory.ACTIVE, tenant_directory.SUSPENDED):
        raise Invalid(f"A tenant is {tenant_directory.ACTIVE} or {tenant_directory.SUSPENDED}.")
    tenant = tenant_directory.get(tenant_id)
    transaction = Transaction()
    transaction.update(
        tenant,
        [TenantItem.status.set(status)],
        # The directory is written by name and slug, which an owner may be changing at this moment.
        condition=(TenantItem.status != status) & (TenantItem.slug == tenant.slug) & (TenantItem.name == tenant.name),
    )
    listed, apart = (
        DirectoryItem(
            kind, tenant.slug, tenant_id=tenant_id, title=tenant.name, created_at=tenant.created_at, status=status
        )
        for kind in (tenant_directory.TENANTS, tenant_directory.SUSPENDED_TENANTS)
    )
    transaction.put(listed)
    if status == tenant_directory.SUSPENDED:
        transaction.put(apart)
    else:
        transaction.delete(apart)
    action = AuditAction.TENANT_SUSPENDED if status == tenant_directory.SUSPENDED else AuditAction.TENANT_RESUMED
    entry = _entry(tenant, action, by, before={"status": tenant.status}, after={"status": status})
    try:
        recording.commit(transaction, [entry])
    except TransactionRefused as error:
        if tenant.status == status:
            raise Conflict(f"The tenant is {status} already.") from error
        raise Conflict("Somebody else has just changed this tenant. Look at it again.") from error


@dataclass(frozen=True)
class Limits:
    """What operators set of a tenant. `member_limit` is None where there is none."""

    plan: str
    shards: int
    member_limit: int | None = None

    @classmethod
    def of(cls, tenant: TenantItem) -> Limits:
        limit = tenant.member_limit
        return cls(tenant.plan, int(tenant.shards), None if limit is None else int(limit))


def change(tenant_id: str, to: Limits, *, seen: Limits | None = None, by: Actor = recording.SYSTEM) -> None:
    """Change a tenant's limits. `seen` is what the caller was shown.

    More shards raise the shard epoch, which ends all cursors. Tickets stay in the shard that they are in until they are
    next changed, and lists read all shards; so there can be more of them at any time, but never fewer. A limit below
    the number of members takes nobody out and lets nobody in.
    Raises NotFound, Invalid, and Conflict where somebody else was first.
    """
    tenant = tenant_directory.get(tenant_id)
    now = Limits.of(tenant)
    if seen not in (None, now):
        raise Conflict("Somebody else has just changed this tenant. This is how it is now.")
    if to == now:
        return
    actions: list[UpdateAction] = [TenantItem.plan.set(_plan(to.plan)), TenantItem.shards.set(_shards(to.shards))]
    if to.shards < now.shards:
        raise Invalid("Fewer shards would hide tickets; there can only be more.", field="shards")
    if to.shards > now.shards:
        actions.append(TenantItem.shard_epoch.set(int(tenant.shard_epoch) + 1))
    limit = _limit(to.member_limit)
    actions.append(TenantItem.member_limit.remove() if limit is None else TenantItem.member_limit.set(limit))
    unchanged = (TenantItem.plan == now.plan) & (TenantItem.shards == now.shards)
    unlimited = TenantItem.member_limit.does_not_exist()
    unchanged &= unlimited if now.member_limit is None else TenantItem.member_limit == now.member_limit
    transaction = Transaction()
    transaction.update(tenant, actions, condition=unchanged)
    before, after = asdict(now), asdict(to)
    different = [name for name in after if before[name] != after[name]]
    entry = _entry(
        tenant,
        AuditAction.TENANT_LIMITS_CHANGED,
        by,
        before={name: _said(before[name]) for name in different},
        after={name: _said(after[name]) for name in different},
    )
    try:
        recording.commit(transaction, [entry])
    except TransactionRefused as error:
        raise Conflict("Somebody else has just changed this tenant. This is how it is now.") from error


def _said(value: object) -> object:
    return "none" if value is None else value


def valid_name(name: str) -> str:
    """The name with single blanks. Raises Invalid."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= 80:
        raise Invalid("A tenant's name has 1 to 80 characters.", field="name")
    return name


def valid_slug(slug: str) -> str:
    if not _SLUG.match(slug):
        raise Invalid("A slug has 1 to 40 of a-z, 0-9 and inner hyphens.", field="slug")
    return slug


def _plan(plan: str) -> str:
    if not _PLAN.match(plan):
        raise Invalid("A plan is 1 to 40 of a-z, 0-9 and hyphens.", field="plan")
    return plan


def _shards(shards: int) -> int:
    if not 1 <= shards <= 16:
        raise Invalid("A tenant has 1 to 16 shards.", field="shards")
    return shards


def _limit(members: int | None) -> int | None:
    if members is not None and not 1 <= members <= 1_000_000:
        raise Invalid("A limit is a number from 1 on; leave it empty for none.", field="member_limit")
    return members


def _entry(
    tenant: TenantItem,
    action: AuditAction,
    by: Actor,
    *,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
) -> AuditEntry:
    return AuditEntry(tenant.tenant_id, action, by, "tenant", tenant.tenant_id, tenant.name, before or {}, after or {})
