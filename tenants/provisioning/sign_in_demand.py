"""Let owners demand a second factor of everybody who works in their desk."""

from __future__ import annotations

from typing import Final

from portal.dynamo.repository import Transaction
from portal.errors import Conflict, TransactionRefused
from tenants.audit_trail import recording
from tenants.audit_trail.recording import Actor, AuditAction, AuditEntry
from tenants.membership import member_changes
from tenants.sign_in import accounts
from tenants.tenancy import tenant_directory
from tenants.tenancy.context import TenantContext
from tenants.tenancy.stored import TenantItem

_WORDS: Final = {True: "demanded", False: "not demanded"}


def change(tenant: TenantContext, *, demanded: bool, by: Actor) -> bool:
    """Demand a second factor of all members, or end that, and tell whether it changed anything.

    It holds from each member's next click; API keys are not people. Raises Conflict where the actor has none, and would
    be the first one kept out, or where the actor's role changed.
    """
    stored = tenant_directory.get(tenant.tenant_id)
    before = bool(stored.needs_second_factor)
    if before == demanded:
        return False
    if demanded and not _has_factor(by):
        raise Conflict("Add a second factor to your own account first: you would be kept out of the desk.")
    transaction = Transaction()
    flag = TenantItem.needs_second_factor
    transaction.update(stored, [flag.set(True) if demanded else flag.remove()], condition=TenantItem.tenant_id.exists())
    member_changes.require_role(transaction, tenant)
    entry = AuditEntry(
        tenant.tenant_id,
        AuditAction.TENANT_SIGN_IN_CHANGED,
        by,
        "tenant",
        tenant.tenant_id,
        stored.name,
        before={"second factor": _WORDS[before]},
        after={"second factor": _WORDS[demanded]},
    )
    try:
        recording.commit(transaction, [entry])
    except TransactionRefused as error:
        raise Conflict("Your role in this desk has changed. Nothing was saved.") from error
    return True


def _has_factor(by: Actor) -> bool:
    user = accounts.find_by_id(by.id)
    return user is not None and bool(user.second_factors)
