"""Create, change, suspend and resume tenants, each with its row in the audit trail. Operators do this."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock, plain_text
from portal.dynamo import provisioning
from portal.dynamo.placement import POOL, Placement
from portal.dynamo.store import Action as UpdateAction
from portal.dynamo.store import Transaction
from portal.errors import Conflict, Invalid, TransactionRefused
from portal.load import tenant_limiter
from portal.mailing import outgoing
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.membership.invitations import FirstOwner
from tenants.sign_in import accounts
from tenants.sign_in.accounts import User
from tenants.sign_in.stored import UniqueItem
from tenants.tenancy import placements, tenant_directory
from tenants.tenancy.context import Role
from tenants.tenancy.stored import MOST_SHARDS, TenantItem, TenantStatus, slug_key

_PLAN = re.compile(r"[a-z0-9-]{1,40}\Z")

STANDARD: Final = "standard"
NAME_LIMIT: Final = 80  # characters
# Adds to the transaction that makes a tenant, and to the tenant's item before it is written.
Addition = Callable[[Transaction, TenantItem], None]
_additions: Final[dict[Addition, str]] = {}
_TAKEN: Final = gettext_noop("The slug {} is taken.")
_CHANGED: Final = gettext_noop("Somebody else has just changed this tenant. Please check and try again.")


def add_at_creation(addition: Addition, *, depending: str) -> None:
    """Let an app above give each new tenant something of its own; it does so in its AppConfig.ready.

    `depending` names the member of the transaction that is refused where what the addition had read was out of date;
    then the addition is asked anew.
    """
    _additions[addition] = depending


def create(
    *,
    name: str,
    owner: User | None = None,
    invited: FirstOwner | None = None,
    slug: str = "",
    shards: int | None = None,
    tenant_id: str | None = None,
    plan: str = STANDARD,
    member_limit: int | None = None,
    placement: Placement | None = None,
    by: Actor,
) -> TenantItem:
    """Create a tenant, its first owner or the invitation of one if given, and the audit row, in one transaction.

    Where `placement` does not say so, its content lies where its plan asks. Tables of its own are made before; they are
    deleted again if the slug is taken and the id, being new, nobody else's. Raises Invalid for a name, slug, plan,
    shard count or limit that cannot be, and Conflict if the slug is taken.
    """
    placement = placements.of_plan(_plan(plan)) if placement is None else placement
    name = valid_name(name)
    slug = tenant_directory.valid_slug(slug or tenant_directory.slug_of(name))
    if tenant_id == recording.PLATFORM:
        raise Invalid("This id is reserved for the platform.")
    shards = _shards(settings.TICKET_SHARDS if shards is None else shards)
    tenant = TenantItem(
        tenant_id or accounts.new_id(),
        name=name,
        slug=slug,
        status=TenantStatus.ACTIVE,
        plan=_plan(plan),
        shards=shards,
        member_limit=_limit(member_limit),
        placement=None if placement == POOL else str(placement),
        counts_months=1,
        created_at=clock.stamp(),
    )
    after: dict[str, object] = {"name": name, "slug": slug, "plan": tenant.plan, "shards": shards}
    after |= {"invited_owner": invited.address} if invited else {"owner": owner.email if owner else ""}
    after |= {name: value for name, value in (("member_limit", member_limit), ("placement", tenant.placement)) if value}
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_CREATED, by, after=after)
    _make_tables(tenant, placement)
    try:
        write_new(tenant, owner, [entry], beside=[invited.add] if invited else ())
    except TransactionRefused as error:
        if placement != POOL and tenant_id is None:
            provisioning.delete_placed(tenant.tenant_id, placement)
        raise Conflict(_(_TAKEN).format(slug), field="slug") from error
    outgoing.send_all(invited.mails if invited else ())
    return tenant


def _make_tables(tenant: TenantItem, placement: Placement) -> None:
    """Make the tables that a tenant will have to itself, unless it is clear already that it cannot be made."""
    if placement == POOL:
        return
    if tenant_directory.id_of(tenant.slug) is not None:
        raise Conflict(_(_TAKEN).format(tenant.slug), field="slug")
    provisioning.create_placed(tenant.tenant_id, placement)


def write_new(
    tenant: TenantItem, owner: User | None, entries: Sequence[AuditEntry], *, beside: Sequence[Addition] = ()
) -> None:
    """Write a tenant as it is given, with what each new one gets beside it, and these rows: one transaction.

    `beside` may add a condition of the caller's. Raises TransactionRefused where its id or slug is taken.
    """
    recording.commit_built(lambda: _creation(tenant, owner, beside), entries, depending=[*_additions.values()])


def _creation(tenant: TenantItem, owner: User | None, beside: Sequence[Addition]) -> Transaction:
    transaction = Transaction()
    transaction.put(UniqueItem(slug_key(tenant.slug), owner=tenant.tenant_id), condition=UniqueItem.pk.does_not_exist())
    for addition in (*_additions, *beside):
        addition(transaction, tenant)
    transaction.put(tenant, condition=TenantItem.tenant_id.does_not_exist())
    placements.list_it(transaction, tenant.tenant_id, Placement.parse(tenant.placement))
    tenant_directory.list_as(transaction, tenant, TenantStatus.ACTIVE)
    if owner is not None:
        member_changes.put_member(transaction, user=owner, tenant=tenant, role=Role.OWNER)
    return transaction


def suspend(tenant_id: str, *, by: Actor, reason: str = "") -> None:
    """Shut the members of a tenant out, from their next click on, and record the reason if one is given.

    Raises NotFound, and Conflict if the tenant is suspended already, is closing, or was changed at the same moment.
    """
    _set_status(tenant_id, TenantStatus.SUSPENDED, AuditAction.TENANT_SUSPENDED, by, reason)


def resume(tenant_id: str, *, by: Actor, reason: str = "") -> None:
    """Let the members of a suspended tenant in again. Raises what `suspend` does."""
    _set_status(tenant_id, TenantStatus.ACTIVE, AuditAction.TENANT_RESUMED, by, reason)


def _set_status(tenant_id: str, status: str, action: AuditAction, by: Actor, reason: str) -> None:
    tenant = tenant_directory.get(tenant_id)
    if tenant.status not in (TenantStatus.ACTIVE, TenantStatus.SUSPENDED):
        raise Conflict(f"{tenant.name} is {tenant.status}.")
    transaction = Transaction()
    other = TenantStatus.SUSPENDED if status == TenantStatus.ACTIVE else TenantStatus.ACTIVE
    transaction.update(
        tenant,
        [TenantItem.status.set(status)],
        # The directory is written by name and slug, which an owner may be changing at this moment.
        condition=(TenantItem.status == other) & (TenantItem.slug == tenant.slug) & (TenantItem.name == tenant.name),
    )
    tenant_directory.list_as(transaction, tenant, status)
    after = {"status": status} | ({"reason": reason} if reason else {})
    entry = AuditEntry.of_tenant(tenant, action, by, {"status": tenant.status}, after)
    refused = Conflict(f"{tenant.name} is already {status}." if tenant.status == status else _(_CHANGED))
    recording.commit(transaction, [entry], refused=refused)


@dataclass(frozen=True)
class TenantLimits:
    """The plan and limits that operators give a tenant. `member_limit` is None if there is none, `request_rate` if the
    plan's counts; it is in units a second, see portal/load/tenant_limiter.py."""

    plan: str
    member_limit: int | None = None
    request_rate: int | None = None

    @classmethod
    def of(cls, tenant: TenantItem) -> TenantLimits:
        limits = (None if limit is None else int(limit) for limit in (tenant.member_limit, tenant.request_rate))
        return cls(tenant.plan, *limits)


def change_limits(tenant_id: str, to: TenantLimits, *, seen: TenantLimits | None = None, by: Actor) -> None:
    """Give a tenant another plan and other limits. `seen` is what the form showed; None skips that comparison.

    A limit below the number of members removes nobody and admits nobody.

    Raises NotFound, Invalid, and Conflict if the tenant is closed, or somebody else was faster.
    """
    tenant = tenant_directory.get(tenant_id)
    tenant_directory.refuse_closed(tenant)
    now = TenantLimits.of(tenant)
    if seen not in (None, now):
        raise Conflict(_(_CHANGED))
    if to == now:
        return
    actions: list[UpdateAction] = [TenantItem.plan.set(_plan(to.plan))]
    unchanged = TenantItem.plan == now.plan
    for attribute, before, after in (
        (TenantItem.member_limit, now.member_limit, _limit(to.member_limit)),
        (TenantItem.request_rate, now.request_rate, _rate(to.request_rate)),
    ):
        actions.append(attribute.remove() if after is None else attribute.set(after))
        unchanged &= attribute.does_not_exist() if before is None else attribute == before
    transaction = Transaction()
    transaction.update(tenant, actions, condition=unchanged)
    was, will_be = asdict(now), asdict(to)
    different = [name for name in will_be if was[name] != will_be[name]]
    told = [{name: "none" if some[name] is None else some[name] for name in different} for some in (was, will_be)]
    entry = AuditEntry.of_tenant(tenant, AuditAction.TENANT_LIMITS_CHANGED, by, *told)
    recording.commit(transaction, [entry], refused=Conflict(_(_CHANGED)))


def valid_name(name: str) -> str:
    """Return the name with single spaces between its words. Raises Invalid."""
    name = " ".join(name.split())
    if not 1 <= len(name) <= NAME_LIMIT:
        raise Invalid(_("Use 1-%(limit)s characters for the name.") % {"limit": NAME_LIMIT}, field="name")
    if fault := plain_text.name_fault(name):
        raise Invalid(fault, field="name")
    if plain_text.mixes_scripts(name):
        raise Invalid(_("Write each word with the letters of one alphabet: others look the same."), field="name")
    return name


def _plan(plan: str) -> str:
    if not _PLAN.match(plan):
        raise Invalid(tenant_directory.SLUG_RULE, field="plan")
    return plan


def _shards(shards: int) -> int:
    if not 1 <= shards <= MOST_SHARDS:
        raise Invalid(f"Use 1-{MOST_SHARDS} shards.", field="shards")
    return shards


def _limit(members: int | None) -> int | None:
    if members is not None and not 1 <= members <= 1_000_000:
        raise Invalid("Use a number from 1 to 1,000,000, or leave it empty for no limit.", field="member_limit")
    return members


def _rate(units: int | None) -> int | None:
    if units is not None and not 1 <= units <= tenant_limiter.MOST:
        raise Invalid(
            f"Use a number from 1 to {tenant_limiter.MOST:,}, or leave it empty for the plan's.", field="request_rate"
        )
    return units
