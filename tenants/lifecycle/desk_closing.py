"""Close a tenant, and undo that. Owners do it for their own desk, operators for any.

A tenant that is closing is read-only, whoever asks and whichever way: a page of a member or an API key. Its work behind
the scenes goes on, so that nothing is half done when somebody thinks better of it. Nothing is deleted by time alone:
once the grace is over a command or an operator may purge it, and until that has begun the closing can be undone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from portal import clock
from portal.dynamo.store import Action as UpdateAction
from portal.dynamo.store import Store, Transaction
from portal.errors import Conflict, Invalid
from portal.mailing import outgoing
from portal.mailing.outgoing import OutgoingMail
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes, members
from tenants.membership.members import Member
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import TenantItem, TenantStatus

MOST_DAYS: Final = 366
_OPEN: Final = (TenantStatus.ACTIVE, TenantStatus.SUSPENDED)
_CHANGED: Final = gettext_noop("Somebody else has just changed this desk. Please check and try again.")


class Write(Protocol):
    """Writes the mails to the owners. `closes_at` is when the desk may be deleted, "" where its closing was undone, and
    `reason` is why, "" where nobody said so."""

    def __call__(
        self, tenant: TenantItem, owners: Sequence[Member], *, by: Actor, closes_at: str, reason: str
    ) -> Sequence[OutgoingMail]: ...


def close(
    tenant_id: str,
    *,
    by: Actor,
    write: Write,
    reason: str = "",
    days: int | None = None,
    at_work: TenantContext | None = None,
    given_up: str = "",
) -> datetime:
    """Make a tenant read-only, tell its owners by mail, and return the moment from which it may be deleted.

    `days` of grace are CLOSING_DAYS where they are not given. `at_work` is given where an owner closes their own desk;
    then it depends on their role, and `given_up` by who gives up the import of this id. The mail of `write` is written
    in the same transaction. Raises NotFound, Invalid for the days, and Conflict where it is closing already, is being
    brought in, or somebody else was faster.
    """
    days = settings.CLOSING_DAYS if days is None else days
    if not 0 <= days <= MOST_DAYS:
        raise Invalid(_("Use 0-%(most)s days.") % {"most": MOST_DAYS}, field="days")
    tenant = tenant_directory.get(tenant_id)
    if tenant.status not in _OPEN:
        raise Conflict(_("%(desk)s is %(status)s already.") % {"desk": tenant.name, "status": tenant.status})
    if tenant.arriving != given_up:
        tenant_directory.refuse_arriving(tenant)
    until = clock.now() + timedelta(days=days)
    actions: list[UpdateAction] = [
        TenantItem.status.set(TenantStatus.CLOSING),
        TenantItem.status_before.set(tenant.status),
        TenantItem.closes_at.set(clock.stamp(until)),
    ]
    after = {"status": TenantStatus.CLOSING, "may_be_deleted_from": clock.stamp(until)}
    _commit(
        tenant,
        actions,
        AuditAction.TENANT_CLOSED,
        by,
        write,
        to=TenantStatus.CLOSING,
        closes_at=clock.stamp(until),
        after=after | ({"reason": reason} if reason else {}),
        at_work=at_work,
    )
    return until


def reopen(tenant_id: str, *, by: Actor, write: Write, reason: str = "", at_work: TenantContext | None = None) -> str:
    """Undo the closing of a tenant and return its status, which is the one before: suspended, if it was.

    Raises NotFound, and Conflict where it is not closing, its purge has begun, or somebody else was faster.
    """
    tenant = tenant_directory.get(tenant_id)
    if tenant.status != TenantStatus.CLOSING:
        raise Conflict(
            _("%(desk)s is %(status)s: there is no closing to undo.") % {"desk": tenant.name, "status": tenant.status}
        )
    status = tenant.status_before or TenantStatus.ACTIVE
    actions: list[UpdateAction] = [
        TenantItem.status.set(status),
        TenantItem.status_before.remove(),
        TenantItem.closes_at.remove(),
    ]
    after = {"status": status} | ({"reason": reason} if reason else {})
    _commit(tenant, actions, AuditAction.TENANT_REOPENED, by, write, to=status, after=after, at_work=at_work)
    return status


def _commit(
    tenant: TenantItem,
    actions: list[UpdateAction],
    action: AuditAction,
    by: Actor,
    write: Write,
    *,
    to: str,
    after: dict[str, str],
    closes_at: str = "",
    at_work: TenantContext | None,
) -> None:
    """Write the change of the status, what the directory says of it, the mails to the owners and the audit row."""
    transaction = Transaction()
    seen = (TenantItem.status == tenant.status) & (TenantItem.slug == tenant.slug) & (TenantItem.name == tenant.name)
    transaction.update(tenant, actions, condition=seen)
    tenant_directory.list_as(transaction, tenant, to, closes_at=closes_at)
    if at_work is not None:
        member_changes.require_role(transaction, at_work)
    owners = members.owners_of(Store("tenant", tenant.tenant_id))
    mails = outgoing.join(
        transaction, write(tenant, owners, by=by, closes_at=closes_at, reason=after.get("reason", ""))
    )
    entry = AuditEntry.of_tenant(tenant, action, by, {"status": tenant.status}, after)
    recording.commit(transaction, [entry], refused=Conflict(_(_CHANGED)))
    outgoing.send_all(mails)
